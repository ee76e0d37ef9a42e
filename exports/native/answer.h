/* All that an answer about one message needs, in one call. */
#ifndef SLUICE_ANSWER_H
#define SLUICE_ANSWER_H

#include <stdint.h>

#include "sluice.h"

/* Bytes of text for each fragment: 15 digits at most (sizes are below 2^49) and a comma. */
enum { SLUICE_TEXT_BYTES = 16 };

/* The latency of `cuts` cuts of `count` fragments each: solvers/kernels/native/recurrence.h. */
typedef int sluice_evaluate(const void *pipeline, int64_t cuts, int64_t count, const double *sizes,
                         double *latency_us);

/* Eight bytes a field, so that a caller may read them as an array of words. */
typedef struct {
    const sluice_table *table;  /* in */
    sluice_evaluate *evaluator; /* in */
    const void *pipeline;       /* in: the evaluator's */
    uint64_t capacity;          /* in: fragments that the arrays have room for */
    uint64_t *fragment_bytes;   /* in: (capacity) */
    double *sizes;              /* in: (capacity) scratch */
    char *text;                 /* in: (capacity * SLUICE_TEXT_BYTES) */
    uint64_t fragments;         /* out */
    uint64_t text_bytes;        /* out: of `text`, the sizes as decimal numbers between commas */
    uint64_t repeat_bytes;      /* out: 0 where no size can be repeated; repeats is 0 then */
    uint64_t repeats;           /* out: fragments of the repeated size, the remainder included */
    double cut_gap, repeat_gap; /* out */
    double cut_us, repeat_us;   /* out: latencies without the pipeline's delay */
} sluice_answer;

/* 0, or what the library's lookups return: SLUICE_E_CAPACITY where either cut is longer than the
   arrays, SLUICE_E_ARGUMENT where the evaluator declines. */
int sluice_answer_for(sluice_answer *answer, uint64_t message_bytes);

#endif
