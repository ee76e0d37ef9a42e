/* Branch and bound on the regions of fragments, of one count or several; docs/theory.md sec. 7. */
#ifndef SLUICE_TREE_H
#define SLUICE_TREE_H

#include <stdint.h>

enum { SLUICE_TREE_MAX_REGIONS = 63 };

typedef struct {
    int64_t stages, fewest, fragments, regions; /* at least 2, 2, fewest, 1; at most MAX_REGIONS */
    const double *low, *high;           /* (regions) least and greatest size, ascending, bytes */
    const double *overhead_us;          /* (regions, stages) */
    const double *us_per_byte;          /* (regions, stages) */
    double message_bytes, unit_bytes;   /* the message, and what sizes are multiples of */
    double span_bytes, slope_us;        /* messages may be so much less; 0: one message */
} sluice_tree_problem;

typedef struct sluice_tree sluice_tree;

/* A tree of one node that holds every cut of `fewest` to `fragments`; sizes of 0 are no fragments; NULL where memory is short or regions are too many.
   What the problem points at is copied. `known_us` is a latency of some cut. Over a span of messages
   every latency is one with slope_us added for each byte less than message_bytes, targets as well:
   a target that is straight in the message is reached at all of them where it is so at the greatest. */
sluice_tree *sluice_tree_new(const sluice_tree_problem *problem, double known_us);
void sluice_tree_free(sluice_tree *tree);

/* How many numbers its program has. */
int64_t sluice_tree_entries(int64_t stages, int64_t fragments, int64_t regions);

/* Divides nodes, the one of least bound first, until the least bound is at least `target_us`, or
   so many numbers of programs were written. Returns what is left of the work. */
double sluice_tree_advance(sluice_tree *tree, double target_us, double work);

/* The least bound of every cut that is not known to take target_us or more, no delay; infinite
   where there is no such cut. */
double sluice_tree_bound_us(const sluice_tree *tree);

/* The best cut met on the way, (fragments) bytes; its latency, infinite where there is none. */
double sluice_tree_best(const sluice_tree *tree, double *size_bytes);

/* The least bound of nodes that nothing divides, of which only whole bytes are left, and real sizes
   there (the first one is -1 where none are known); infinite where there is no such node. */
double sluice_tree_real(const sluice_tree *tree, double *size_bytes);

#endif
