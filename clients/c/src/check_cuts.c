/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts and their positions: docs/format.md, Validation, 4 and 5. */
#include "table.h"

/* One record, and the positions before which it begins. */
typedef struct cut_record {
    uint64_t message;
    uint64_t first;
    uint64_t fragments;
    uint64_t last_position; /* of the positions inside the message; 0 for one fragment */
} cut_record;

static uint64_t position_at(const slt_view *view, uint64_t index)
{
    if (view->position_width == 4)
        return slt_u32(view->positions + 4 * index);
    return slt_u64(view->positions + 8 * index);
}

/* Read record `at`, whose first position has to be `first`. */
static int read_record(const slt_view *view, uint64_t at, uint64_t first, cut_record *cut)
{
    const unsigned char *record = view->cuts + SLT_CUT_BYTES * at;
    cut->message = slt_u64(record);
    cut->first = slt_u64(record + SLT_CUT_FIRST);
    cut->fragments = slt_u32(record + SLT_CUT_FRAGMENTS);
    return cut->first == first && slt_u32(record + SLT_CUT_RESERVED) == 0 && cut->fragments >= 1 &&
           cut->fragments - 1 <= view->position_count - first &&
           slt_is_figure(slt_u64(record + SLT_CUT_LATENCY)) &&
           slt_is_figure(slt_u64(record + SLT_CUT_GAP));
}

/* Whether the positions ascend inside the message, and every fragment keeps the limits. */
static int keeps_limits(const slt_view *view, const slt_rules *rules, cut_record *cut)
{
    uint64_t unit = rules->unit, maximum = (cut->message - 1) / unit, before = 0;
    if (cut->fragments > rules->max_fragments)
        return 0;
    for (uint64_t i = 0; i + 1 < cut->fragments; i++) {
        uint64_t position = position_at(view, cut->first + i), size;
        if (position <= before || position > maximum)
            return 0;
        size = (position - before) * unit;
        if (size < rules->min_fragment || size > rules->max_fragment)
            return 0;
        before = position;
    }
    cut->last_position = before;
    before = cut->message - before * unit;
    return before <= rules->max_fragment && (cut->fragments == 1 || before >= rules->min_fragment);
}

static uint64_t distance(uint64_t one, uint64_t other)
{
    return one < other ? other - one : one - other;
}

/* The last fragment is off by half a unit and a trace from a size between those of the records. */
static int keeps_margin(const slt_rules *rules, const cut_record *low, const cut_record *high)
{
    uint64_t moved = rules->unit * distance(low->last_position, high->last_position);
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

/* Whether all that is computed between these two keeps the limits and fits 64 bits. */
static int is_stretch(const slt_view *view, const slt_rules *rules, const cut_record *low,
                      const cut_record *high)
{
    if (high->message - low->message == 1)
        return 1;
    if (high->fragments != low->fragments)
        return 0;
    for (uint64_t i = 0; i + 1 < low->fragments; i++) {
        uint64_t one = position_at(view, low->first + i), other = position_at(view, high->first + i);
        if (distance(one, other) > SLT_MAX_STRETCH)
            return 0;
    }
    return low->fragments == 1 || keeps_margin(rules, low, high);
}

/* Eight bytes exactly where one position does not fit four. */
static int has_right_width(const slt_view *view)
{
    uint64_t bits = 0;
    if (view->position_width == 4)
        return 1;
    for (uint64_t i = 0; i < view->position_count; i++)
        bits |= slt_u64(view->positions + 8 * i);
    return bits >> 32 != 0;
}

int slt_check_cuts(slt_view *view, const slt_rules *rules)
{
    cut_record low = {0}, high;
    uint64_t first = 0, maximum = 0;
    if (!has_right_width(view) || !slt_spans(view->cuts, view->cut_count, SLT_CUT_BYTES, rules))
        return SLUICE_E_INVALID;
    for (uint64_t at = 0; at < view->cut_count; at++) {
        if (!read_record(view, at, first, &high) || !keeps_limits(view, rules, &high) ||
            (at > 0 && !is_stretch(view, rules, &low, &high)))
            return SLUICE_E_INVALID;
        first += high.fragments - 1;
        maximum = high.fragments > maximum ? high.fragments : maximum;
        low = high;
    }
    view->max_schedule_fragments = maximum;
    return first == view->position_count ? SLUICE_OK : SLUICE_E_INVALID;
}
