/* SPDX-License-Identifier: Apache-2.0 */
/* A schedule fragment by fragment. */
#include "span.h"

typedef struct __attribute__((may_alias)) slt_cut {
    uint64_t seal; /* SLT_CUT_OPEN, or anything else before sluice_cut_begin */
    slt_span span;
    uint64_t next; /* the fragment that is read next */
    uint64_t before;
    uint64_t unit;
    uint64_t message;
    uint64_t min_fragment; /* the limits of each fragment: read where answers are checked */
    uint64_t max_fragment;
} slt_cut;

static_assert(sizeof(slt_cut) <= sizeof(sluice_cut), "an iterator fits a sluice_cut");

#define SLT_CUT_OPEN UINT64_C(0x53c1a7e5ab1e0002)

int sluice_cut_begin(sluice_cut *cut, const sluice_table *table, uint64_t message_bytes)
{
    const slt_view *view = slt_open_view(table);
    slt_cut *own = (slt_cut *)(void *)cut;
    int code;
    if (!own)
        return SLUICE_E_ARGUMENT;
    memset(own, 0, sizeof *own);
    if (!view)
        return SLUICE_E_ARGUMENT;
    if (message_bytes - view->min_message > view->range)
        return SLUICE_E_RANGE;
    code = slt_find_span(view, message_bytes, &own->span);
    if (code != SLUICE_OK)
        return code;
    own->unit = view->unit;
    own->message = message_bytes;
    own->min_fragment = view->rules.min_fragment;
    own->max_fragment = view->rules.max_fragment;
    if (SLT_IS_CHECKED && own->span.count >= view->rules.max_fragments)
        return SLUICE_E_INVALID;
    own->seal = SLT_CUT_OPEN;
    return SLUICE_OK;
}

/* Whether the fragment that ends here keeps the limits, and ends inside the message. */
static int slt_is_next(const slt_cut *own, uint64_t end)
{
    uint64_t size = end - own->before;
    return end > own->before && end <= own->message && size <= own->max_fragment &&
           (own->span.count == 0 || size >= own->min_fragment);
}

int sluice_cut_next(sluice_cut *cut, uint64_t *fragment_bytes)
{
    slt_cut *own = (slt_cut *)(void *)cut;
    uint64_t end;
    if (!own || own->seal != SLT_CUT_OPEN || !fragment_bytes)
        return SLUICE_E_ARGUMENT;
    if (own->next > own->span.count)
        return 0;
    end = own->next == own->span.count ? own->message
                                       : own->unit * slt_position(&own->span, own->next);
    if (SLT_IS_CHECKED && !slt_is_next(own, end))
        return SLUICE_E_INVALID;
    *fragment_bytes = end - own->before;
    own->before = end;
    own->next++;
    return 1;
}
