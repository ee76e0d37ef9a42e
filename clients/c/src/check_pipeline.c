/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline's section: docs/format.md, Pipeline. Nothing reads it but this check. */
#include "table.h"

/* What is left of the section. */
typedef struct rest {
    const unsigned char *at;
    uint64_t length;
} rest;

/* The next `length` bytes; null where there are fewer. */
static const unsigned char *take(rest *section, uint64_t length)
{
    const unsigned char *taken = section->at;
    if (length > section->length)
        return NULL;
    section->at += length;
    section->length -= length;
    return taken;
}

static int is_cost(const unsigned char *at, double maximum)
{
    uint64_t bits = slt_u64(at);
    return slt_is_figure(bits) && slt_f64(bits) <= maximum;
}

/* The bytes of a UTF-8 character by its first byte; 0 where none begins so. */
static uint32_t character_bytes(unsigned char first)
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
static int is_character(const unsigned char *bytes, uint32_t length)
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
static int is_stage_name(const unsigned char *text, uint32_t length)
{
    uint32_t characters = 0;
    for (uint32_t at = 0; at < length; characters++) {
        uint32_t bytes = character_bytes(text[at]);
        if (bytes == 0 || bytes > length - at || !is_character(text + at, bytes))
            return 0;
        at += bytes;
    }
    return characters >= 1 && characters <= SLT_MAX_NAME_CHARACTERS;
}

/* Whether fit ranges follow: their ends ascend, and the last one alone is open. */
static int are_ranges(rest *section, uint32_t count)
{
    uint64_t before = 0;
    for (uint32_t i = 0; i < count; i++) {
        const unsigned char *range = take(section, SLT_RANGE_BYTES);
        uint64_t end;
        if (!range || !is_cost(range + 8, SLT_MAX_OVERHEAD_US) ||
            !is_cost(range + 16, SLT_MAX_NS_PER_BYTE))
            return 0;
        end = slt_u64(range);
        if (i + 1 == count)
            return end == 0;
        if (end <= before || end > SLT_MAX_BYTES)
            return 0;
        before = end;
    }
    return 0;
}

static int is_stage(rest *section)
{
    const unsigned char *head = take(section, SLT_STAGE_BYTES), *name;
    uint32_t length, ranges;
    uint64_t padded;
    if (!head)
        return 0;
    length = slt_u32(head);
    ranges = slt_u32(head + 4);
    if (ranges < 1 || ranges > SLT_MAX_RANGES || !are_ranges(section, ranges))
        return 0;
    padded = ((uint64_t)length + 7) / 8 * 8;
    name = take(section, padded);
    if (!name || !is_stage_name(name, length))
        return 0;
    for (uint64_t i = length; i < padded; i++)
        if (name[i] != 0)
            return 0;
    return 1;
}

int slt_check_pipeline(const unsigned char *section, uint64_t length)
{
    rest left = {section, length};
    const unsigned char *head = take(&left, SLT_PIPELINE_BYTES);
    uint32_t stages;
    if (!head || !is_cost(head, SLT_MAX_OVERHEAD_US) || slt_u32(head + 12) != 0)
        return SLUICE_E_INVALID;
    stages = slt_u32(head + 8);
    if (stages < 1 || stages > SLT_MAX_STAGES)
        return SLUICE_E_INVALID;
    for (uint32_t i = 0; i < stages; i++)
        if (!is_stage(&left))
            return SLUICE_E_INVALID;
    return left.length == 0 ? SLUICE_OK : SLUICE_E_INVALID;
}
