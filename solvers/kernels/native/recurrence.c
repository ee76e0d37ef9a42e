#include "recurrence.h"

#include <stdlib.h>
#include <string.h>

#include "portable.h"

/* Source    Wang98 eq. (1)-(3): tau_ij = max(tau_i-1,j, tau_i,j-1) + t_ij.
   Notation  t (GROUP, CHUNK) times of a chunk of fragments in a group of stages, us;
             tau (GROUP) when each stage of the group is free, us.
   Cost      one pass over the cells. Stages are taken in groups: within a group a fragment's chain
             of maxima overlaps with that of the fragments behind it, so that the processor waits
             for one addition and one maximum a fragment, and not for one a cell.
   Exact     the operations of the evaluator, in its order: the same bits.
   Traps     ends of ranges are inclusive; a size that is no number is in the last range. */

#define CHUNK 256
#define GROUP 4

/* One line: the loop that vectorises. */
CLONES static void times_of_line(int64_t count, double overhead, double cost,
                                        double divisor, const double *restrict sizes,
                                        double *restrict t)
{
    for (int64_t i = 0; i < count; i++)
        t[i] = overhead + cost * sizes[i] / divisor;
}

static void times_of_ranges(const sluice_pipeline *all, int64_t first, int64_t ranges,
                            int64_t count, const double *sizes, double *t)
{
    const double *ends = all->end_bytes + first;
    for (int64_t i = 0; i < count; i++) {
        int64_t low = 0, high = ranges - 1;
        while (low < high) {
            int64_t middle = (low + high) / 2;
            if (sizes[i] <= ends[middle])
                high = middle;
            else
                low = middle + 1;
        }
        t[i] = all->overhead_us[first + low] + all->cost[first + low] * sizes[i] / all->divisor;
    }
}

/* Times of a chunk in `stages` stages that begin at range `first`. */
static void times_of(const sluice_pipeline *all, const int64_t *ranges, int64_t stages,
                     int64_t first, int64_t count, const double *sizes, double t[GROUP][CHUNK])
{
    for (int64_t j = 0; j < stages; j++) {
        if (ranges[j] == 1)
            times_of_line(count, all->overhead_us[first], all->cost[first], all->divisor, sizes,
                          t[j]);
        else
            times_of_ranges(all, first, ranges[j], count, sizes, t[j]);
        first += ranges[j];
    }
}

/* A chunk through a group; `passed` holds when each fragment comes, then when it leaves. */
INLINE void pass(int64_t stages, int64_t count, double t[GROUP][CHUNK], double *tau,
                        double *passed)
{
    double free_at[GROUP];
    for (int64_t j = 0; j < stages; j++)
        free_at[j] = tau[j];
    for (int64_t i = 0; i < count; i++) {
        double ready = passed[i];
        for (int64_t j = 0; j < stages; j++)
            ready = free_at[j] = (ready > free_at[j] ? ready : free_at[j]) + t[j][i];
        passed[i] = ready;
    }
    for (int64_t j = 0; j < stages; j++)
        tau[j] = free_at[j];
}

/* The constant counts let the compiler keep the group in registers. */
static void pass_group(int64_t stages, int64_t count, double t[GROUP][CHUNK], double *tau,
                       double *passed)
{
    switch (stages) {
    case 1: pass(1, count, t, tau, passed); break;
    case 2: pass(2, count, t, tau, passed); break;
    case 3: pass(3, count, t, tau, passed); break;
    default: pass(GROUP, count, t, tau, passed); break;
    }
}

static double latency_of(const sluice_pipeline *all, int64_t count, const double *sizes)
{
    double tau[SLUICE_RECURRENCE_MAX_STAGES] = {0.0}, t[GROUP][CHUNK], passed[CHUNK];
    for (int64_t done = 0; done < count; done += CHUNK) {
        int64_t some = count - done < CHUNK ? count - done : CHUNK, first = 0;
        for (int64_t i = 0; i < some; i++)
            passed[i] = 0.0;
        for (int64_t j = 0; j < all->stages; j += GROUP) {
            int64_t stages = all->stages - j < GROUP ? all->stages - j : GROUP;
            times_of(all, all->ranges + j, stages, first, some, sizes + done, t);
            pass_group(stages, some, t, tau + j, passed);
            for (int64_t e = 0; e < stages; e++)
                first += all->ranges[j + e];
        }
    }
    return tau[all->stages - 1];
}

int sluice_latencies(const sluice_pipeline *pipeline, int64_t cuts, int64_t count,
                     const double *sizes, double *latency_us)
{
    if (pipeline->stages < 1 || pipeline->stages > SLUICE_RECURRENCE_MAX_STAGES)
        return -1;
    for (int64_t m = 0; m < cuts; m++)
        latency_us[m] = latency_of(pipeline, count, sizes + m * count);
    return 0;
}

int sluice_changed_latencies(const sluice_pipeline *pipeline, int64_t changes,
                             const int64_t *stages, const double *factors, int64_t count,
                             const double *sizes, double *latency_us)
{
    int64_t first[SLUICE_RECURRENCE_MAX_STAGES + 1] = {0};
    if (pipeline->stages < 1 || pipeline->stages > SLUICE_RECURRENCE_MAX_STAGES)
        return -1;
    for (int64_t j = 0; j < pipeline->stages; j++)
        first[j + 1] = first[j] + pipeline->ranges[j];
    const size_t bytes = (size_t)first[pipeline->stages] * sizeof(double);
    double *overhead = malloc(2 * bytes), *cost = overhead + first[pipeline->stages];
    if (overhead == NULL)
        return -1;
    sluice_pipeline changed = *pipeline;
    changed.overhead_us = overhead;
    changed.cost = cost;
    for (int64_t c = 0; c < changes; c++) {
        memcpy(overhead, pipeline->overhead_us, bytes);
        memcpy(cost, pipeline->cost, bytes);
        for (int64_t r = first[stages[c]]; r < first[stages[c] + 1]; r++) {
            overhead[r] *= factors[c];
            cost[r] *= factors[c];
        }
        latency_us[c] = latency_of(&changed, count, sizes);
    }
    free(overhead);
    return 0;
}
