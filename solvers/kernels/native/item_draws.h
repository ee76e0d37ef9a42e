/* Cuts of items in many draws of the stages' costs and of the ready times; solvers/kernels/items.py
   has the same. */
#ifndef SLUICE_ITEM_DRAWS_H
#define SLUICE_ITEM_DRAWS_H

#include <stdint.h>

#include "draws.h"

typedef struct {
    const sluice_draws *costs;
    int64_t items;              /* m */
    const double *ready_us;     /* (m+1) when the first u items are ready */
    const double *ready_factor; /* (draws) of all ready times of a draw */
    const int64_t *bytes;       /* (m+1) of the first u items */
    const double *own_us;       /* (stages, m+1) what the first u items take besides */
    int64_t is_serial;          /* 1: a fragment enters when the one before has left all stages */
} sluice_item_draws;

/* Latencies (count, draws) in us of cuts, each of so many fragments, whose ends are one behind the
   other. 0, or -1 where memory is short. */
int sluice_items_in_draws(const sluice_item_draws *of, int64_t count, const int64_t *fragments,
                          const int64_t *ends, double *latency_us);

#endif
