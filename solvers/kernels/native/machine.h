/* The evaluator of machines: latencies of given cuts; domain/machine.py is the same in Python. */
#ifndef SLUICE_MACHINE_H
#define SLUICE_MACHINE_H

#include "draws.h"

enum { SLUICE_MACHINE_MAX_NODES = 128, SLUICE_MACHINE_MAX_WINDOWS = 256 };
enum { SLUICE_MACHINE_MAX_PROCESSORS = 2 };

/* Nodes are counted from 0, in the order in which fragments pass. */
typedef struct {
    int64_t nodes;                    /* 1 .. SLUICE_MACHINE_MAX_NODES */
    const int64_t *stage_of;          /* (nodes) whose costs it has */
    const int64_t *is_shared;         /* (nodes) whether it is the part that lanes share */
    const double *delay_us;           /* (nodes) behind it */
    const double *shared_ns_per_byte; /* (nodes) of its stage; in a draw no more than the stage's */
    int64_t windows;                  /* 0 .. SLUICE_MACHINE_MAX_WINDOWS, a node's own included */
    const int64_t *bounds;            /* (windows, 4) first and last node, fragments, bytes; of the
                                         last two 0 where there is no such limit, not both */
    const double *return_us;          /* (windows) */
    int64_t processors;               /* 0 .. SLUICE_MACHINE_MAX_PROCESSORS */
    const int64_t *pairs;             /* (processors, 2) nodes of one lane, the earlier one first */
    int64_t max_lag;                  /* lags 0 .. max_lag are tried, 0 never deadlocks */
} sluice_machine;

/* All functions below return 0, or -1 where memory is short or the machine beyond these limits.
   Latencies are in us, those of the best lags, infinite where a fragment fits no window. Costs have
   a draw alone but for the last two functions, which price every draw; a constant delay is added. */

/* Latencies (cuts) of k equal fragments of (real) sizes x > 0, each k at least 1. */
int sluice_machine_equal(const sluice_machine *machine, const sluice_draws *costs, int64_t cuts,
                         const double *x, const int64_t *k, double *latency_us);

/* Latencies (cuts) of q fragments of s bytes, then one of r; r = 0 for none, q + r at least 1. */
int sluice_machine_repeated(const sluice_machine *machine, const sluice_draws *costs, int64_t cuts,
                            const int64_t *q, const int64_t *s, const int64_t *r,
                            double *latency_us);

/* The same of a message in q >= 1 fragments of s bytes and what is left, if that is above 0, at
   these lags (cuts, processors), and a derivative by s for this q, us per byte. Infinite and 0
   where the lags deadlock or s fits no window. */
int sluice_machine_slopes(const sluice_machine *machine, const sluice_draws *costs, int64_t message,
                          const int64_t *lags, int64_t cuts, const int64_t *q, const int64_t *s,
                          double *latency_us, double *slope);

/* The length and its derivative of a path of the same cuts, no longer than the latency: of those
   that turn in one window, or two, the longest one. O(windows^2), whatever q. */
int sluice_machine_paths(const sluice_machine *machine, const sluice_draws *costs, int64_t message,
                         const int64_t *lags, int64_t cuts, const int64_t *q, const int64_t *s,
                         double *length_us, double *slope);

/* Latency (1) of one cut into these (real) sizes, at least one. */
int sluice_machine_cut(const sluice_machine *machine, const sluice_draws *costs, int64_t count,
                       const double *sizes, double *latency_us);

/* The same at these lags (processors), infinite where they deadlock. */
int sluice_machine_cut_at(const sluice_machine *machine, const sluice_draws *costs, int64_t count,
                          const double *sizes, const int64_t *lags, double *latency_us);

/* When each fragment is in each node, starts and ends (count, nodes), at lags that do not deadlock;
   infinite where they do, or a fragment fits no window. */
int sluice_machine_times(const sluice_machine *machine, const sluice_draws *costs, int64_t count,
                         const double *sizes, const int64_t *lags, double *start_us,
                         double *end_us);

/* Latencies (count, draws) of a message in each of these repeated sizes, 1 to the message. */
int sluice_machine_repeated_in_draws(const sluice_machine *machine, const sluice_draws *costs,
                                     int64_t message, int64_t count, const int64_t *sizes,
                                     double *latency_us);

/* Latencies (draws) of one cut into these sizes, at least one. */
int sluice_machine_cut_in_draws(const sluice_machine *machine, const sluice_draws *costs,
                                int64_t count, const double *sizes, double *latency_us);

#endif
