/* SPDX-License-Identifier: Apache-2.0 */
/* Repeated sizes: docs/format.md, Validation, 6 and 7. */
#include "table.h"

typedef struct repeat_record {
    uint64_t message;
    uint64_t size;      /* 0: none can be repeated */
    uint64_t fragments; /* 0 then */
    uint64_t remainder; /* the last fragment */
} repeat_record;

static uint64_t smaller(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

/* Read record `at`, where its figures are ones and belong to its size. */
static int read_record(const slt_view *view, uint64_t at, repeat_record *repeat)
{
    const unsigned char *record = view->repeats + SLT_REPEAT_BYTES * at;
    uint64_t latency = slt_u64(record + SLT_REPEAT_LATENCY), gap = slt_u64(record + SLT_REPEAT_GAP);
    repeat->message = slt_u64(record);
    repeat->size = slt_u64(record + SLT_REPEAT_SIZE);
    repeat->fragments = repeat->remainder = 0;
    if (!slt_is_figure(latency) || !slt_is_figure(gap))
        return 0;
    if (repeat->size == 0)
        return latency == 0 && gap == 0;
    repeat->fragments = (repeat->message - 1) / repeat->size + 1;
    repeat->remainder = repeat->message - (repeat->fragments - 1) * repeat->size;
    return 1;
}

static int keeps_limits(const slt_rules *rules, const repeat_record *repeat)
{
    if (repeat->size == 0)
        return 1;
    if (smaller(repeat->size, repeat->message) > rules->max_fragment ||
        repeat->fragments > rules->max_fragments)
        return 0;
    return repeat->fragments == 1 ||
           (repeat->size % rules->unit == 0 &&
            smaller(repeat->size, repeat->remainder) >= rules->min_fragment);
}

/* Where the size stays and the count changes: the size keeps its count and the limits up to the
   next record. */
static int keeps_its_count(const slt_rules *rules, const repeat_record *low, uint64_t next)
{
    return (next - 2) / low->size + 1 == low->fragments &&
           smaller(low->size, next - 1) <= rules->max_fragment;
}

/* Where the size grows: by whole units; and as it is rounded up by less than 1.5 units, the
   remainder, which pays for all, can afford it. */
static int may_grow(const slt_rules *rules, const repeat_record *low, const repeat_record *high)
{
    uint64_t grown = (high->size - low->size) / rules->unit, minimum;
    if (high->size < low->size || (high->size - low->size) % rules->unit != 0 ||
        grown > SLT_MAX_STRETCH)
        return 0;
    if (grown == 0 || low->fragments == 1 || rules->min_fragment == 1)
        return 1;
    minimum = smaller(low->remainder, high->remainder);
    return 2 * (minimum - rules->min_fragment) >= 3 * rules->unit * (low->fragments - 1);
}

static int is_stretch(const slt_rules *rules, const repeat_record *low, const repeat_record *high)
{
    if (low->size == 0 || high->message - low->message == 1)
        return 1;
    if (low->fragments != high->fragments)
        return keeps_its_count(rules, low, high->message);
    return may_grow(rules, low, high);
}

int slt_check_repeats(const slt_view *view, const slt_rules *rules)
{
    repeat_record low = {0}, high;
    if (!slt_spans(view->repeats, view->repeat_count, SLT_REPEAT_BYTES, rules))
        return SLUICE_E_INVALID;
    for (uint64_t at = 0; at < view->repeat_count; at++) {
        if (!read_record(view, at, &high) || !keeps_limits(rules, &high) ||
            (at > 0 && !is_stretch(rules, &low, &high)))
            return SLUICE_E_INVALID;
        low = high;
    }
    return SLUICE_OK;
}
