/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts and their positions: docs/format.md, Validation, 4 and 5. */
#include "table.h"

/* One record, and the positions before which it begins. */
typedef struct slt_cut_record {
    uint64_t offset; /* of the record in the file */
    uint64_t message;
    uint64_t first;
    uint64_t fragments;
    uint64_t last_position; /* of the positions inside the message; 0 for one fragment */
} slt_cut_record;

static uint64_t slt_stored_position(const slt_view *view, uint64_t index)
{
    if (view->position_width == 4)
        return slt_u32(view->positions + 4 * index);
    return slt_u64(view->positions + 8 * index);
}

/* Where record `at` is in the file. */
static uint64_t slt_cut_offset(const slt_view *view, uint64_t at)
{
    return (uint64_t)(view->cuts - view->bytes) + SLT_CUT_BYTES * at;
}

/* Where a position is. */
static uint64_t slt_position_offset(const slt_view *view, uint64_t index)
{
    return (uint64_t)(view->positions - view->bytes) + view->position_width * index;
}

/* Read record `at`, whose first position has to be `first`. */
static int slt_read_cut(const slt_view *view, uint64_t at, uint64_t first, slt_cut_record *cut,
                        slt_fault *fault)
{
    const unsigned char *record = view->cuts + SLT_CUT_BYTES * at;
    uint64_t offset = slt_cut_offset(view, at);
    cut->offset = offset;
    cut->message = slt_u64(record);
    cut->first = slt_u64(record + SLT_CUT_FIRST);
    cut->fragments = slt_u32(record + SLT_CUT_FRAGMENTS);
    if (cut->first != first)
        return slt_broken(fault, offset + SLT_CUT_FIRST,
                          "a cut's positions begin where those of the cut before end");
    if (cut->fragments < 1 || cut->fragments - 1 > view->position_count - first)
        return slt_broken(fault, offset + SLT_CUT_FRAGMENTS,
                          "a cut has a fragment or more, and a position for each but the last");
    if (slt_u32(record + SLT_CUT_RESERVED) != 0)
        return slt_broken(fault, offset + SLT_CUT_RESERVED, "reserved bytes are zero");
    if (!slt_is_figure(slt_u64(record + SLT_CUT_LATENCY)))
        return slt_broken(fault, offset + SLT_CUT_LATENCY,
                          "a latency is finite and without a minus sign");
    if (!slt_is_figure(slt_u64(record + SLT_CUT_GAP)))
        return slt_broken(fault, offset + SLT_CUT_GAP, "a gap is finite and without a minus sign");
    return SLUICE_OK;
}

/* Check that the positions ascend inside the message, and that every fragment keeps the limits. */
static int slt_check_fragments(const slt_view *view, const slt_rules *rules, slt_cut_record *cut,
                               slt_fault *fault)
{
    uint64_t unit = rules->unit, maximum = (cut->message - 1) / unit, before = 0;
    if (cut->fragments > rules->max_fragments)
        return slt_broken(fault, cut->offset + SLT_CUT_FRAGMENTS,
                          "a cut has at most max_fragments and fragment_cap fragments");
    for (uint64_t i = 0; i + 1 < cut->fragments; i++) {
        uint64_t position = slt_stored_position(view, cut->first + i), size;
        if (position <= before || position > maximum)
            return slt_broken(fault, slt_position_offset(view, cut->first + i),
                              "a cut's positions ascend inside its message");
        size = (position - before) * unit;
        if (size < rules->min_fragment || size > rules->max_fragment)
            return slt_broken(fault, slt_position_offset(view, cut->first + i),
                              "every fragment keeps the smallest and the largest size");
        before = position;
    }
    cut->last_position = before;
    before = cut->message - before * unit;
    if (before > rules->max_fragment || (cut->fragments > 1 && before < rules->min_fragment))
        return slt_broken(fault, cut->offset,
                          "the last fragment keeps the smallest and the largest size");
    return SLUICE_OK;
}

static uint64_t slt_distance(uint64_t one, uint64_t other)
{
    return one < other ? other - one : one - other;
}

/* The last fragment is off by half a unit and a trace from a size between those of the records. */
static int slt_keeps_margin(const slt_rules *rules, const slt_cut_record *low, const slt_cut_record *high)
{
    uint64_t moved = rules->unit * slt_distance(low->last_position, high->last_position);
    uint64_t twice_margin = rules->unit + (moved >> 31) + ((moved & SLT_MAX_STRETCH) != 0);
    uint64_t one = low->message - rules->unit * low->last_position;
    uint64_t other = high->message - rules->unit * high->last_position;
    uint64_t minimum = one < other ? one : other, maximum = one < other ? other : one;
    if (moved == 0 || rules->unit == 1)
        return 1;
    return 2 * (minimum - rules->min_fragment) >= twice_margin &&
           (rules->max_fragment == UINT64_MAX ||
            2 * (rules->max_fragment - maximum) >= twice_margin);
}

/* Check that all that is computed between these two keeps the limits and fits 64 bits. */
static int slt_check_cut_stretch(const slt_view *view, const slt_rules *rules,
                                 const slt_cut_record *low, const slt_cut_record *high,
                                 slt_fault *fault)
{
    if (high->message - low->message == 1)
        return SLUICE_OK;
    if (high->fragments != low->fragments)
        return slt_broken(fault, high->offset + SLT_CUT_FRAGMENTS,
                          "cuts of messages 2 or more bytes apart have the same number of fragments");
    for (uint64_t i = 0; i + 1 < low->fragments; i++) {
        uint64_t one = slt_stored_position(view, low->first + i);
        uint64_t other = slt_stored_position(view, high->first + i);
        if (slt_distance(one, other) > SLT_MAX_STRETCH)
            return slt_broken(fault, slt_position_offset(view, high->first + i),
                              "a position moves by less than 2^31 units between two cuts");
    }
    if (low->fragments > 1 && !slt_keeps_margin(rules, low, high))
        return slt_broken(fault, high->offset,
                          "the last fragments of two cuts leave room for rounding between them");
    return SLUICE_OK;
}

/* Eight bytes exactly where one position does not fit four. */
static int slt_has_right_width(const slt_view *view)
{
    uint64_t bits = 0;
    if (view->position_width == 4)
        return 1;
    for (uint64_t i = 0; i < view->position_count; i++)
        bits |= slt_u64(view->positions + 8 * i);
    return bits >> 32 != 0;
}

/* Check record `at`, and what is between it and the one before. */
static int slt_check_cut(const slt_view *view, const slt_rules *rules, uint64_t at, uint64_t first,
                         const slt_cut_record *low, slt_cut_record *high, slt_fault *fault)
{
    int code = slt_read_cut(view, at, first, high, fault);
    if (code == SLUICE_OK)
        code = slt_check_fragments(view, rules, high, fault);
    if (code == SLUICE_OK && at > 0)
        code = slt_check_cut_stretch(view, rules, low, high, fault);
    return code;
}

int slt_check_cuts(slt_view *view, const slt_rules *rules, slt_fault *fault)
{
    slt_cut_record low = {0, 0, 0, 0, 0}, high = {0, 0, 0, 0, 0};
    uint64_t first = 0, maximum = 0;
    int code;
    if (!slt_has_right_width(view))
        return slt_broken(fault, SLT_AT_POSITION_WIDTH,
                          "position_width is 4 where every position is below 2^32");
    code = slt_check_messages(view, view->cuts, view->cut_count, SLT_CUT_BYTES, rules, fault);
    for (uint64_t at = 0; code == SLUICE_OK && at < view->cut_count; at++) {
        code = slt_check_cut(view, rules, at, first, &low, &high, fault);
        first += high.fragments - 1;
        maximum = high.fragments > maximum ? high.fragments : maximum;
        low = high;
    }
    view->max_schedule_fragments = maximum;
    if (code == SLUICE_OK && first != view->position_count)
        return slt_broken(fault, SLT_AT_POSITION_COUNT, "the cuts use all positions");
    return code;
}
