/* Closed-form lower bounds over counts; solvers/bounds.py is the same in NumPy. */
#ifndef SLUICE_BOUNDS_H
#define SLUICE_BOUNDS_H

#include "lines.h"

/* Proven lower bound in us, the delay included, on every cut into k fragments. */
double sluice_bound(const sluice_whole *q, int64_t k);

/* The same for each of these counts. */
void sluice_bounds_of(const sluice_whole *q, const int64_t *counts, int64_t number,
                      double *bound_us);

/* The admitted counts from k_min + 1 on whose bound does not exceed the limit are neighbours:
   the first and the last of them; first > last where there are none. `near` is any count, best one
   among them. */
void sluice_bounds_within(const sluice_whole *q, int64_t near, double limit_us, int64_t *first,
                          int64_t *last);

#endif
