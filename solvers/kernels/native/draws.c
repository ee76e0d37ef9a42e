#include "draws.h"

#include <math.h>
#include <stdlib.h>

#include "portable.h"

/* Source    docs/theory.md, "The regret of a setting": q fragments of a size and the rest behind
             them. The equal ones have left stage j at sum_{i<=j} t_i + (q-1) max_{i<=j} t_i.
   Notation  t (draws) times of one fragment in one stage, us; first, slowest their sum and maximum
             over the stages so far; last: when the rest has left;
             left (stages, draws): when the last fragment so far has left each stage, of any cut.
   Cost      one pass over the draws for each size and stage, and one more for a rest; of any cut
             one for each fragment and stage, and one more where a size follows another one.
   Exact     the operations of the same in NumPy, in its order: the same bits. */

CLONES static void times_of_line(int64_t draws, double kilobytes, const double *restrict overhead,
                                 const double *restrict cost, double *restrict t)
{
    for (int64_t i = 0; i < draws; i++)
        t[i] = kilobytes * cost[i] + overhead[i];
}

/* The line behind an end, in the draws in which the size is behind it. */
CLONES static void times_behind(int64_t draws, double kilobytes, double bytes,
                                const double *restrict end, const double *restrict overhead,
                                const double *restrict cost, double *restrict t)
{
    for (int64_t i = 0; i < draws; i++) {
        double behind = kilobytes * cost[i] + overhead[i];
        t[i] = bytes > end[i] ? behind : t[i];
    }
}

enum { LANES = 8 };

/* Stages of one line each: equal fragments in `lanes` draws from the first, and behind them a rest
   if there is one. */
INLINE void price_lines(const sluice_draws *all, int64_t at, int lanes, double kilobytes,
                        double behind_first, double rest_kilobytes, double *restrict out)
{
    double first[LANES] = {0.0}, slowest[LANES] = {0.0}, last[LANES] = {0.0};
    const double *restrict overhead = all->overhead_us + at, *restrict cost = all->ns_per_byte + at;
    for (int64_t j = 0; j < all->stages; j++, overhead += all->row, cost += all->row) {
        KEEP_LOOP
        for (int l = 0; l < lanes; l++) {
            const double t = kilobytes * cost[l] + overhead[l];
            const double rest = rest_kilobytes * cost[l] + overhead[l];
            const double sum = first[l] + t, most = t > slowest[l] ? t : slowest[l];
            const double gone = behind_first * most + sum;
            first[l] = sum;
            slowest[l] = most;
            last[l] = (gone > last[l] ? gone : last[l]) + rest;
        }
    }
    KEEP_LOOP
    for (int l = 0; l < lanes; l++) {
        const double gone = behind_first * slowest[l] + first[l];
        out[at + l] = (rest_kilobytes > 0.0 ? last[l] : gone) + all->delay_us;
    }
}

CLONES static void price_all_lines(const sluice_draws *all, double kilobytes, double behind_first,
                                   double rest_kilobytes, double *restrict out)
{
    const int64_t blocks = all->draws / LANES * LANES;
    for (int64_t at = 0; at < blocks; at += LANES)
        price_lines(all, at, LANES, kilobytes, behind_first, rest_kilobytes, out);
    for (int64_t at = blocks; at < all->draws; at++)
        price_lines(all, at, 1, kilobytes, behind_first, rest_kilobytes, out);
}

CLONES static void pass_equal(int64_t draws, const double *restrict t, double *restrict first,
                              double *restrict slowest)
{
    for (int64_t i = 0; i < draws; i++) {
        first[i] += t[i];
        slowest[i] = t[i] > slowest[i] ? t[i] : slowest[i];
    }
}

CLONES static void pass_rest(int64_t draws, double behind_first, const double *restrict first,
                             const double *restrict slowest, const double *restrict t,
                             double *restrict last)
{
    for (int64_t i = 0; i < draws; i++) {
        double left = behind_first * slowest[i] + first[i];
        last[i] = (left > last[i] ? left : last[i]) + t[i];
    }
}

CLONES static void leave(int64_t draws, double behind_first, double delay,
                         const double *restrict first, const double *restrict slowest,
                         double *restrict out)
{
    for (int64_t i = 0; i < draws; i++)
        out[i] = behind_first * slowest[i] + first[i] + delay;
}

static void times_of(const sluice_draws *all, const sluice_draws_room *use, int64_t stage,
                     int64_t size, double *t)
{
    const double bytes = (double)size, kilobytes = bytes / 1000.0;
    const double *overhead = all->overhead_us + stage * all->ranges * all->row;
    const double *cost = all->ns_per_byte + stage * all->ranges * all->row;
    const double *ends = all->ends_bytes + stage * (all->ranges - 1) * all->row;
    const double *low = use->low + stage * (all->ranges - 1);
    const double *high = use->high + stage * (all->ranges - 1);
    int64_t place = 0;
    while (place < all->ranges - 1 && bytes > high[place]) /* behind it in every draw */
        place++;
    times_of_line(all->draws, kilobytes, overhead + place * all->row, cost + place * all->row, t);
    for (; place < all->ranges - 1 && bytes > low[place]; place++)
        times_behind(all->draws, kilobytes, bytes, ends + place * all->row,
                     overhead + (place + 1) * all->row, cost + (place + 1) * all->row, t);
}

void sluice_draws_price(const sluice_draws *all, const sluice_draws_room *use,
                        int64_t message_bytes, int64_t size, double *out)
{
    const int64_t full = message_bytes / size, rest = message_bytes - full * size;
    const double behind_first = (double)full - 1.0;
    if (all->ranges == 1) {
        price_all_lines(all, (double)size / 1000.0, behind_first, (double)rest / 1000.0, out);
        return;
    }
    for (int64_t i = 0; i < all->draws; i++)
        use->first[i] = use->slowest[i] = use->last[i] = 0.0;
    for (int64_t j = 0; j < all->stages; j++) {
        times_of(all, use, j, size, use->t);
        pass_equal(all->draws, use->t, use->first, use->slowest);
        if (!rest)
            continue;
        times_of(all, use, j, rest, use->t);
        pass_rest(all->draws, behind_first, use->first, use->slowest, use->t, use->last);
    }
    if (!rest) {
        leave(all->draws, behind_first, all->delay_us, use->first, use->slowest, out);
        return;
    }
    for (int64_t i = 0; i < all->draws; i++)
        out[i] = use->last[i] + all->delay_us;
}

static void find_ends(const sluice_draws *all, const sluice_draws_room *use)
{
    for (int64_t at = 0; at < all->stages * (all->ranges - 1); at++) {
        const double *end = all->ends_bytes + at * all->row;
        double low = INFINITY, high = -INFINITY;
        for (int64_t i = 0; i < all->draws; i++) {
            low = end[i] < low ? end[i] : low;
            high = end[i] > high ? end[i] : high;
        }
        use->low[at] = low;
        use->high[at] = high;
    }
}

int sluice_draws_open(const sluice_draws *all, sluice_draws_room *use)
{
    const int64_t draws = all->draws, ends = all->stages * (all->ranges - 1);
    double *memory = malloc((size_t)(4 * draws + 2 * ends) * sizeof *memory);
    if (!memory)
        return -1;
    *use = (sluice_draws_room){memory,
                               memory + draws,
                               memory + 2 * draws,
                               memory + 3 * draws,
                               memory + 4 * draws,
                               memory + 4 * draws + ends};
    find_ends(all, use);
    return 0;
}

int sluice_repeated_in_draws(const sluice_draws *all, int64_t message_bytes, int64_t count,
                             const int64_t *sizes, double *latency_us)
{
    sluice_draws_room use;
    if (sluice_draws_open(all, &use))
        return -1;
    for (int64_t s = 0; s < count; s++)
        sluice_draws_price(all, &use, message_bytes, sizes[s], latency_us + s * all->draws);
    free(use.t);
    return 0;
}

CLONES static void follow(int64_t draws, const double *restrict came, const double *restrict t,
                          double *restrict left)
{
    for (int64_t i = 0; i < draws; i++)
        left[i] = (came[i] > left[i] ? came[i] : left[i]) + t[i];
}

CLONES static void follow_first(int64_t draws, const double *restrict t, double *restrict left)
{
    for (int64_t i = 0; i < draws; i++)
        left[i] += t[i];
}

/* `t` and `left` are (stages, draws). */
static void pass_cut(const sluice_draws *all, const sluice_draws_room *use, int64_t count,
                     const int64_t *sizes, double *t, double *left)
{
    const int64_t draws = all->draws;
    for (int64_t i = 0; i < all->stages * draws; i++)
        left[i] = 0.0;
    for (int64_t s = 0; s < count; s++)
        for (int64_t j = 0; j < all->stages; j++) {
            if (s == 0 || sizes[s] != sizes[s - 1])
                times_of(all, use, j, sizes[s], t + j * draws);
            if (j == 0)
                follow_first(draws, t, left);
            else
                follow(draws, left + (j - 1) * draws, t + j * draws, left + j * draws);
        }
}

int sluice_cut_in_draws(const sluice_draws *all, int64_t count, const int64_t *sizes,
                        double *latency_us)
{
    const int64_t draws = all->draws, cells = all->stages * draws;
    sluice_draws_room use;
    if (sluice_draws_open(all, &use))
        return -1;
    double *memory = malloc((size_t)(2 * cells) * sizeof *memory);
    if (memory) {
        pass_cut(all, &use, count, sizes, memory, memory + cells);
        for (int64_t i = 0; i < draws; i++)
            latency_us[i] = memory[2 * cells - draws + i] + all->delay_us;
    }
    const int status = memory ? 0 : -1;
    free(memory);
    free(use.t);
    return status;
}
