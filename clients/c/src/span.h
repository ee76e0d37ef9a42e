/* SPDX-License-Identifier: Apache-2.0 */
/* From a message size to the positions of its cut: what the array and the iterator share. */
#ifndef SLT_SPAN_H
#define SLT_SPAN_H

#include "table.h"

/* Positions of two neighbouring cuts, to be mixed as (one * share_low + other * share_high + 2^31)
   >> 32, where the shares sum to 2^32 and each is less. A stored cut is mixed with itself. */
typedef struct slt_span {
    const unsigned char *low;
    const unsigned char *high;
    uint64_t share; /* share_high: docs/format.md's f */
    uint64_t count; /* of positions: one fewer than fragments */
    uint64_t width;
} slt_span;

/* The last record with message_bytes <= message, which is inside the range. Where several have to be
   looked at, the first and the last of them are asked for at once: which of them it is, and the line
   that the answer is in, else follow each other through memory. */
static inline uint64_t slt_locate(const slt_index *index, uint32_t scale, const unsigned char *records,
                                  uint64_t stride, uint64_t total, uint64_t message)
{
    const uint16_t *before = index->before + slt_key(message);
    uint64_t at = (uint64_t)before[0] << scale, end = ((uint64_t)before[1] + 1) << scale, count;
    count = (end < total ? end : total) - at;
    __builtin_prefetch(records + stride * at);
    __builtin_prefetch(records + stride * (at + count - 1));
    while (count > 1) { /* without a branch that depends on the sizes */
        uint64_t half = count / 2;
        at += half & (0 - (uint64_t)(slt_u64(records + stride * (at + half)) <= message));
        count -= half;
    }
    return at;
}

/* The same among the cuts, and among the repeats. */
static inline uint64_t slt_locate_cut(const slt_view *view, uint64_t message)
{
    return slt_locate(&view->of_cuts, view->cut_scale, view->cuts, SLT_CUT_BYTES, view->cut_count,
                      message);
}

static inline uint64_t slt_locate_repeat(const slt_view *view, uint64_t message)
{
    return slt_locate(&view->of_repeats, view->repeat_scale, view->repeats, SLT_REPEAT_BYTES,
                      view->repeat_count, message);
}

/* The position between two neighbours: docs/format.md, Reading a schedule. For 4 bytes its
   expression is multiplied out, U1 * (2^32 - f) + U2 * f + 2^31, so that no term is negative; each
   sum is below 2^64 as both positions are below 2^32. */
static inline uint64_t slt_mix4(uint32_t low, uint32_t high, uint32_t share)
{
    uint32_t other = (uint32_t)(((uint64_t)1 << 32) - share);
    return ((uint64_t)low * other + (uint64_t)high * share + ((uint64_t)1 << 31)) >> 32;
}

/* The same for 8 bytes, where only the shift is below 2^31; downwards for a negative one. */
static inline uint64_t slt_mix8(uint64_t low, uint64_t high, uint64_t share)
{
    uint64_t half = (uint64_t)1 << 31;
    if (high >= low)
        return low + (((high - low) * share + half) >> 32);
    return low - (((low - high) * share + half - 1) >> 32);
}

/* Position `at` of the span's cut, in units. */
static inline uint64_t slt_position(const slt_span *span, uint64_t at)
{
    if (span->width == 4)
        return slt_mix4(slt_u32(span->low + 4 * at), slt_u32(span->high + 4 * at),
                        (uint32_t)span->share);
    return slt_mix8(slt_u64(span->low + 8 * at), slt_u64(span->high + 8 * at), span->share);
}

/* The span of a message inside the range: SLUICE_OK, or SLUICE_E_INVALID where the bytes were
   changed after they had been checked. */
SLT_OWN int slt_find_span(const slt_view *view, uint64_t message, slt_span *span);

#endif
