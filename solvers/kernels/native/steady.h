/* Ramps that never let the last stage wait; solvers/rounding.py is the same in Python. */
#ifndef SLUICE_STEADY_H
#define SLUICE_STEADY_H

#include "lines.h"

/* The ramp that begins with `first` bytes: its sizes, at most `capacity` of them, and how many
   these are; 0 where the message needs more. With `reversed` the stages are taken last to first,
   and the sizes are those of the cut read backwards. */
int64_t sluice_steady(const sluice_whole *question, int reversed, int64_t first, int64_t capacity,
                      int64_t *sizes);

#endif
