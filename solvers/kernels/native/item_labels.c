#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "items_cost.h"

/* Source    docs/theory.md, "Items", labels.
   Notation  a label at j: the times F (n) at which the stages have done items 1 .. j of some cut,
             raised to what any further fragment lets them be; of each window when the places of
             its last fragments but one place are free, newest first; its bound; where it came from.
   Cost      labels times ends they are extended to; a list is no longer than the width.
   Exact     while no list is cut; what is dropped is remembered by the least bound among it.
   Traps     a list is final once its item is behind: labels are named by their place in it. What
             is as good as another is never dropped for it, and has no greater bound. */

typedef struct {
    double *F;     /* (room, width of a label) */
    double *bound; /* (room) */
    int64_t *from, *parent, *count; /* (room) the label before, and fragments so far */
    int64_t *order; /* (room) the places in use by rising bound, then the free ones */
    int64_t labels, room;
} list_of;

struct sluice_item_labels {
    sluice_label_problem problem;
    list_of *at;         /* (m+1) */
    int64_t *live;       /* (m+1) items whose labels are still extended, ascending */
    double *F;           /* (times) of a new label */
    int64_t times;       /* in a label: of n stages, and of each window its places but one */
    int64_t items, live_count, next, work;
    double best, dropped; /* the best latency, and the least bound of what was dropped */
    int64_t best_from, best_parent;
};

static void list_free(list_of *list)
{
    free(list->F), free(list->bound), free(list->from), free(list->parent), free(list->count);
    free(list->order);
}

static int list_grow(list_of *list, int64_t times)
{
    int64_t room = list->room ? 2 * list->room : 4;
    void *F = realloc(list->F, (size_t)(room * times) * sizeof *list->F);
    list->F = F ? F : list->F;
    void *bound = realloc(list->bound, (size_t)room * sizeof *list->bound);
    list->bound = bound ? bound : list->bound;
    void *from = realloc(list->from, (size_t)room * sizeof *list->from);
    list->from = from ? from : list->from;
    void *parent = realloc(list->parent, (size_t)room * sizeof *list->parent);
    list->parent = parent ? parent : list->parent;
    void *count = realloc(list->count, (size_t)room * sizeof *list->count);
    list->count = count ? count : list->count;
    void *order = realloc(list->order, (size_t)room * sizeof *list->order);
    list->order = order ? order : list->order;
    if (!F || !bound || !from || !parent || !count || !order)
        return -1;
    for (int64_t place = list->room; place < room; place++)
        list->order[place] = place;
    list->room = room;
    return 0;
}

/* Raise each time to what the next fragment, which begins with item j+1, lets it be; and when places
   are free again to when the fragments can come that take them: the d-th behind the next one is not
   ready before item j+1+d, and not in a stage before it has handled d fragments of d items. */
static void clamp(const sluice_label_problem *problem, int64_t j, double *F)
{
    const sluice_items *of = problem->of;
    const int64_t n = of->stages, m = of->items, row = m + 1;
    double ready = of->ready_us[j + 1];
    for (int64_t s = 0; s < n; s++) {
        F[s] = ready > F[s] ? ready : F[s];
        ready = F[s] + problem->head_us[s * row + j + 1];
    }
    double *back = F + n;
    for (int64_t w = 0; w < of->windows; w++)
        for (int64_t d = of->window_places[w] - 1; d > 0; d--, back++) {
            if (j + d >= m) { /* no fragment waits for this place */
                *back = INFINITY;
                continue;
            }
            double soonest = of->ready_us[j + 1 + d];
            for (int64_t s = 0; s <= of->window_first[w]; s++) {
                const double *spent = of->spent_us + s * row;
                double ahead = (double)d * problem->floor_us[s] + (spent[j + d] - spent[j]);
                soonest = F[s] + ahead > soonest ? F[s] + ahead : soonest;
            }
            *back = soonest > *back ? soonest : *back;
        }
}

static double bound_of(const sluice_label_problem *problem, int64_t j, const double *F)
{
    const sluice_items *of = problem->of;
    const int64_t n = of->stages, row = of->items + 1;
    double bound = problem->ready_rest_us[j];
    for (int64_t s = 0; s < n; s++) {
        double here = F[s] + problem->rest_us[s * row + j];
        bound = here > bound ? here : bound;
    }
    const double *back = F + n;
    for (int64_t w = 0; w < of->windows; w++) {
        const int64_t places = of->window_places[w];
        const double rest = problem->window_rest_us[w * row + j];
        if (rest > -INFINITY) {
            double sum = F[of->window_first[w]];
            for (int64_t d = 0; d < places - 1; d++)
                sum += back[d];
            double here = sum / (double)places + rest;
            bound = here > bound ? here : bound;
        }
        back += places - 1;
    }
    return bound;
}

/* The places that a new label's last fragment and those before it leave: F has the times of stages
   at which it ends, `before` is the label that it extends. */
static void take_places(const sluice_items *of, const double *before, double *F)
{
    double next[SLUICE_ITEMS_MAX_WINDOWS];
    double *back = F + of->stages;
    before += of->stages;
    for (int64_t w = 0; w < of->windows; w++) {
        const int64_t kept = of->window_places[w] - 1;
        double newest = F[of->window_last[w]] + of->window_return[w];
        next[w] = kept ? before[kept - 1] : newest;
        for (int64_t d = kept - 1; d > 0; d--)
            back[d] = before[d - 1];
        if (kept)
            back[0] = newest;
        back += kept, before += kept;
    }
    for (int64_t w = 0; w < of->windows; w++) {
        double *first = F + of->window_first[w];
        *first = next[w] > *first ? next[w] : *first;
    }
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
    labels->times = problem->of->stages;
    for (int64_t w = 0; w < problem->of->windows; w++)
        labels->times += problem->of->window_places[w] - 1;
    labels->F = calloc((size_t)labels->times, sizeof *labels->F);
    labels->at = calloc(room, sizeof *labels->at);
    labels->live = calloc(room, sizeof *labels->live);
    if (!labels->at || !labels->live || !labels->F || list_grow(labels->at, labels->times)) {
        sluice_item_labels_free(labels);
        return NULL;
    }
    double *F = labels->F;
    for (int64_t place = problem->of->stages; place < labels->times; place++)
        F[place] = -INFINITY; /* all places are free */
    clamp(problem, 0, F);
    list_of *start = labels->at;
    memcpy(start->F, F, (size_t)labels->times * sizeof *F);
    start->bound[0] = bound_of(problem, 0, F);
    start->from[0] = start->parent[0] = -1;
    start->count[0] = 0;
    start->labels = 1;
    labels->live_count = labels->next = 1;
    labels->best = labels->dropped = INFINITY;
    return labels;
}

/* How many labels have a bound below this, or at it where `is_with`. */
static int64_t labels_below(const list_of *list, double bound, int is_with)
{
    int64_t low = 0, high = list->labels;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        double here = list->bound[list->order[middle]];
        if (here < bound || (is_with && here == bound))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void drop(sluice_item_labels *labels, double bound)
{
    labels->dropped = bound < labels->dropped ? bound : labels->dropped;
}

/* A new label at j, unless another one there is as good: -1 where memory is short. What is as good
   as another has no greater bound, so that a part of the list is looked at for either. */
static int offer(sluice_item_labels *labels, int64_t j, const double *F, double bound, int64_t from,
                 int64_t parent, int64_t count)
{
    const sluice_label_problem *problem = &labels->problem;
    const int64_t n = labels->times;
    list_of *to = labels->at + j;
    const int is_full = to->labels >= problem->width;
    if (is_full && bound >= labels->dropped && bound >= to->bound[to->order[to->labels - 1]])
        return 0; /* it would be dropped, and proves nothing less */
    const int64_t behind = labels_below(to, bound, 1);
    for (int64_t o = 0; o < behind; o++) {
        int64_t y = to->order[o];
        if (is_below(n, to->F + y * n, F) && (!problem->is_counted || to->count[y] <= count)) {
            labels->work += o + 1;
            return 0;
        }
    }
    labels->work += to->labels;
    int64_t kept = labels_below(to, bound, 0);
    for (int64_t o = kept; o < to->labels; o++) { /* the places of worse ones come behind */
        int64_t y = to->order[o];
        if (is_below(n, F, to->F + y * n) && (!problem->is_counted || count <= to->count[y]))
            continue;
        to->order[o] = to->order[kept];
        to->order[kept++] = y;
    }
    to->labels = kept;
    if (kept >= problem->width) { /* the one of the greatest bound goes */
        int64_t last = to->order[kept - 1];
        if (to->bound[last] <= bound) {
            drop(labels, bound);
            return 0;
        }
        drop(labels, to->bound[last]);
        to->labels--;
    }
    if (to->labels == to->room && list_grow(to, n))
        return -1;
    int64_t place = to->order[to->labels], at = labels_below(to, bound, 1);
    memmove(to->order + at + 1, to->order + at, (size_t)(to->labels - at) * sizeof *to->order);
    to->order[at] = place;
    to->labels++;
    memcpy(to->F + place * n, F, (size_t)n * sizeof *F);
    to->bound[place] = bound;
    to->from[place] = from;
    to->parent[place] = parent;
    to->count[place] = count;
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
    double time[SLUICE_ITEMS_MAX_STAGES], *F = labels->F;
    int is_live = !problem->is_rising;
    for (int64_t s = 0; s < n; s++)
        time[s] = item_cost(of, s, i, j);
    labels->work += at->labels;
    for (int64_t o = 0; o < at->labels; o++) {
        double target = target_of(labels), ready = of->ready_us[j];
        const int64_t l = at->order[o], count = at->count[l] + 1;
        const double *before = at->F + l * labels->times;
        if (at->bound[l] >= target)
            break; /* and so are all behind it */
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
        take_places(of, before, F);
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
            double lowest = list->bound[list->order[0]]; /* of a live item: it has labels */
            bound = lowest < bound ? lowest : bound;
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
    free(labels->at), free(labels->live), free(labels->F);
    free(labels);
}
