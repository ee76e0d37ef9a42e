/* SPDX-License-Identifier: Apache-2.0 */
/* The header: prefix, sections, fields. Every test of a length is by subtraction or division, so that
   no number of the file can overflow. */
#include "table.h"

static const unsigned char slt_magic[SLT_MAGIC_BYTES] = {0x89, 'S', 'L', 'T', '\r', '\n', 0x1a, '\n'};

static int slt_is_zero(const unsigned char *bytes, uint64_t length)
{
    unsigned char found = 0;
    for (uint64_t i = 0; i < length; i++)
        found |= bytes[i];
    return found == 0;
}

int slt_check_begin(const unsigned char *bytes, uint64_t length, slt_fault *fault)
{
    if (length < SLT_MAGIC_BYTES || memcmp(bytes, slt_magic, SLT_MAGIC_BYTES) != 0)
        return slt_refuse(fault, SLUICE_E_FORMAT, 0, "a table file begins with the eight bytes of magic");
    if (length < SLT_HEADER_BYTES)
        return slt_refuse(fault, SLUICE_E_TRUNCATED, length, "a table file has a header of 256 bytes");
    if (slt_u32(bytes + SLT_AT_VERSION) != SLT_VERSION)
        return slt_refuse(fault, SLUICE_E_VERSION, SLT_AT_VERSION, "version is 1");
    if (slt_u32(bytes + SLT_AT_HEADER_BYTES) != SLT_HEADER_BYTES)
        return slt_broken(fault, SLT_AT_HEADER_BYTES, "header_bytes is 256");
    if (slt_u32(bytes + SLT_AT_RESERVED) != 0)
        return slt_broken(fault, SLT_AT_RESERVED, "reserved bytes are zero");
    if (slt_u64(bytes + SLT_AT_FILE_BYTES) != length)
        return slt_refuse(fault, SLUICE_E_TRUNCATED, SLT_AT_FILE_BYTES,
                          "file_bytes is the length of the file");
    return SLUICE_OK;
}

int slt_check_prefix(const unsigned char *bytes, size_t length, slt_fault *fault)
{
    int code = slt_check_begin(bytes, length, fault);
    if (code != SLUICE_OK)
        return code;
    if (slt_crc32(bytes + SLT_CHECKED_FROM, length - SLT_CHECKED_FROM) !=
        slt_u32(bytes + SLT_AT_CHECKSUM))
        return slt_refuse(fault, SLUICE_E_CHECKSUM, SLT_AT_CHECKSUM,
                          "checksum is the CRC-32 of the bytes from 32 on");
    if (!slt_is_zero(bytes + SLT_AT_RESERVED_END, (uint64_t)SLT_HEADER_BYTES - SLT_AT_RESERVED_END))
        return slt_broken(fault, SLT_AT_RESERVED_END, "reserved bytes are zero");
    return SLUICE_OK;
}

/* Take `count` records of `stride` bytes out of what is left; 0 where they do not fit. */
static int slt_take_records(uint64_t *room, uint64_t count, uint64_t stride)
{
    if (count > *room / stride)
        return 0;
    *room -= count * stride;
    return 1;
}

static int slt_check_offset(const unsigned char *header, uint64_t at, uint64_t expected,
                            slt_fault *fault)
{
    if (slt_u64(header + at) != expected)
        return slt_broken(fault, at, "each section begins where the one before it ends");
    return SLUICE_OK;
}

/* Where sections begin: behind the cuts, behind the repeats, behind the positions with their zeros. */
static int slt_check_offsets(const unsigned char *header, uint64_t repeats, uint64_t positions,
                             uint64_t pipeline, uint64_t pipeline_bytes, slt_fault *fault)
{
    int code = slt_check_offset(header, SLT_AT_CUTS, SLT_HEADER_BYTES, fault);
    if (code == SLUICE_OK)
        code = slt_check_offset(header, SLT_AT_REPEATS, repeats, fault);
    if (code == SLUICE_OK)
        code = slt_check_offset(header, SLT_AT_POSITIONS, positions, fault);
    if (code == SLUICE_OK)
        code = slt_check_offset(header, SLT_AT_PIPELINE, pipeline, fault);
    if (code == SLUICE_OK && slt_u64(header + SLT_AT_PIPELINE_BYTES) != pipeline_bytes)
        code = slt_broken(fault, SLT_AT_PIPELINE_BYTES, "the pipeline's section ends the file");
    return code;
}

int slt_check_sections(const unsigned char *bytes, const unsigned char *header, size_t length,
                       slt_fault *fault)
{
    static const char slt_is_long[] = "a section fits into what those before it leave of the file";
    uint64_t width = slt_u64(header + SLT_AT_POSITION_WIDTH), room = length - SLT_HEADER_BYTES;
    uint64_t padding, repeats, positions, pipeline;
    if (width != 4 && width != 8)
        return slt_broken(fault, SLT_AT_POSITION_WIDTH, "position_width is 4 or 8");
    if (slt_u64(header + SLT_AT_CUT_COUNT) == 0)
        return slt_broken(fault, SLT_AT_CUT_COUNT, "cut_count is 1 or more");
    if (slt_u64(header + SLT_AT_REPEAT_COUNT) == 0)
        return slt_broken(fault, SLT_AT_REPEAT_COUNT, "repeat_count is 1 or more");
    if (!slt_take_records(&room, slt_u64(header + SLT_AT_CUT_COUNT), SLT_CUT_BYTES))
        return slt_broken(fault, SLT_AT_CUT_COUNT, slt_is_long);
    repeats = length - room;
    if (!slt_take_records(&room, slt_u64(header + SLT_AT_REPEAT_COUNT), SLT_REPEAT_BYTES))
        return slt_broken(fault, SLT_AT_REPEAT_COUNT, slt_is_long);
    positions = length - room;
    if (!slt_take_records(&room, slt_u64(header + SLT_AT_POSITION_COUNT), width))
        return slt_broken(fault, SLT_AT_POSITION_COUNT, slt_is_long);
    pipeline = length - room;
    padding = (8 - pipeline % 8) % 8;
    if (padding > room || !slt_is_zero(bytes + pipeline, padding))
        return slt_broken(fault, pipeline, "the bytes behind the positions are zero");
    return slt_check_offsets(header, repeats, positions, pipeline + padding, room - padding, fault);
}

static int slt_is_size(uint64_t bytes)
{
    return bytes >= 1 && bytes <= SLT_MAX_BYTES;
}

/* [a-z0-9][a-z0-9._-]*, then zeros, and a revision; or neither. */
static int slt_is_named(const unsigned char *header)
{
    const unsigned char *name = header + SLT_AT_NAME;
    uint32_t length = slt_u32(header + SLT_AT_NAME_BYTES);
    uint32_t revision = slt_u32(header + SLT_AT_REVISION);
    if (length > SLT_MAX_NAME_BYTES || !slt_is_zero(name + length, SLT_MAX_NAME_BYTES - length))
        return 0;
    for (uint32_t i = 0; i < length; i++) {
        int is_letter = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9');
        int is_mark = name[i] == '.' || name[i] == '_' || name[i] == '-';
        if (!is_letter && (i == 0 || !is_mark))
            return 0;
    }
    return length ? revision >= 1 && revision <= SLT_MAX_REVISION : revision == 0;
}

static uint64_t slt_or_none(uint64_t limit)
{
    return limit ? limit : UINT64_MAX;
}

/* The range of messages and the tolerance. */
static int slt_check_range(const unsigned char *header, const slt_rules *rules, slt_fault *fault)
{
    uint64_t tolerance = slt_u64(header + SLT_AT_TOLERANCE);
    if (!slt_is_size(rules->min_message))
        return slt_broken(fault, SLT_AT_MIN_MESSAGE, "min_message_bytes is 1 to 2^48");
    if (!slt_is_size(rules->max_message) || rules->max_message < rules->min_message)
        return slt_broken(fault, SLT_AT_MAX_MESSAGE,
                          "max_message_bytes is min_message_bytes to 2^48");
    if (!slt_is_figure(tolerance) || !(slt_f64(tolerance) >= 1e-6 && slt_f64(tolerance) <= 1.0))
        return slt_broken(fault, SLT_AT_TOLERANCE, "relative_gap is 1e-6 to 1");
    return SLUICE_OK;
}

int slt_check_header(const unsigned char *header, slt_rules *rules, slt_fault *fault)
{
    uint64_t cap = slt_u64(header + SLT_AT_CAP);
    uint64_t max_fragments = slt_u64(header + SLT_AT_MAX_FRAGMENTS);
    uint64_t max_fragment = slt_u64(header + SLT_AT_MAX_FRAGMENT);
    int code;
    rules->min_message = slt_u64(header + SLT_AT_MIN_MESSAGE);
    rules->max_message = slt_u64(header + SLT_AT_MAX_MESSAGE);
    rules->min_fragment = slt_u64(header + SLT_AT_MIN_FRAGMENT);
    rules->max_fragment = slt_or_none(max_fragment);
    rules->unit = slt_u64(header + SLT_AT_ALIGNMENT);
    rules->max_fragments = slt_or_none(max_fragments) < cap ? max_fragments : cap;
    code = slt_check_range(header, rules, fault);
    if (code != SLUICE_OK)
        return code;
    if (!slt_is_size(rules->min_fragment))
        return slt_broken(fault, SLT_AT_MIN_FRAGMENT, "min_fragment_bytes is 1 to 2^48");
    if (max_fragment && !slt_is_size(max_fragment))
        return slt_broken(fault, SLT_AT_MAX_FRAGMENT, "max_fragment_bytes is 0 to 2^48");
    if (!slt_is_size(rules->unit))
        return slt_broken(fault, SLT_AT_ALIGNMENT, "alignment_bytes is 1 to 2^48");
    if (max_fragments && !slt_is_size(max_fragments))
        return slt_broken(fault, SLT_AT_MAX_FRAGMENTS, "max_fragments is 0 to 2^48");
    if (cap < 1)
        return slt_broken(fault, SLT_AT_CAP, "fragment_cap is 1 or more");
    if (!slt_is_named(header))
        return slt_broken(fault, SLT_AT_REVISION,
                          "revision and name are those of a profile, or both are zero");
    return SLUICE_OK;
}
