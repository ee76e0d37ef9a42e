#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "items_cost.h"

/* Source    docs/theory.md, "Items", labels.
   Notation  a label at j: the times F (n) at which the stages have done items 1 .. j of some cut,
             raised to what any further fragment lets them be; its bound; where it came from.
   Cost      labels times ends they are extended to; a list is no longer than the width.
   Exact     while no list is cut; what is dropped is remembered by the least bound among it.
   Traps     a list is final once its item is behind: labels are named by their place in it. */

typedef struct {
    double *F;     /* (room, n) */
    double *bound; /* (room) */
    int64_t *from, *parent, *count; /* (room) the label before, and fragments so far */
    int64_t labels, room;
} list_of;

struct sluice_item_labels {
    sluice_label_problem problem;
    list_of *at;         /* (m+1) */
    int64_t *live;       /* (m+1) items whose labels are still extended, ascending */
    int64_t items, live_count, next, work;
    double best, dropped; /* the best latency, and the least bound of what was dropped */
    int64_t best_from, best_parent;
};

static void list_free(list_of *list)
{
    free(list->F), free(list->bound), free(list->from), free(list->parent), free(list->count);
}

static int list_grow(list_of *list, int64_t n)
{
    int64_t room = list->room ? 2 * list->room : 4;
    void *F = realloc(list->F, (size_t)(room * n) * sizeof *list->F);
    list->F = F ? F : list->F;
    void *bound = realloc(list->bound, (size_t)room * sizeof *list->bound);
    list->bound = bound ? bound : list->bound;
    void *from = realloc(list->from, (size_t)room * sizeof *list->from);
    list->from = from ? from : list->from;
    void *parent = realloc(list->parent, (size_t)room * sizeof *list->parent);
    list->parent = parent ? parent : list->parent;
    void *count = realloc(list->count, (size_t)room * sizeof *list->count);
    list->count = count ? count : list->count;
    if (!F || !bound || !from || !parent || !count)
        return -1;
    list->room = room;
    return 0;
}

static void put(list_of *list, int64_t at, int64_t n, const double *F, double bound, int64_t from,
                int64_t parent, int64_t count)
{
    memcpy(list->F + at * n, F, (size_t)n * sizeof *F);
    list->bound[at] = bound;
    list->from[at] = from;
    list->parent[at] = parent;
    list->count[at] = count;
}

/* Raise each time to what the next fragment, which begins with item j+1, lets it be. */
static void clamp(const sluice_label_problem *problem, int64_t j, double *F)
{
    const int64_t n = problem->of->stages, row = problem->of->items + 1;
    double ready = problem->of->ready_us[j + 1];
    for (int64_t s = 0; s < n; s++) {
        F[s] = ready > F[s] ? ready : F[s];
        ready = F[s] + problem->head_us[s * row + j + 1];
    }
}

static double bound_of(const sluice_label_problem *problem, int64_t j, const double *F)
{
    const int64_t n = problem->of->stages, row = problem->of->items + 1;
    double bound = problem->ready_rest_us[j];
    for (int64_t s = 0; s < n; s++) {
        double here = F[s] + problem->rest_us[s * row + j];
        bound = here > bound ? here : bound;
    }
    return bound;
}

INLINE int is_below(int64_t n, const double *one, const double *other)
{
    for (int64_t s = 0; s < n; s++)
        if (one[s] > other[s])
            return 0;
    return 1;
}

sluice_item_labels *sluice_item_labels_new(const sluice_label_problem *problem)
{
    const size_t room = (size_t)problem->of->items + 1;
    sluice_item_labels *labels = calloc(1, sizeof *labels);
    if (!labels)
        return NULL;
    labels->problem = *problem;
    labels->items = problem->of->items;
    labels->at = calloc(room, sizeof *labels->at);
    labels->live = calloc(room, sizeof *labels->live);
    if (!labels->at || !labels->live || list_grow(labels->at, problem->of->stages)) {
        sluice_item_labels_free(labels);
        return NULL;
    }
    double F[SLUICE_ITEMS_MAX_STAGES] = {0.0};
    clamp(problem, 0, F);
    put(labels->at, 0, problem->of->stages, F, bound_of(problem, 0, F), -1, -1, 0);
    labels->at[0].labels = 1;
    labels->live_count = labels->next = 1;
    labels->best = labels->dropped = INFINITY;
    return labels;
}

/* A new label at j, unless another one there is as good: -1 where memory is short. */
static int offer(sluice_item_labels *labels, int64_t j, const double *F, double bound, int64_t from,
                 int64_t parent, int64_t count)
{
    const sluice_label_problem *problem = &labels->problem;
    const int64_t n = problem->of->stages;
    list_of *to = labels->at + j;
    int64_t kept = 0, worst = 0;
    for (int64_t y = 0; y < to->labels; y++)
        if (is_below(n, to->F + y * n, F) && (!problem->is_counted || to->count[y] <= count)) {
            labels->work += y;
            return 0;
        }
    labels->work += 2 * to->labels;
    for (int64_t y = 0; y < to->labels; y++) {
        if (is_below(n, F, to->F + y * n) && (!problem->is_counted || count <= to->count[y]))
            continue;
        if (kept < y)
            put(to, kept, n, to->F + y * n, to->bound[y], to->from[y], to->parent[y], to->count[y]);
        worst = to->bound[kept] > to->bound[worst] ? kept : worst;
        kept++;
    }
    to->labels = kept;
    if (kept >= problem->width) { /* the one of the greatest bound goes */
        double gone = to->bound[worst] > bound ? to->bound[worst] : bound;
        labels->dropped = gone < labels->dropped ? gone : labels->dropped;
        if (to->bound[worst] > bound)
            put(to, worst, n, F, bound, from, parent, count);
        return 0;
    }
    if (kept == to->room && list_grow(to, n))
        return -1;
    put(to, kept, n, F, bound, from, parent, count);
    to->labels = kept + 1;
    return 0;
}

static double target_of(const sluice_item_labels *labels)
{
    return labels->best < labels->problem.target_us ? labels->best : labels->problem.target_us;
}

/* Extend all labels at i to j. 1 while a longer fragment from one of them may be of use, 0 once none
   is, -1 where memory is short. */
static int extend(sluice_item_labels *labels, int64_t i, int64_t j)
{
    const sluice_label_problem *problem = &labels->problem;
    const sluice_items *of = problem->of;
    const int64_t n = of->stages, m = of->items, row = m + 1;
    const list_of *at = labels->at + i;
    double time[SLUICE_ITEMS_MAX_STAGES], F[SLUICE_ITEMS_MAX_STAGES];
    int is_live = !problem->is_rising;
    for (int64_t s = 0; s < n; s++)
        time[s] = item_cost(of, s, i, j);
    labels->work += at->labels;
    for (int64_t l = 0; l < at->labels; l++) {
        double target = target_of(labels), ready = of->ready_us[j];
        const double *before = at->F + l * n;
        int64_t count = at->count[l] + 1;
        if (at->bound[l] >= target)
            continue;
        if (problem->is_counted && count + (j < m) > of->max_fragments) {
            is_live |= count <= of->max_fragments; /* it may still be extended to the end */
            continue;
        }
        int is_short = 1;
        for (int64_t s = 0; s < n; s++) {
            ready = F[s] = (ready > before[s] ? ready : before[s]) + time[s];
            if (ready + problem->left_us[s * row + j] >= target)
                is_short = 0;
        }
        is_live |= is_short;
        if (j == m) {
            if (ready < target) {
                labels->best = ready;
                labels->best_from = i;
                labels->best_parent = l;
            }
            continue;
        }
        if (problem->is_rising && !is_short)
            continue;
        clamp(problem, j, F);
        double bound = bound_of(problem, j, F);
        if (bound < target && offer(labels, j, F, bound, i, l, count))
            return -1;
    }
    return is_live;
}

int sluice_item_labels_advance(sluice_item_labels *labels, int64_t work)
{
    const sluice_items *of = labels->problem.of;
    const int64_t until = labels->work + work;
    while (labels->next <= of->items) {
        if (labels->work >= until)
            return 0;
        const int64_t j = labels->next;
        int64_t gone = 0; /* live items that are not extended again have -1 in their place */
        for (int64_t place = labels->live_count - 1; place >= 0; place--) {
            const int64_t i = labels->live[place];
            int is_live = i < of->earliest[j] ? 0 : extend(labels, i, j);
            if (is_live < 0)
                return -1;
            if (!is_live)
                labels->live[place] = -1, gone++;
        }
        labels->work += labels->live_count;
        int64_t kept = 0;
        for (int64_t place = 0; gone && place < labels->live_count; place++)
            if (labels->live[place] >= 0)
                labels->live[kept++] = labels->live[place];
        labels->live_count = gone ? kept : labels->live_count;
        if (labels->at[j].labels)
            labels->live[labels->live_count++] = j;
        labels->next++;
    }
    return 1;
}

double sluice_item_labels_best(const sluice_item_labels *labels, int64_t *ends, int64_t *count,
                               double *bound_us, int64_t *work)
{
    const int64_t m = labels->problem.of->items;
    double bound = labels->dropped;
    if (labels->next <= m) /* what was not looked at goes through a label that is still live */
        for (int64_t place = 0; place < labels->live_count; place++) {
            const list_of *list = labels->at + labels->live[place];
            for (int64_t l = 0; l < list->labels; l++)
                bound = list->bound[l] < bound ? list->bound[l] : bound;
        }
    *bound_us = bound;
    *work = labels->work;
    *count = 0;
    if (labels->best == INFINITY)
        return INFINITY;
    ends[(*count)++] = m;
    for (int64_t j = labels->best_from, l = labels->best_parent; j > 0;) {
        const list_of *list = labels->at + j;
        ends[(*count)++] = j;
        j = list->from[l];
        l = list->parent[l];
    }
    for (int64_t a = 0; a < *count / 2; a++) {
        int64_t end = ends[a];
        ends[a] = ends[*count - 1 - a];
        ends[*count - 1 - a] = end;
    }
    return labels->best;
}

void sluice_item_labels_free(sluice_item_labels *labels)
{
    if (!labels)
        return;
    if (labels->at)
        for (int64_t j = 0; j <= labels->items; j++) /* the problem may be gone */
            list_free(labels->at + j);
    free(labels->at), free(labels->live);
    free(labels);
}
