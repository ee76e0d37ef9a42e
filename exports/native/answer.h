/* All that an answer about one message needs, in one call. */
#ifndef SLUICE_ANSWER_H
#define SLUICE_ANSWER_H

#include <stdint.h>

#include "sluice.h"

/* The latency of `cuts` cuts of `count` fragments each: solvers/kernels/native/recurrence.h. */
typedef int sluice_judge(const void *pipeline, int64_t cuts, int64_t count, const double *sizes,
                         double *latency_us);

typedef struct {
    uint64_t capacity;        /* in: of both arrays */
    uint64_t *fragment_bytes; /* in: is filled */
    double *sizes;            /* in: scratch */
    uint64_t fragments;       /* out */
    uint64_t repeat_bytes;    /* out: 0 where no size can be repeated; repeats is 0 then */
    uint64_t repeats;         /* out: fragments of the repeated size, the remainder included */
    double cut_gap, repeat_gap; /* out */
    double cut_us, repeat_us;   /* out: latencies without the pipeline's delay */
} sluice_answer;

/* 0, or what the library's look-ups return: SLUICE_E_CAPACITY where either cut is longer than the
   arrays, SLUICE_E_ARGUMENT where the judge declines. */
int sluice_answer_for(const sluice_table *table, uint64_t message_bytes, sluice_judge *judge,
                      const void *pipeline, sluice_answer *answer);

#endif
