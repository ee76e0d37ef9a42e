/* Cuts of a message in many draws of the stages' costs. */
#ifndef SLUICE_DRAWS_H
#define SLUICE_DRAWS_H

#include <stdint.h>

typedef struct {
    int64_t stages;            /* at least 1 */
    int64_t ranges;            /* of every stage, at least 1 */
    int64_t draws;             /* at least 1 */
    int64_t row;               /* numbers from one row of draws to the next, at least `draws` */
    const double *overhead_us; /* (stages, ranges, row) */
    const double *ns_per_byte; /* (stages, ranges, row) */
    const double *ends_bytes;  /* (stages, ranges - 1, row) inclusive, ascending; infinite where
                                  there is no further range; not read for one range */
    double delay_us;           /* added to each latency */
} sluice_draws;

/* Latencies (count, draws) in us of a message in each of these repeated sizes, 1 to the message, in
   bytes. 0, or -1 without memory. */
int sluice_repeated_in_draws(const sluice_draws *all, int64_t message_bytes, int64_t count,
                             const int64_t *sizes, double *latency_us);

/* Latencies (draws) in us of one cut into these fragments, at least one, of 1 byte and more each.
   0, or -1 without memory. */
int sluice_cut_in_draws(const sluice_draws *all, int64_t count, const int64_t *sizes,
                        double *latency_us);

/* What pricing one size needs. */
typedef struct {
    double *t, *first, *slowest, *last; /* (draws) */
    double *low, *high;                 /* (stages, ranges - 1) of each end over the draws */
} sluice_draws_room;

/* 0, or -1 without memory; free `t`. */
int sluice_draws_open(const sluice_draws *all, sluice_draws_room *use);

/* The same latencies (draws) of one repeated size. */
void sluice_draws_price(const sluice_draws *all, const sluice_draws_room *use,
                        int64_t message_bytes, int64_t size, double *latency_us);

#endif
