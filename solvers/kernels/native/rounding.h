/* Real sizes to whole, aligned ones; solvers/rounding.py is the same in NumPy. */
#ifndef SLUICE_ROUNDING_H
#define SLUICE_ROUNDING_H

#include "lines.h"

enum { /* in place of a number of cuts */
    SLUICE_ROUND_OTHER = -2, /* not for this kernel: counts or sizes that it does not take */
    SLUICE_ROUND_MEMORY = -1
};

typedef struct {
    int64_t count;         /* fragments */
    const double *x;       /* (count) bytes */
    const double *offsets; /* (roundings + others): a position becomes floor(position + offset) */
    int64_t roundings;     /* of which the best is gone on from; their offsets ascend */
    int64_t others;        /* of which each is, where there are exchanges */
    int64_t passes;        /* of the steepest descent, at most */
    const double *widths;  /* (levels) us^2: of the smooth maxima, one after the other */
    int64_t levels;
    int64_t exchanges;     /* of the exchange between any two, at most at each level; 0: none */
    double enough_us;      /* a cut that takes no more before any exchange is all that is wanted */
} sluice_rounding;

/* The whole-byte cuts (1 + others, count) found near real sizes, and how many they are: none where
   the limits admit none there, and one alone without exchanges. */
int sluice_round(const sluice_whole *question, const sluice_rounding *asked, int64_t *sizes);

#endif
