/* Equal fragments in whole bytes; solvers/heuristics/fixed.py is the same in NumPy. */
#ifndef SLUICE_EQUAL_H
#define SLUICE_EQUAL_H

#include "lines.h"

enum {
    SLUICE_EQUAL_FOUND = 0,
    SLUICE_EQUAL_NONE = 1, /* the limits admit no equal cut of the counts tried */
    SLUICE_EQUAL_MEMORY = -1
};

/* Latency in us, without delay, of k equal fragments in real sizes. */
double sluice_equal_us(const sluice_whole *question, int64_t k);

/* The count whose equal fragments take the least time in real sizes, the fewest of equals. */
int64_t sluice_equal_count(const sluice_whole *question);

typedef struct {
    int64_t near;       /* the count that is tried first */
    int64_t neighbours; /* how many on each side of it are tried */
    int64_t cells;      /* no further count is tried once k n summed over all exceeds this */
} sluice_equal_search;

/* The best cut found in whole bytes: sizes (near + neighbours), and how many there are. */
int sluice_equal_cut(const sluice_whole *question, const sluice_equal_search *asked,
                     int64_t *sizes, int64_t *count);

#endif
