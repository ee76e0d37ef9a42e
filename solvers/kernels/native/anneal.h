/* Random moves between the fragments of a cut whose stages have ranges. */
#ifndef SLUICE_ANNEAL_H
#define SLUICE_ANNEAL_H

#include <stdint.h>

typedef struct {
    int64_t stages, regions;         /* at least 1 */
    const double *low, *high;        /* (regions) least and greatest size, ascending, bytes */
    const double *overhead_us;       /* (regions, stages) */
    const double *us_per_byte;       /* (regions, stages) */
    int64_t min_count, max_count;    /* of fragments */
    double unit_bytes;               /* what amounts that move are multiples of */
    double first;                    /* how much worse a cut may be that is gone on from, of the
                                        best latency: at the beginning; nothing at the end */
    int64_t cells;                   /* of fragments and stages that are evaluated */
    uint64_t seed;
} sluice_anneal_problem;

/* The best cut met from this one on: sizes in size_bytes (max_count), *count of them. Sizes must be
   within the regions. Returns its latency, us without a delay; negative where memory is short. */
double sluice_anneal(const sluice_anneal_problem *problem, double *size_bytes, int64_t *count);

#endif
