#include "item_draws.h"

#include <stdlib.h>

#include "portable.h"

/* Source    docs/theory.md, "Items", draws.
   Notation  left (stages): when the last fragment so far has left each stage, us; t: what one takes.
   Cost      one pass over fragments and stages for each block of draws.
   Exact     the operations of solvers/kernels/items.py in its order: the same bits. */

enum { LANES = 16, MAX_STAGES = 64 };

/* The times in a stage of a fragment of this size in `lanes` draws from `at`. */
INLINE void times_here(const sluice_draws *all, const sluice_draws_room *use, int64_t stage,
                       int64_t at, int lanes, double bytes, double *restrict t)
{
    const int64_t behind = all->ranges - 1;
    const double *low = use->low + stage * behind, *high = use->high + stage * behind;
    const double *ends = all->ends_bytes + stage * behind * all->row + at;
    const double kilobytes = bytes / 1000.0;
    int64_t place = 0;
    while (place < behind && bytes > high[place]) /* behind it in every draw */
        place++;
    const int64_t first = (stage * all->ranges + place) * all->row + at;
    const double *restrict overhead = all->overhead_us + first;
    const double *restrict cost = all->ns_per_byte + first;
    KEEP_LOOP
    for (int l = 0; l < lanes; l++)
        t[l] = kilobytes * cost[l] + overhead[l];
    for (; place < behind && bytes > low[place]; place++) {
        const double *restrict end = ends + place * all->row;
        overhead += all->row, cost += all->row;
        KEEP_LOOP
        for (int l = 0; l < lanes; l++) {
            const double after = kilobytes * cost[l] + overhead[l];
            t[l] = bytes > end[l] ? after : t[l];
        }
    }
}

INLINE void price_here(const sluice_item_draws *of, const sluice_draws_room *use, int64_t at,
                       int lanes, int64_t count, const int64_t *ends, double *restrict out)
{
    const sluice_draws *all = of->costs;
    const int64_t n = all->stages, row = of->items + 1;
    double left[MAX_STAGES][LANES], ready[LANES], t[LANES], sum[LANES];
    for (int64_t s = 0; s < n; s++)
        for (int l = 0; l < lanes; l++)
            left[s][l] = 0.0;
    for (int64_t q = 0, i = 0; q < count; i = ends[q++]) {
        const int64_t j = ends[q];
        const double bytes = (double)(of->bytes[j] - of->bytes[i]);
        KEEP_LOOP
        for (int l = 0; l < lanes; l++) {
            ready[l] = of->ready_us[j] * of->ready_factor[at + l];
            sum[l] = 0.0;
        }
        for (int64_t s = 0; s < n; s++) {
            const double own = of->own_us[s * row + j] - of->own_us[s * row + i];
            times_here(all, use, s, at, lanes, bytes, t);
            if (of->is_serial) {
                KEEP_LOOP
                for (int l = 0; l < lanes; l++)
                    sum[l] += t[l] + own;
                continue;
            }
            double *restrict free_at = left[s];
            KEEP_LOOP
            for (int l = 0; l < lanes; l++) {
                const double start = ready[l] > free_at[l] ? ready[l] : free_at[l];
                ready[l] = free_at[l] = start + (t[l] + own);
            }
        }
        if (!of->is_serial)
            continue;
        KEEP_LOOP
        for (int l = 0; l < lanes; l++) {
            const double start = ready[l] > left[n - 1][l] ? ready[l] : left[n - 1][l];
            left[n - 1][l] = start + sum[l];
        }
    }
    for (int l = 0; l < lanes; l++)
        out[at + l] = left[n - 1][l] + all->delay_us;
}

CLONES static void price_all(const sluice_item_draws *of, const sluice_draws_room *use,
                             int64_t count, const int64_t *ends, double *restrict out)
{
    const int64_t draws = of->costs->draws, blocks = draws / LANES * LANES;
    for (int64_t at = 0; at < blocks; at += LANES)
        price_here(of, use, at, LANES, count, ends, out);
    for (int64_t at = blocks; at < draws; at++)
        price_here(of, use, at, 1, count, ends, out);
}

int sluice_items_in_draws(const sluice_item_draws *of, int64_t count, const int64_t *fragments,
                          const int64_t *ends, double *latency_us)
{
    sluice_draws_room use;
    if (sluice_draws_open(of->costs, &use))
        return -1;
    for (int64_t c = 0; c < count; ends += fragments[c++])
        price_all(of, &use, fragments[c], ends, latency_us + c * of->costs->draws);
    free(use.t);
    return 0;
}
