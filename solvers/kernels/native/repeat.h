/* The best repeated size; solvers/heuristics/repeat.py is the same in NumPy. */
#ifndef SLUICE_REPEAT_H
#define SLUICE_REPEAT_H

#include "lines.h"

typedef struct {
    double latency_us; /* without delay */
    int64_t full;      /* fragments of this size, 0 where the limits admit none */
    int64_t size_bytes;
} sluice_repeated;

/* The best size s: full fragments of s, then what is left. `near` is a count to begin with. */
void sluice_repeat(const sluice_whole *question, int64_t near, sluice_repeated *best);

#endif
