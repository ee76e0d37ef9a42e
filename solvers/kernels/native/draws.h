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

typedef struct {
    int64_t message_bytes;
    int64_t min_bytes, max_bytes, unit_bytes, max_count; /* of fragments; one piece may be of any
                                                            size that is no larger than the most */
    double precision; /* a good size within this of a bad one, relative, is not moved */
    double share;     /* of the draws in which a good size keeps to its limit, at the least */
} sluice_halving;

/* Move each good size towards its bad one, both (count), by halving, as far as it is still good: its
   latency is at most its limit, (count, draws), in enough draws, and the limits admit it. 0, or -1
   without memory. */
int sluice_good_ends(const sluice_draws *all, const sluice_halving *how, int64_t count,
                     const double *limits_us, int64_t *good, int64_t *bad);

#endif
