/* The optimum for one small count, certified on both sides, in one call. */
#ifndef SLUICE_COUNT_H
#define SLUICE_COUNT_H

#include "lines.h"

enum {
    SLUICE_COUNT_CLOSE = 0, /* the two bounds are as close as asked */
    SLUICE_COUNT_APART = 1, /* they are not: another method is to be tried */
    SLUICE_COUNT_MEMORY = -1
};

typedef struct {
    double lower_us;
    double upper_us;
} sluice_bounds;

/* Sizes x (k) in bytes and repaired p (k-1, n) with their two values, that of p perhaps the one it has
   for cuts better than x alone; k at least 2. `close` is the
   relative distance of the two values at which a solve is good enough, `aim`, below it, the one that
   the method goes on to. `whole`: no fragments are of one size for the method's ease. */
int sluice_count_solve(const sluice_lines *lines, int64_t k, int whole, double close, double aim,
                       double time_limit_s, double *x, double *p, sluice_bounds *bounds);

/* One stage's costs times a factor. */
typedef struct {
    int64_t stage;
    double factor;
} sluice_change;

/* The values, (count), of as many solves in which all fragments may differ, each with one change;
   of those that are not close they are as far as they go. 0, or -1 without memory. */
int sluice_count_changed(const sluice_lines *lines, int64_t k, int64_t count,
                         const sluice_change *changes, double close, sluice_bounds *bounds);

#endif
