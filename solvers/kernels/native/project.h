/* Rows of the reduced dual that meet its tight rows to the last digits. */
#ifndef SLUICE_PROJECT_H
#define SLUICE_PROJECT_H

#include "lines.h"

/* Moves p (k-1, n), k at least 2, by the least sum of (dp/p)^2 after which steps sum to 1, byte rows
   near lambda are lambda, order rows near 0 are 0, and weights below the cut are nothing. Leaves p
   as it is where these have no such point, or there is no memory. No proof: repair p and take its
   value. */
void sluice_dual_project(const sluice_lines *lines, int64_t k, double cut, double *p);

#endif
