/* Branch and bound on cuts of any number of fragments, groups of them in common; docs/theory.md sec. 7. */
#ifndef SLUICE_GROUPS_H
#define SLUICE_GROUPS_H

#include <stdint.h>

#include "tree.h"

typedef struct sluice_groups sluice_groups;

/* One node that holds every cut of `fewest` to `fragments` of the problem, which has no span; NULL
   where memory is short or regions are too many. What the problem points at is copied.
   `known_us` is a latency of some cut. */
sluice_groups *sluice_groups_new(const sluice_tree_problem *problem, double known_us);
void sluice_groups_free(sluice_groups *groups);

/* Divides nodes, the one of least bound first, until the least bound is at least `target_us`, or
   so many numbers of programs were written. `known_us` (fragments - fewest + 1) is what is known
   of each count besides. Returns what is left of the work. */
double sluice_groups_advance(sluice_groups *groups, double target_us, const double *known_us,
                             double work);

/* The least bound of each count's cuts that are not known to take target_us or more, no delay
   (fragments - fewest + 1): of nodes that can be divided, and of those that nothing divides;
   infinite where there is no such cut. */
void sluice_groups_bounds(const sluice_groups *groups, double *open_us, double *closed_us);

/* The best cut met since the last call, at most `room` bytes; *count is 0 where there is none.
   Returns its latency. */
double sluice_groups_best(sluice_groups *groups, double *size_bytes, int64_t room, int64_t *count);

#endif
