/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups: the repeated size, the schedule into an array, the certificate. Integers alone, nothing
   allocated, nothing written but the answer. */
#include "span.h"

/* Fragments whose positions are put aside at a time: enough for vectors, little on the stack. */
enum { SLT_CHUNK = 64 };

/* Whether the message is in the table's range. */
static inline int slt_is_inside(const slt_view *view, uint64_t message)
{
    return message - view->min_message <= view->range;
}

/* The repeated size between two records, both sizes not 0 and the counts equal: docs/format.md,
   Reading a repeated size. Both roundings are upwards. */
static uint64_t slt_grown_size(const slt_view *view, uint64_t size, uint64_t after, uint64_t done,
                           uint64_t length)
{
    uint64_t share = ((done << 32) + length - 1) / length, difference = after - size;
    uint64_t units = view->unit == 1 ? difference : difference / view->unit;
    return size + view->unit * ((units * share + UINT32_MAX) >> 32);
}

/* The repeated size for this message, 0 where there is none. Where the next record's size is not
   greater, either the counts differ or the size stays, so nothing has to be divided. */
static uint64_t slt_repeated_size(const slt_view *view, uint64_t message)
{
    uint64_t at = slt_locate_repeat(view, message);
    const unsigned char *record = view->repeats + SLT_REPEAT_BYTES * at, *next;
    uint64_t begin = slt_u64(record), size = slt_u64(record + SLT_REPEAT_SIZE), end, after;
    if (begin == message || size == 0 || at + 1 >= view->repeat_count)
        return size;
    next = record + SLT_REPEAT_BYTES;
    end = slt_u64(next);
    after = slt_u64(next + SLT_REPEAT_SIZE);
    if (after <= size || end <= begin || (begin - 1) / size != (end - 1) / after)
        return size;
    return slt_grown_size(view, size, after, message - begin, end - begin);
}

/* Whether this size, repeated, keeps the limits of the table. */
static int slt_is_repeat(const slt_rules *rules, uint64_t message, uint64_t size)
{
    uint64_t fragments = size ? (message - 1) / size + 1 : 1;
    uint64_t remainder = message - (fragments - 1) * size;
    if (size == 0)
        return 1;
    if ((size < message ? size : message) > rules->max_fragment || fragments > rules->max_fragments)
        return 0;
    return fragments == 1 || (size % rules->unit == 0 && size >= rules->min_fragment &&
                              remainder >= rules->min_fragment);
}

/* Whether these sizes sum to the message and keep the limits of the table. */
static int slt_is_schedule(const slt_rules *rules, uint64_t message, const uint64_t *sizes,
                           uint64_t count)
{
    uint64_t left = message;
    for (uint64_t i = 0; i < count; i++) {
        if (sizes[i] < 1 || sizes[i] > left || sizes[i] > rules->max_fragment)
            return 0;
        if (count > 1 && sizes[i] < rules->min_fragment)
            return 0;
        if (i + 1 < count && sizes[i] % rules->unit != 0)
            return 0;
        left -= sizes[i];
    }
    return left == 0 && count <= rules->max_fragments;
}

int sluice_repeat(const sluice_table *table, uint64_t message_bytes, uint64_t *size_bytes)
{
    const slt_view *view = slt_open_view(table);
    uint64_t size;
    if (!view || !size_bytes)
        return SLUICE_E_ARGUMENT;
    if (!slt_is_inside(view, message_bytes))
        return SLUICE_E_RANGE;
    size = slt_repeated_size(view, message_bytes);
    if (SLT_IS_CHECKED && !slt_is_repeat(&view->rules, message_bytes, size))
        return SLUICE_E_INVALID;
    if (size == 0)
        return SLUICE_E_NO_REPEAT;
    *size_bytes = size;
    return SLUICE_OK;
}

/* Up to CHUNK positions in units, from the two cuts' four-byte ones. A loop that vectorises. */
static void slt_mix_chunk(const unsigned char *__restrict low, const unsigned char *__restrict high,
                      uint32_t share, uint64_t count, uint64_t *__restrict positions)
{
    for (uint64_t i = 0; i < count; i++)
        positions[i] = slt_mix4(slt_u32(low + 4 * i), slt_u32(high + 4 * i), share);
}

/* The fragments of a span of four-byte positions; the last position, in units. */
static uint64_t slt_fill4(const slt_span *span, uint64_t unit, uint64_t *__restrict out)
{
    uint64_t positions[SLT_CHUNK + 1];
    positions[0] = 0;
    for (uint64_t done = 0; done < span->count; done += SLT_CHUNK) {
        uint64_t left = span->count - done, count = left < SLT_CHUNK ? left : (uint64_t)SLT_CHUNK;
        slt_mix_chunk(span->low + 4 * done, span->high + 4 * done, (uint32_t)span->share, count,
                  positions + 1);
        for (uint64_t i = 0; i < count; i++)
            out[done + i] = unit * (positions[i + 1] - positions[i]);
        positions[0] = positions[count];
    }
    return positions[0];
}

static uint64_t slt_fill8(const slt_span *span, uint64_t unit, uint64_t *__restrict out)
{
    uint64_t before = 0;
    for (uint64_t i = 0; i < span->count; i++) {
        uint64_t position = slt_position(span, i);
        out[i] = unit * (position - before);
        before = position;
    }
    return before;
}

int sluice_schedule(const sluice_table *table, uint64_t message_bytes, uint64_t *fragment_bytes,
                    size_t capacity, size_t *fragments)
{
    const slt_view *view = slt_open_view(table);
    slt_span span;
    uint64_t last;
    int code;
    if (!view || !fragments || (!fragment_bytes && capacity))
        return SLUICE_E_ARGUMENT;
    if (!slt_is_inside(view, message_bytes))
        return SLUICE_E_RANGE;
    code = slt_find_span(view, message_bytes, &span);
    if (code != SLUICE_OK)
        return code;
    *fragments = (size_t)span.count + 1;
    if (capacity <= span.count)
        return SLUICE_E_CAPACITY;
    last = span.width == 4 ? slt_fill4(&span, view->unit, fragment_bytes)
                           : slt_fill8(&span, view->unit, fragment_bytes);
    fragment_bytes[span.count] = message_bytes - view->unit * last;
    if (SLT_IS_CHECKED &&
        !slt_is_schedule(&view->rules, message_bytes, fragment_bytes, span.count + 1))
        return SLUICE_E_INVALID;
    return SLUICE_OK;
}

int sluice_certificate(const sluice_table *table, uint64_t message_bytes, double *cut_gap,
                       double *repeat_gap)
{
    const slt_view *view = slt_open_view(table);
    uint64_t at;
    if (!view)
        return SLUICE_E_ARGUMENT;
    if (!slt_is_inside(view, message_bytes))
        return SLUICE_E_RANGE;
    if (cut_gap) {
        at = slt_locate_cut(view, message_bytes);
        *cut_gap = slt_f64(slt_u64(view->cuts + SLT_CUT_BYTES * at + SLT_CUT_GAP));
    }
    if (repeat_gap) {
        at = slt_locate_repeat(view, message_bytes);
        *repeat_gap = slt_f64(slt_u64(view->repeats + SLT_REPEAT_BYTES * at + SLT_REPEAT_GAP));
    }
    return SLUICE_OK;
}
