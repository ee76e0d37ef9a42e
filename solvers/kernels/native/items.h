/* Cuts of a sequence of items: their latency, the best in one stage, the layouts of caps, and rows
   of a dynamic program; solvers/kernels/items.py has the same.

   A fragment (i, j] holds items i+1 .. j, counted from 1. In stage s it takes
   overhead + spent[s][j] - spent[s][i] where the stage is one line, and the line of the range that
   holds its bytes besides where it has several. */
#ifndef SLUICE_ITEMS_H
#define SLUICE_ITEMS_H

#include <stdint.h>

enum { SLUICE_ITEMS_MAX_STAGES = 64, SLUICE_ITEMS_MAX_WINDOWS = 64 };

typedef struct {
    int64_t items, stages;         /* m, n: at least 1, at most SLUICE_ITEMS_MAX_STAGES stages */
    const double *ready_us;        /* (m+1) when the first u items are ready; never falls, 0 at 0 */
    const int64_t *bytes;          /* (m+1) of the first u items */
    const double *spent_us;        /* (n, m+1) of the first u items, without overheads */
    const double *overhead_us;     /* (n) of stages that are one line; not read of others */
    const int64_t *ranges;         /* (n) */
    const int64_t *first_range;    /* (n) of a stage with several */
    const double *end_bytes;       /* (all ranges) inclusive; a stage's last one is not read */
    const double *range_overhead;  /* (all ranges) us */
    const double *range_cost;      /* (all ranges) us per 1000 bytes */
    const int64_t *earliest;       /* (m+1) the least i of an admitted fragment (i, j]; never falls */
    int64_t max_fragments;
    int64_t windows;               /* w, at most SLUICE_ITEMS_MAX_WINDOWS */
    const int64_t *window_first, *window_last; /* (w) stages */
    const int64_t *window_places;  /* (w) fragments that it holds; 0: any number */
    const int64_t *window_bytes;   /* (w) bytes, in slots of a cut's greatest fragment; 0: any */
    const double *window_return;   /* (w) us until a place is free again */
    double *room;                  /* (w, m) that a latency writes into */
} sluice_items;

/* The latency of the cut with these ends (count), or more than `most_us` once it is certain to be;
   infinite where a fragment does not fit a window. */
double sluice_items_latency(const sluice_items *of, int64_t count, const int64_t *ends,
                            double most_us);

/* One stage that takes no less for an item more: the best admitted cut of any number of fragments,
   O(m) for each of its ranges. Fills ends (m) and returns their number, or -1 where memory is short. */
int64_t sluice_items_one_stage(const sluice_items *of, int64_t *ends);

/* The same of at most `most` fragments, O(m most) for each range; -2 where so few are not admitted. */
int64_t sluice_items_few(const sluice_items *of, int64_t most, int64_t *ends);

/* Two stages of one line each, all items ready at once: the best admitted cut of at most `most`
   fragments, O(m most), as above. */
int64_t sluice_items_two_stages(const sluice_items *of, int64_t most, int64_t *ends);

typedef struct {
    int64_t items;
    double overhead_us[3];       /* of the stage in front, of those between, of the one behind */
    const double *spent_us[3];   /* (m+1) each */
    int64_t most;                /* fragments */
} sluice_item_pair;

/* rest (m+1): what items j+1 .. m take at least in two stages of which each handles one fragment at
   a time, and those between any number, over 1 .. most fragments, empty ones included; 0 at m.
   0, or -1 where memory is short. */
int sluice_items_pair(const sluice_item_pair *of, double *rest_us);

typedef struct {
    int64_t is_before;     /* the rule: 1 before, 0 until */
    int64_t first_bytes;   /* the first fragment's own cap, 0 for none */
    int64_t next_cap;      /* where the walk goes on; 0 once it has ended */
    int64_t last_cap;      /* no greater cap is looked at */
    int64_t layouts;       /* looked at so far */
    double latency_us;     /* of the best admitted layout, infinite without one */
    int64_t fragments;     /* of it */
    int64_t from_bytes, to_bytes; /* caps that give it; to_bytes 0: all greater ones */
} sluice_item_caps;

typedef struct {
    int64_t room, count;  /* of layouts that are listed */
    int64_t *from_bytes;  /* (room) the least cap that gives each */
    int64_t *fragments;   /* (room) */
    double *latency_us;   /* (room) infinite where it is not admitted */
} sluice_item_layouts;

/* Goes on with the walk over all layouts until about this many fragments were made, and with a list
   until that is full. 0, or -1 where memory is short. */
int sluice_items_caps(const sluice_items *of, sluice_item_caps *walk, int64_t work,
                      sluice_item_layouts *listed);

/* The ends of the layouts of these caps (count), one behind the other. 0, or -1 where memory is
   short. */
int sluice_items_laid_out(const sluice_items *of, int64_t is_before, int64_t first_bytes,
                          int64_t count, const int64_t *caps, int64_t *ends);

/* ---- labels ------------------------------------------------------------------------------------ */

typedef struct {
    const sluice_items *of;
    const double *head_us;   /* (n, m+1) what a fragment that begins with item u takes at least */
    const double *rest_us;   /* (n, m+1) from when stage s may begin with item j+1 to the end */
    const double *ready_rest_us; /* (m+1) from 0 to the end, by ready times of items j+1 .. m */
    const double *left_us;   /* (n, m+1) what stage s has still to do, and stages behind it */
    int64_t is_rising;       /* no stage takes less where an item is added */
    int64_t is_counted;      /* max_fragments counts */
    int64_t width;           /* labels that are kept of an item */
    double target_us;        /* labels that reach it are dropped, since nothing below it is sought */
    const double *floor_us;  /* (n) what any fragment takes in a stage at least, beside spent_us */
    const double *window_rest_us; /* (w, m+1) from the mean of when its places are free to the end;
                                     -infinite where fewer fragments than places may be left */
} sluice_label_problem;

typedef struct sluice_item_labels sluice_item_labels;

/* NULL where memory is short. What the problem points at has to outlive it. Windows hold fragments,
   no bytes. */
sluice_item_labels *sluice_item_labels_new(const sluice_label_problem *problem);

/* Goes on for about this much work. 1 once it has ended, 0 before, -1 where memory is short. */
int sluice_item_labels_advance(sluice_item_labels *labels, int64_t work);

/* The best cut below the target that was met: returns its latency (infinite without one), fills ends
   (m) and their number. `bound_us`: no admitted cut takes less than this or the target. `work`: done
   so far. */
double sluice_item_labels_best(const sluice_item_labels *labels, int64_t *ends, int64_t *count,
                               double *bound_us, int64_t *work);

void sluice_item_labels_free(sluice_item_labels *labels);

#endif
