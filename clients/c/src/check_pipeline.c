/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline's section: docs/format.md, Pipeline. Nothing reads it but this check. */
#include "table.h"

/* What is left of the section. */
typedef struct slt_rest {
    const unsigned char *bytes; /* of the file */
    const unsigned char *at;
    uint64_t length;
    slt_fault *fault;
} slt_rest;

/* The next `length` bytes; null where there are fewer. */
static const unsigned char *slt_take_bytes(slt_rest *section, uint64_t length)
{
    const unsigned char *taken = section->at;
    if (length > section->length)
        return NULL;
    section->at += length;
    section->length -= length;
    return taken;
}

/* Note what is wrong at a place of the section, or at where it ends too early. */
static int slt_wrong_at(const slt_rest *section, const unsigned char *place, const char *rule)
{
    return slt_broken(section->fault, (uint64_t)(place - section->bytes), rule);
}

static int slt_too_short(const slt_rest *section)
{
    return slt_wrong_at(section, section->at, "the pipeline's section holds what it announces");
}

static int slt_is_cost(const unsigned char *at, double maximum)
{
    uint64_t bits = slt_u64(at);
    return slt_is_figure(bits) && slt_f64(bits) <= maximum;
}

/* The bytes of a UTF-8 character by its first byte; 0 where none begins so. */
static uint32_t slt_character_bytes(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first <= 0xdf)
        return 2;
    if (first >= 0xe0 && first <= 0xef)
        return 3;
    return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

/* Whether these bytes are one UTF-8 character: none longer than need be, no surrogate, none above
   U+10FFFF (Unicode, table 3-7). */
static int slt_is_character(const unsigned char *bytes, uint32_t length)
{
    for (uint32_t i = 1; i < length; i++)
        if (bytes[i] < 0x80 || bytes[i] > 0xbf)
            return 0;
    switch (bytes[0]) {
    case 0xe0: return bytes[1] >= 0xa0;
    case 0xed: return bytes[1] <= 0x9f;
    case 0xf0: return bytes[1] >= 0x90;
    case 0xf4: return bytes[1] <= 0x8f;
    default: return 1;
    }
}

/* Whether the text has 1 to 100 characters of UTF-8. */
static int slt_is_stage_name(const unsigned char *text, uint32_t length)
{
    uint32_t characters = 0;
    for (uint32_t at = 0; at < length; characters++) {
        uint32_t bytes = slt_character_bytes(text[at]);
        if (bytes == 0 || bytes > length - at || !slt_is_character(text + at, bytes))
            return 0;
        at += bytes;
    }
    return characters >= 1 && characters <= SLT_MAX_NAME_CHARACTERS;
}

/* Check the fit ranges that follow: their ends ascend, and the last one alone is open. */
static int slt_check_ranges(slt_rest *section, uint32_t count)
{
    uint64_t before = 0;
    for (uint32_t i = 0; i < count; i++) {
        const unsigned char *range = slt_take_bytes(section, SLT_RANGE_BYTES);
        uint64_t end;
        if (!range)
            return slt_too_short(section);
        if (!slt_is_cost(range + 8, SLT_MAX_OVERHEAD_US))
            return slt_wrong_at(section, range + 8, "an overhead is 0 to 10^12 us");
        if (!slt_is_cost(range + 16, SLT_MAX_NS_PER_BYTE))
            return slt_wrong_at(section, range + 16, "a cost per byte is 0 to 10^9 ns");
        end = slt_u64(range);
        if (i + 1 == count ? end != 0 : end <= before || end > SLT_MAX_BYTES)
            return slt_wrong_at(section, range,
                                "the ends of fit ranges ascend, and the last range is open");
        before = end;
    }
    return SLUICE_OK;
}

static int slt_check_stage(slt_rest *section)
{
    const unsigned char *head = slt_take_bytes(section, SLT_STAGE_BYTES), *name;
    uint32_t length, ranges;
    uint64_t padded;
    int code;
    if (!head)
        return slt_too_short(section);
    length = slt_u32(head);
    ranges = slt_u32(head + 4);
    if (ranges < 1 || ranges > SLT_MAX_RANGES)
        return slt_wrong_at(section, head + 4, "a stage has 1 to 64 fit ranges");
    code = slt_check_ranges(section, ranges);
    if (code != SLUICE_OK)
        return code;
    padded = ((uint64_t)length + 7) / 8 * 8;
    name = slt_take_bytes(section, padded);
    if (!name)
        return slt_too_short(section);
    if (!slt_is_stage_name(name, length))
        return slt_wrong_at(section, name, "a stage's name has 1 to 100 characters of UTF-8");
    for (uint64_t i = length; i < padded; i++)
        if (name[i] != 0)
            return slt_wrong_at(section, name + i, "the bytes behind a name are zero");
    return SLUICE_OK;
}

int slt_check_pipeline(const unsigned char *bytes, uint64_t offset, uint64_t length,
                       slt_fault *fault)
{
    slt_rest left = {bytes, bytes + offset, length, fault};
    const unsigned char *head = slt_take_bytes(&left, SLT_PIPELINE_BYTES);
    uint32_t stages;
    int code = SLUICE_OK;
    if (!head)
        return slt_too_short(&left);
    if (!slt_is_cost(head, SLT_MAX_OVERHEAD_US))
        return slt_wrong_at(&left, head, "the delay is 0 to 10^12 us");
    stages = slt_u32(head + 8);
    if (stages < 1 || stages > SLT_MAX_STAGES)
        return slt_wrong_at(&left, head + 8, "a pipeline has 1 to 64 stages");
    if (slt_u32(head + 12) != 0)
        return slt_wrong_at(&left, head + 12, "reserved bytes are zero");
    for (uint32_t i = 0; code == SLUICE_OK && i < stages; i++)
        code = slt_check_stage(&left);
    if (code == SLUICE_OK && left.length != 0)
        return slt_wrong_at(&left, left.at, "the pipeline's section ends with its last stage");
    return code;
}
