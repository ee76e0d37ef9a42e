/* SPDX-License-Identifier: Apache-2.0 */
/* Repeated sizes: docs/format.md, Validation, 6 and 7. */
#include "table.h"

typedef struct slt_repeat_record {
    uint64_t offset; /* of the record in the file */
    uint64_t message;
    uint64_t size;      /* 0: none can be repeated */
    uint64_t fragments; /* 0 then */
    uint64_t remainder; /* the last fragment */
} slt_repeat_record;

static uint64_t slt_smaller(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

/* Read record `at`, where its figures are ones and belong to its size. */
static int slt_read_repeat(const slt_view *view, uint64_t at, slt_repeat_record *repeat,
                           slt_fault *fault)
{
    const unsigned char *record = view->repeats + SLT_REPEAT_BYTES * at;
    uint64_t latency = slt_u64(record + SLT_REPEAT_LATENCY);
    uint64_t gap = slt_u64(record + SLT_REPEAT_GAP);
    repeat->offset = (uint64_t)(record - view->bytes);
    repeat->message = slt_u64(record);
    repeat->size = slt_u64(record + SLT_REPEAT_SIZE);
    repeat->fragments = repeat->remainder = 0;
    if (!slt_is_figure(latency))
        return slt_broken(fault, repeat->offset + SLT_REPEAT_LATENCY,
                          "a latency is finite and without a minus sign");
    if (!slt_is_figure(gap))
        return slt_broken(fault, repeat->offset + SLT_REPEAT_GAP,
                          "a gap is finite and without a minus sign");
    if (repeat->size == 0 && (latency != 0 || gap != 0))
        return slt_broken(fault, repeat->offset + SLT_REPEAT_SIZE,
                          "where no size is repeated, latency and gap are zero");
    if (repeat->size == 0)
        return SLUICE_OK;
    repeat->fragments = (repeat->message - 1) / repeat->size + 1;
    repeat->remainder = repeat->message - (repeat->fragments - 1) * repeat->size;
    return SLUICE_OK;
}

/* Whether fragments of this size, and what is left, keep the limits. */
static int slt_repeat_keeps_limits(const slt_rules *rules, const slt_repeat_record *repeat)
{
    if (repeat->size == 0)
        return 1;
    if (slt_smaller(repeat->size, repeat->message) > rules->max_fragment ||
        repeat->fragments > rules->max_fragments)
        return 0;
    return repeat->fragments == 1 ||
           (repeat->size % rules->unit == 0 &&
            slt_smaller(repeat->size, repeat->remainder) >= rules->min_fragment);
}

/* Where the size stays and the count changes: the size keeps its count and the limits up to the
   next record. */
static int slt_keeps_its_count(const slt_rules *rules, const slt_repeat_record *low, uint64_t next)
{
    return (next - 2) / low->size + 1 == low->fragments &&
           slt_smaller(low->size, next - 1) <= rules->max_fragment;
}

/* Where the size grows: by whole units; and as it is rounded up by less than 1.5 units, the
   remainder, which pays for all, can afford it. */
static int slt_may_grow(const slt_rules *rules, const slt_repeat_record *low,
                        const slt_repeat_record *high)
{
    uint64_t grown = (high->size - low->size) / rules->unit, minimum;
    if (high->size < low->size || (high->size - low->size) % rules->unit != 0 ||
        grown > SLT_MAX_STRETCH)
        return 0;
    if (grown == 0 || low->fragments == 1 || rules->min_fragment == 1)
        return 1;
    minimum = slt_smaller(low->remainder, high->remainder);
    return 2 * (minimum - rules->min_fragment) >= 3 * rules->unit * (low->fragments - 1);
}

static int slt_check_repeat_stretch(const slt_rules *rules, const slt_repeat_record *low,
                                    const slt_repeat_record *high, slt_fault *fault)
{
    if (low->size == 0 || high->message - low->message == 1)
        return SLUICE_OK;
    if (low->fragments != high->fragments && !slt_keeps_its_count(rules, low, high->message))
        return slt_broken(fault, high->offset + SLT_REPEAT_SIZE,
                          "a repeated size keeps its count and the limits up to the next record");
    if (low->fragments == high->fragments && !slt_may_grow(rules, low, high))
        return slt_broken(fault, high->offset + SLT_REPEAT_SIZE,
                          "a repeated size grows by whole units, as far as the last fragment allows");
    return SLUICE_OK;
}

/* Check record `at`, and what is between it and the one before. */
static int slt_check_repeat(const slt_view *view, const slt_rules *rules, uint64_t at,
                            const slt_repeat_record *low, slt_repeat_record *high, slt_fault *fault)
{
    int code = slt_read_repeat(view, at, high, fault);
    if (code == SLUICE_OK && !slt_repeat_keeps_limits(rules, high))
        code = slt_broken(fault, high->offset + SLT_REPEAT_SIZE,
                          "a repeated size and what is left of the message keep the limits");
    if (code == SLUICE_OK && at > 0)
        code = slt_check_repeat_stretch(rules, low, high, fault);
    return code;
}

int slt_check_repeats(const slt_view *view, const slt_rules *rules, slt_fault *fault)
{
    slt_repeat_record low = {0, 0, 0, 0, 0}, high = {0, 0, 0, 0, 0};
    int code =
        slt_check_messages(view, view->repeats, view->repeat_count, SLT_REPEAT_BYTES, rules, fault);
    for (uint64_t at = 0; code == SLUICE_OK && at < view->repeat_count; at++) {
        code = slt_check_repeat(view, rules, at, &low, &high, fault);
        low = high;
    }
    return code;
}
