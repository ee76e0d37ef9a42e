/* Lower bounds from the reduced dual; solvers/exact/dual.py is the same mathematics in NumPy. */
#ifndef SLUICE_DUAL_H
#define SLUICE_DUAL_H

#include "lines.h"

/* Rows (steps, n), in place: clipped, normalised, in stochastic order. */
void sluice_dual_repair(int64_t steps, int64_t n, double *p);

/* Rows (steps, n) of a cut into k fragments, in place: as repaired, but no byte row is lessened by
   what was out of order, and weights below the cut are nothing (docs/theory.md sec. 14). */
void sluice_dual_restore(const sluice_lines *lines, int64_t k, int64_t steps, double cut, double *p);

/* The value without its rounding's deduction and without a least size, step `at` of these taken
   inner + 1 times; w (steps + 1) to work in. */
double sluice_dual_repeated(const sluice_lines *lines, int64_t steps, const double *p, int64_t at,
                            double inner, double *w);

/* The size in bytes above which no fragment of k is in a cut of this latency or less. */
double sluice_dual_largest(const sluice_lines *lines, int64_t k, double known_us);

/* Proven lower bounds in us on the optimum for k, for k + 1 and for k - 1 fragments, from repaired
   p (k-1, n); k at least 1, 2 and 3. NAN where there was no memory to compute them. */
double sluice_dual_value(const sluice_lines *lines, int64_t k, const double *p);
double sluice_dual_above(const sluice_lines *lines, int64_t k, const double *p);
double sluice_dual_below(const sluice_lines *lines, int64_t k, const double *p);

/* How the optimum of k fragments, k at least 2, moves with each overhead and cost, (n) each, and with
   the message's bytes, at sizes x (k) and p (k-1, n) that are optimal. 0, or -1 without memory. */
int sluice_dual_gradient(const sluice_lines *lines, int64_t k, const double *p, const double *x,
                         double *by_overhead, double *by_cost, double *by_byte);

#endif
