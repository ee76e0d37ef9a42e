/* SPDX-License-Identifier: Apache-2.0 */
/* Opening bytes as a table, describing it, and the index that lookups begin with. */
#include "table.h"

int slt_check_messages(const slt_view *view, const unsigned char *records, uint64_t count,
                       uint64_t stride, const slt_rules *rules, slt_fault *fault)
{
    uint64_t before = slt_u64(records), offset = (uint64_t)(records - view->bytes);
    if (before != rules->min_message)
        return slt_broken(fault, offset, "the first record is at min_message_bytes");
    for (uint64_t at = 1; at < count; at++) {
        uint64_t message = slt_u64(records + stride * at);
        if (message <= before || message - before > SLT_MAX_STRETCH)
            return slt_broken(fault, offset + stride * at,
                              "records ascend by their message, by less than 2^31 bytes");
        before = message;
    }
    if (before != rules->max_message)
        return slt_broken(fault, offset + stride * (count - 1),
                          "the last record is at max_message_bytes");
    return SLUICE_OK;
}

uint32_t slt_fill_index(slt_index *index, const unsigned char *records, uint64_t count,
                        uint64_t stride)
{
    uint64_t key = 0;
    uint32_t scale = 0;
    while ((count - 1) >> scale > SLT_MAX_BEFORE)
        scale++;
    for (uint64_t at = 0; at < count; at++) {
        uint64_t message = slt_u64(records + stride * at); /* in its range, unless changed since */
        uint64_t own = message >= 1 && message <= SLT_MAX_BYTES ? slt_key(message) : 0;
        for (; key <= own; key++)
            index->before[key] = (uint16_t)((at ? at - 1 : 0) >> scale);
    }
    for (; key <= SLT_KEYS; key++)
        index->before[key] = (uint16_t)((count - 1) >> scale);
    return scale;
}

/* Where the sections are: the header's own offsets, which have been checked. */
static void slt_find_sections(slt_view *view, const unsigned char *bytes, const unsigned char *header)
{
    view->bytes = bytes;
    view->cuts = bytes + slt_u64(header + SLT_AT_CUTS);
    view->repeats = bytes + slt_u64(header + SLT_AT_REPEATS);
    view->positions = bytes + slt_u64(header + SLT_AT_POSITIONS);
    view->cut_count = slt_u64(header + SLT_AT_CUT_COUNT);
    view->repeat_count = slt_u64(header + SLT_AT_REPEAT_COUNT);
    view->position_count = slt_u64(header + SLT_AT_POSITION_COUNT);
    view->position_width = slt_u64(header + SLT_AT_POSITION_WIDTH);
}

/* The records and the pipeline, once header and sections are right. */
static int slt_check_content(slt_view *view, const slt_rules *rules, const unsigned char *header,
                             slt_fault *fault)
{
    int code = slt_check_cuts(view, rules, fault);
    if (code == SLUICE_OK)
        code = slt_check_repeats(view, rules, fault);
    if (code == SLUICE_OK)
        code = slt_check_pipeline(view->bytes, slt_u64(header + SLT_AT_PIPELINE),
                                  slt_u64(header + SLT_AT_PIPELINE_BYTES), fault);
    return code;
}

static void slt_begin_lookups(slt_view *view, const slt_rules *rules)
{
    view->min_message = rules->min_message;
    view->range = rules->max_message - rules->min_message;
    view->unit = rules->unit;
    view->rules = *rules;
    view->cut_scale = slt_fill_index(&view->of_cuts, view->cuts, view->cut_count, SLT_CUT_BYTES);
    view->repeat_scale =
        slt_fill_index(&view->of_repeats, view->repeats, view->repeat_count, SLT_REPEAT_BYTES);
    view->seal = SLT_OPEN;
}

int slt_check(slt_view *view, const unsigned char *bytes, size_t length, slt_fault *fault)
{
    unsigned char header[SLT_HEADER_BYTES]; /* a copy, so that what was checked is what is used */
    slt_rules rules;
    int code = slt_check_prefix(bytes, length, fault);
    memset(view, 0, sizeof *view);
    if (code != SLUICE_OK)
        return code;
    memcpy(header, bytes, sizeof header);
    code = slt_check_sections(bytes, header, length, fault);
    if (code == SLUICE_OK)
        code = slt_check_header(header, &rules, fault);
    if (code != SLUICE_OK)
        return code;
    view->length = length;
    slt_find_sections(view, bytes, header);
    code = slt_check_content(view, &rules, header, fault);
    if (code == SLUICE_OK)
        slt_begin_lookups(view, &rules);
    else
        memset(view, 0, sizeof *view);
    return code;
}

int sluice_table_from_memory(sluice_table *table, const void *bytes, size_t length)
{
    slt_fault fault;
    if (!table)
        return SLUICE_E_ARGUMENT;
    memset(table, 0, sizeof *table);
    if (!bytes)
        return SLUICE_E_ARGUMENT;
    return slt_check((slt_view *)(void *)table, (const unsigned char *)bytes, length, &fault);
}

static void slt_describe_limits(const slt_view *view, sluice_description *description)
{
    description->min_fragment_bytes = view->rules.min_fragment;
    description->max_fragment_bytes = slt_u64(view->bytes + SLT_AT_MAX_FRAGMENT);
    description->alignment_bytes = view->unit;
    description->max_fragments = slt_u64(view->bytes + SLT_AT_MAX_FRAGMENTS);
    description->fragment_cap = slt_u64(view->bytes + SLT_AT_CAP);
}

int sluice_table_describe(const sluice_table *table, sluice_description *description)
{
    const slt_view *view = slt_open_view(table);
    sluice_description own;
    uint64_t size = description ? description->size : 0;
    if (!view || size < sizeof size)
        return SLUICE_E_ARGUMENT;
    memset(&own, 0, sizeof own);
    own.size = size < sizeof own ? size : sizeof own;
    slt_describe_limits(view, &own);
    own.min_message_bytes = view->min_message;
    own.max_message_bytes = view->min_message + view->range;
    own.relative_gap = slt_f64(slt_u64(view->bytes + SLT_AT_TOLERANCE));
    own.max_schedule_fragments = view->max_schedule_fragments;
    own.cut_count = view->cut_count;
    own.repeat_count = view->repeat_count;
    own.file_bytes = view->length;
    own.revision = slt_u32(view->bytes + SLT_AT_REVISION);
    own.checksum = slt_u32(view->bytes + SLT_AT_CHECKSUM);
    memcpy(own.profile, view->bytes + SLT_AT_NAME, SLT_MAX_NAME_BYTES);
    memcpy(description, &own, (size_t)own.size);
    return SLUICE_OK;
}
