/* Sizes with which the slowest stage is never idle; solvers/exact/lp/never_idle.py has the same. */
#ifndef SLUICE_BUSY_H
#define SLUICE_BUSY_H

#include "lines.h"

/* Sizes x (k), k at least 2, of which the first and the last are the least admitted ones where other
   stages are before or behind the slowest. Returns that stage, or -1 where k are too few for it. */
int64_t sluice_busy_sizes(const sluice_lines *lines, int64_t k, double *x);

#endif
