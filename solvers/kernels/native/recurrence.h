/* The recurrence of the evaluator: latencies of given cuts. */
#ifndef SLUICE_RECURRENCE_H
#define SLUICE_RECURRENCE_H

#include <stdint.h>

enum { SLUICE_RECURRENCE_MAX_STAGES = 64 };

typedef struct {
    int64_t stages;            /* 1 .. SLUICE_RECURRENCE_MAX_STAGES */
    const int64_t *ranges;     /* (stages) ranges of each stage, at least 1 */
    const double *end_bytes;   /* (all ranges, stage by stage) inclusive; that of a stage's last
                                  range is not read, it is without end */
    const double *overhead_us; /* (all ranges) */
    const double *cost;        /* (all ranges) */
    double divisor;            /* a fragment takes overhead + cost * bytes / divisor */
} sluice_pipeline;

/* Latencies (cuts) in us, without a constant delay, of cuts of `count` fragments each; sizes
   (cuts, count) bytes, row by row. 0, or -1 where the pipeline has too many or too few stages. */
int sluice_latencies(const sluice_pipeline *pipeline, int64_t cuts, int64_t count,
                     const double *sizes, double *latency_us);

/* Latencies (changes) of one cut where both costs of a stage are times a factor at every size, for
   each of these changes. 0, or -1 where memory is short or the stages are too many or too few. */
int sluice_changed_latencies(const sluice_pipeline *pipeline, int64_t changes,
                             const int64_t *stages, const double *factors, int64_t count,
                             const double *sizes, double *latency_us);

#endif
