/* Repeated sizes of a message over draws of the costs; analysis/repeated_sizes.py is the same in
   NumPy. */
#ifndef SLUICE_SIZES_H
#define SLUICE_SIZES_H

#include "draws.h"

/* Of fragments; one piece may be of any size that is no larger than the most. */
typedef struct {
    int64_t message_bytes;
    int64_t min_bytes, max_bytes, unit_bytes, max_count;
    int64_t low_bytes, high_bytes; /* no other cut is looked at */
} sluice_size_limits;

typedef struct {
    int64_t screened; /* draws in which all sizes are priced, at most all draws */
    double regret;    /* a size beyond that in each of them is left out */
    int64_t rounded;  /* so many of the best sizes, 1 to SLUICE_MAX_ROUNDED, are rounded */
    int64_t beside;   /* sizes that are tried on either side of the best one */
} sluice_size_search;

/* Which sizes a message is tried in, none below `smallest_bytes`. */
typedef struct {
    int64_t smallest_bytes;
    int64_t powers;  /* powers of two below this one, and three times these */
    int64_t divided; /* B/k, rounded up, for k up to this */
    int64_t before;  /* the size before B/k for k up to this */
} sluice_size_grid;

/* A size keeps it that is a multiple of the unit, times a power of two no more than `max_odd`. */
typedef struct {
    int64_t unit_bytes, max_odd;
} sluice_round_rule;

enum { SLUICE_SIZES_NO_MEMORY = -1, SLUICE_MAX_ROUNDED = 64 };

/* The sizes that are worth pricing in all draws, ascending and once each: tried are those of the
   grid, the message over each of the octaves, ends of ranges and the size behind them, rounded up to
   the unit, and those given, which ascend; where a cut of them is between the limits' sizes no other
   cut than such. Of what is admitted those near the best are kept, and those given. There is room
   for all that are named, one of them the least size that the count admits. Returns how many there
   are, or SLUICE_SIZES_NO_MEMORY. */
int64_t sluice_near_sizes(const sluice_draws *all, const sluice_size_limits *limits,
                          const sluice_size_search *how, const sluice_size_grid *grid,
                          int64_t octave_count, const double *octaves, int64_t end_count,
                          const int64_t *ends, int64_t given_count, const int64_t *given,
                          int64_t *sizes);

/* Sizes, ascending, and their latencies (sizes, draws) in us: the first `count` of them, which are
   there, then multiples of the units below and above the best, and sizes beside the very best. Both
   arrays have room for `count` + 2 `rounded` x `unit_count` + 2 (`beside` + 2) sizes. Returns how
   many there are, or SLUICE_SIZES_NO_MEMORY. */
int64_t sluice_price_sizes(const sluice_draws *all, const sluice_size_limits *limits,
                           const sluice_size_search *how, int64_t unit_count,
                           const int64_t *units, int64_t count, int64_t *sizes,
                           double *latency_us);

/* Of latencies (count, draws) in us, at least one size: the least of each draw (draws), and of each
   size, (count), the mean and the mean regret over the least; 0 or infinite where that takes no time.
   0, or SLUICE_SIZES_NO_MEMORY. */
int sluice_summarise(int64_t count, int64_t draws, const double *latency_us, double *best_us,
                     double *mean_us, double *mean_regret);

/* For each rule the place of the size of least mean regret that keeps it, one piece aside; -1
   without any. Of those that are as fast it is the one that the highest power of two divides. */
void sluice_round_sizes(int64_t message_bytes, int64_t count, const int64_t *sizes,
                        const double *mean_regret, int64_t rule_count,
                        const sluice_round_rule *rules, int64_t *places);

typedef struct {
    int64_t jumps_from, jumps_to; /* sizes before B/k are tried for these k, among good ones */
    int64_t fragments_to;         /* before the remainder that passes an end of a range */
    double precision;             /* of the ends of intervals, relative */
    double share;                 /* of the draws in which a good size keeps to its limit */
} sluice_good_search;

/* Intervals of good sizes: (level, low, high) one behind the other, by level, ascending. A size is
   good whose latency is at most the level's limit in enough draws; limits_us is (levels, draws), no
   level above the one behind it. `sizes` ascend, their latencies are (count, draws); `ends` of
   ranges ascend, once each. There is room for levels x (m/2 + 1) intervals of three numbers each, m
   being `count` + `jumps_to` + 2 (`fragments_to` + 1) x `end_count`. Returns how many there are, or
   SLUICE_SIZES_NO_MEMORY. */
int64_t sluice_good_sizes(const sluice_draws *all, const sluice_size_limits *limits,
                          const sluice_good_search *how, int64_t count, const int64_t *sizes,
                          const double *latency_us, int64_t levels, const double *limits_us,
                          int64_t end_count, const int64_t *ends, int64_t *intervals);

#endif
