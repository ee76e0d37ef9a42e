/* The optimum for k fragments, stages of lines: primal-dual interior point on the reduced dual.
   docs/theory.md has the derivation; solvers/exact/interior_point.py is the same method in NumPy. */
#ifndef SLUICE_INTERIOR_POINT_H
#define SLUICE_INTERIOR_POINT_H

#include <stdint.h>

enum {
    SLUICE_IP_CLOSE = 0,   /* the two bounds are close, or p is out of order: see `apart` */
    SLUICE_IP_STALLED = 1, /* no further progress in this arithmetic */
    SLUICE_IP_TIME = 2,    /* the time limit came first; the iterate is still valid */
    SLUICE_IP_MEMORY = -1  /* nothing was computed */
};

/* Fragments of a chain beyond which its tails take most of the iterations. */
enum { SLUICE_IP_LONG = 2000 };

/* Fragments first .. last (1 .. k-2) may wait behind a boundary, by its place among the q. */
typedef struct {
    int64_t boundary, first, last;
} sluice_ip_span;

typedef struct {
    int64_t k;                 /* fragments, at least 2 */
    int64_t n;                 /* stages, at least 2 */
    const double *overhead_us; /* (n) with the least size taken in: g + mG */
    const double *us_per_byte; /* (n) */
    double free_bytes;         /* B - km, positive */
    double spread_bytes;       /* M - m; not less than free_bytes where no cap binds */
    int64_t repeat_step;       /* the step that is taken `repeats` times over, 0 .. k-2 */
    int64_t repeats;           /* 1: every step stands for itself; else k counts `repeats` - 1
                                  fragments fewer than the cut, whose sizes are equal */
    const int64_t *boundaries; /* (q) stage boundaries d where fragments may wait, ascending */
    int64_t q;
    const sluice_ip_span *spans; /* that do not meet; null: every fragment may wait behind each */
    int64_t span_count;
    double close;              /* relative distance of the two bounds at which to stop */
    int64_t max_iterations;
    double time_limit_s;
    double check_order_at;     /* complementarity from which on to stop where p is out of order
                                  by ten times its root, a thousand times of long chains;
                                  0: never */
} sluice_ip_problem;

typedef struct {
    double complementarity; /* relative, of the last iterate */
    double apart;           /* relative distance of the two bounds, 1 before they were computed */
    int64_t iterations;
} sluice_ip_outcome;

/* sizes (k + 1) bytes above the least size, that of the repeated fragments last; p (k-1, n) row by
   row; violation (n-1) by boundary. */
int sluice_ip_solve(const sluice_ip_problem *problem, double *sizes, double *p,
                    double *violation, sluice_ip_outcome *outcome);

/* Nearest admissible rows in place: clipped, normalised, in stochastic order. */
void sluice_ip_repair(int64_t steps, int64_t n, double *p);

#endif
