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

/* The best size of k >= 2 fragments, the last of which is what is left, of this many messages from
   the first on, none above the question's, and its latency without delay; 0 and infinity where the
   limits admit none. */
void sluice_repeat_each(const sluice_whole *question, int64_t k, int64_t first, int64_t messages,
                        int64_t *sizes, double *latency_us);

/* The latency, without delay, of what a reader of tables takes for each of this many messages from
   the first on, fewer than 2^31, where the size grows from one entry to that behind them. */
void sluice_repeat_read(const sluice_whole *question, int64_t first, int64_t messages,
                        int64_t first_size, int64_t last_size, double *latency_us);

#endif
