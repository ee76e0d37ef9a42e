/* SPDX-License-Identifier: Apache-2.0 */
/* The header: prefix, sections, fields. Every test of a length is by subtraction or division, so that
   no number of the file can overflow. */
#include "table.h"

static const unsigned char magic[SLT_MAGIC_BYTES] = {0x89, 'S', 'L', 'T', '\r', '\n', 0x1a, '\n'};

static int is_zero(const unsigned char *bytes, uint64_t length)
{
    unsigned char found = 0;
    for (uint64_t i = 0; i < length; i++)
        found |= bytes[i];
    return found == 0;
}

int slt_check_begin(const unsigned char *bytes, uint64_t length)
{
    if (length < SLT_MAGIC_BYTES || memcmp(bytes, magic, SLT_MAGIC_BYTES) != 0)
        return SLUICE_E_FORMAT;
    if (length < SLT_HEADER_BYTES)
        return SLUICE_E_TRUNCATED;
    if (slt_u32(bytes + SLT_AT_VERSION) != SLT_VERSION)
        return SLUICE_E_VERSION;
    if (slt_u32(bytes + SLT_AT_HEADER_BYTES) != SLT_HEADER_BYTES ||
        slt_u32(bytes + SLT_AT_RESERVED) != 0)
        return SLUICE_E_INVALID;
    if (slt_u64(bytes + SLT_AT_FILE_BYTES) != length)
        return SLUICE_E_TRUNCATED;
    return SLUICE_OK;
}

int slt_check_prefix(const unsigned char *bytes, size_t length)
{
    int code = slt_check_begin(bytes, length);
    if (code != SLUICE_OK)
        return code;
    if (slt_crc32(bytes + SLT_CHECKED_FROM, length - SLT_CHECKED_FROM) !=
        slt_u32(bytes + SLT_AT_CHECKSUM))
        return SLUICE_E_CHECKSUM;
    if (!is_zero(bytes + SLT_AT_RESERVED_END, SLT_HEADER_BYTES - SLT_AT_RESERVED_END))
        return SLUICE_E_INVALID;
    return SLUICE_OK;
}

/* Take `count` records of `stride` bytes out of what is left; 0 where they do not fit. */
static int take(uint64_t *room, uint64_t count, uint64_t stride)
{
    if (count > *room / stride)
        return 0;
    *room -= count * stride;
    return 1;
}

int slt_check_sections(const unsigned char *bytes, const unsigned char *header, size_t length)
{
    uint64_t width = slt_u64(header + SLT_AT_POSITION_WIDTH), room = length - SLT_HEADER_BYTES;
    uint64_t padding, repeats, positions, pipeline;
    if ((width != 4 && width != 8) || slt_u64(header + SLT_AT_CUT_COUNT) == 0 ||
        slt_u64(header + SLT_AT_REPEAT_COUNT) == 0)
        return SLUICE_E_INVALID;
    if (!take(&room, slt_u64(header + SLT_AT_CUT_COUNT), SLT_CUT_BYTES))
        return SLUICE_E_INVALID;
    repeats = length - room;
    if (!take(&room, slt_u64(header + SLT_AT_REPEAT_COUNT), SLT_REPEAT_BYTES))
        return SLUICE_E_INVALID;
    positions = length - room;
    if (!take(&room, slt_u64(header + SLT_AT_POSITION_COUNT), width))
        return SLUICE_E_INVALID;
    pipeline = length - room;
    padding = (8 - pipeline % 8) % 8;
    if (padding > room || !is_zero(bytes + pipeline, padding))
        return SLUICE_E_INVALID;
    if (slt_u64(header + SLT_AT_CUTS) != SLT_HEADER_BYTES ||
        slt_u64(header + SLT_AT_REPEATS) != repeats ||
        slt_u64(header + SLT_AT_POSITIONS) != positions ||
        slt_u64(header + SLT_AT_PIPELINE) != pipeline + padding ||
        slt_u64(header + SLT_AT_PIPELINE_BYTES) != room - padding)
        return SLUICE_E_INVALID;
    return SLUICE_OK;
}

static int is_size(uint64_t bytes)
{
    return bytes >= 1 && bytes <= SLT_MAX_BYTES;
}

/* [a-z0-9][a-z0-9._-]*, then zeros, and a revision; or neither. */
static int is_named(const unsigned char *header)
{
    const unsigned char *name = header + SLT_AT_NAME;
    uint32_t length = slt_u32(header + SLT_AT_NAME_BYTES);
    uint32_t revision = slt_u32(header + SLT_AT_REVISION);
    if (length > SLT_MAX_NAME_BYTES || !is_zero(name + length, SLT_MAX_NAME_BYTES - length))
        return 0;
    for (uint32_t i = 0; i < length; i++) {
        int is_letter = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9');
        int is_mark = name[i] == '.' || name[i] == '_' || name[i] == '-';
        if (!is_letter && (i == 0 || !is_mark))
            return 0;
    }
    return length ? revision >= 1 && revision <= SLT_MAX_REVISION : revision == 0;
}

static uint64_t or_none(uint64_t limit)
{
    return limit ? limit : UINT64_MAX;
}

int slt_check_header(const unsigned char *header, slt_rules *rules)
{
    uint64_t cap = slt_u64(header + SLT_AT_CAP);
    uint64_t max_fragments = slt_u64(header + SLT_AT_MAX_FRAGMENTS);
    uint64_t max_fragment = slt_u64(header + SLT_AT_MAX_FRAGMENT);
    uint64_t tolerance = slt_u64(header + SLT_AT_TOLERANCE);
    rules->min_message = slt_u64(header + SLT_AT_MIN_MESSAGE);
    rules->max_message = slt_u64(header + SLT_AT_MAX_MESSAGE);
    rules->min_fragment = slt_u64(header + SLT_AT_MIN_FRAGMENT);
    rules->max_fragment = or_none(max_fragment);
    rules->unit = slt_u64(header + SLT_AT_ALIGNMENT);
    rules->max_fragments = or_none(max_fragments) < cap ? max_fragments : cap;
    if (!is_size(rules->min_message) || !is_size(rules->max_message) || rules->max_message < rules->min_message)
        return SLUICE_E_INVALID;
    if (!slt_is_figure(tolerance) || !(slt_f64(tolerance) >= 1e-6 && slt_f64(tolerance) <= 1.0))
        return SLUICE_E_INVALID;
    if (!is_size(rules->min_fragment) || !is_size(rules->unit) || cap < 1 ||
        (max_fragment && !is_size(max_fragment)) || (max_fragments && !is_size(max_fragments)))
        return SLUICE_E_INVALID;
    return is_named(header) ? SLUICE_OK : SLUICE_E_INVALID;
}
