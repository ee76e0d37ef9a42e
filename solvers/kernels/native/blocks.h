/* Symmetric block tridiagonal systems, positive definite: factor once, solve for several sides.

   Blocks are m x m, row by row. diagonal[j] couples block j with itself, upper[j] block j with
   block j+1. The factor replaces both: L D L' of each pivot block, D^-1 L^-1 times the upper one.
   Of a block that is not wide only the first unknown counts: what else its room holds is not read.
   Pivots that rounding has made too small are replaced by a huge number, so that the unknown is
   left out of the step (as is common for interior-point methods). */
#ifndef SLUICE_BLOCKS_H
#define SLUICE_BLOCKS_H

#include <stdint.h>

void sluice_blocks_factor(int64_t count, int64_t m, const unsigned char *wide, double *diagonal,
                          double *upper, double *inverse_pivots);
void sluice_blocks_solve(int64_t count, int64_t m, const unsigned char *wide,
                         const double *diagonal, const double *upper,
                         const double *inverse_pivots, double *side);
void sluice_blocks_solve_two(int64_t count, int64_t m, const unsigned char *wide,
                             const double *diagonal, const double *upper,
                             const double *inverse_pivots, double *one, double *other);

#endif
