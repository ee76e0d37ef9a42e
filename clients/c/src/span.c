/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a message's cut. */
#include "span.h"

/* Whether the positions of this record are inside the file, and where. What was checked when the
   table was opened is checked again, at the cost of a comparison or two, because the bytes of a
   mapped file can be overwritten by others: then a lookup may say anything, but reads nothing
   outside. */
static int slt_find_positions(const slt_view *view, const unsigned char *record, uint64_t count,
                          const unsigned char **positions)
{
    uint64_t first = slt_u64(record + SLT_CUT_FIRST);
    if (first > view->position_count || count > view->position_count - first)
        return 0;
    *positions = view->positions + view->position_width * first;
    return 1;
}

int slt_find_span(const slt_view *view, uint64_t message, slt_span *span)
{
    uint64_t at = slt_locate_cut(view, message);
    const unsigned char *record = view->cuts + SLT_CUT_BYTES * at, *next = record + SLT_CUT_BYTES;
    uint64_t begin = slt_u64(record), end;
    span->width = view->position_width;
    span->count = (uint64_t)slt_u32(record + SLT_CUT_FRAGMENTS) - 1;
    if (!slt_find_positions(view, record, span->count, &span->low))
        return SLUICE_E_INVALID;
    if (begin == message) {
        span->high = span->low;
        span->share = (uint64_t)1 << 31;
        return SLUICE_OK;
    }
    if (at + 1 >= view->cut_count || !slt_find_positions(view, next, span->count, &span->high))
        return SLUICE_E_INVALID;
    end = slt_u64(next);
    if (begin > message || end <= message)
        return SLUICE_E_INVALID;
    span->share = ((message - begin) << 32) / (end - begin) & UINT32_MAX;
    return SLUICE_OK;
}
