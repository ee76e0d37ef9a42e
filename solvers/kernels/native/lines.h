/* A question about stages of one line each: what the small kernels share. */
#ifndef SLUICE_LINES_H
#define SLUICE_LINES_H

#include <stdint.h>

enum { SLUICE_LINES_MAX_STAGES = 64 };

/* In real sizes: a fragment of x bytes takes overhead_us + us_per_byte x. */
typedef struct {
    int64_t n;                 /* stages, 1 .. SLUICE_LINES_MAX_STAGES */
    const double *overhead_us; /* (n) */
    const double *us_per_byte; /* (n) */
    double message_bytes;
    double min_bytes;
    double max_bytes;
} sluice_lines;

/* In whole bytes: a fragment of x bytes takes overhead_us + ns_per_byte x / 1000, the evaluator's
   own operations in its order. */
typedef struct {
    int64_t n;                 /* stages, 1 .. SLUICE_LINES_MAX_STAGES */
    const double *overhead_us; /* (n) */
    const double *ns_per_byte; /* (n) */
    int64_t message_bytes;     /* at least 1, at most 2^48 */
    int64_t min_bytes;         /* of every fragment */
    int64_t max_bytes;         /* of every fragment */
    int64_t unit_bytes;        /* what every size but the last is a multiple of */
    int64_t min_aligned;       /* the least and the greatest such multiple within the limits; */
    int64_t max_aligned;       /* the least may exceed the greatest */
    int64_t k_min;             /* admitted counts */
    int64_t k_max;
    double delay_us;
} sluice_whole;

/* Time of a fragment in a stage. */
static inline double sluice_time_us(const sluice_whole *q, int64_t stage, double bytes)
{
    return q->overhead_us[stage] + q->ns_per_byte[stage] * bytes / 1000.0;
}

/* Latency in us, the delay included, of sizes in bytes: the evaluator's recurrence. */
static inline double sluice_evaluate(const sluice_whole *q, int64_t count, const int64_t *sizes)
{
    double t[SLUICE_LINES_MAX_STAGES], tau[SLUICE_LINES_MAX_STAGES];
    int64_t known = -1;
    for (int64_t j = 0; j < q->n; j++)
        tau[j] = 0.0;
    for (int64_t i = 0; i < count; i++) {
        if (sizes[i] != known) {
            known = sizes[i];
            for (int64_t j = 0; j < q->n; j++)
                t[j] = sluice_time_us(q, j, (double)known);
        }
        double ready = 0.0;
        for (int64_t j = 0; j < q->n; j++)
            ready = tau[j] = (ready > tau[j] ? ready : tau[j]) + t[j];
    }
    return tau[q->n - 1] + q->delay_us;
}

#endif
