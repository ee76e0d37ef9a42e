#include "equal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Source    docs/theory.md sec. 2; solvers/heuristics/fixed.py.
   Notation  k fragments; small, small + unit: the two sizes; large: how many are of the second;
             rest: what the last fragment carries beyond small where it is not a unit.
   Cost      O(n^3) for the count; O(k n) for each of six orders of a cut's sizes.
   Exact     the bound is below every order of the sizes; which order is best is only tried.
   Traps     where the rest is not a unit the last fragment is neither small nor large. */

#define SPAN SLUICE_LINES_MAX_STAGES
#define TIE 1e-13 /* relative difference of two latencies that is rounding alone */

double sluice_equal_us(const sluice_whole *q, int64_t k)
{
    double size = (double)q->message_bytes / (double)k, sum = 0.0, maximum = 0.0;
    for (int64_t j = 0; j < q->n; j++) {
        double t = sluice_time_us(q, j, size);
        sum += t;
        maximum = t > maximum ? t : maximum;
    }
    return sum + (double)(k - 1) * maximum;
}

/* The least latency so far, and the fewest fragments that have it to rounding. */
typedef struct {
    double minimum;
    int64_t count;
    int again; /* on the second pass the least latency is known */
} choice;

static void weigh(const sluice_whole *q, int64_t k, choice *best)
{
    double latency = sluice_equal_us(q, k);
    if (!best->again)
        best->minimum = latency < best->minimum ? latency : best->minimum;
    else if (latency <= best->minimum * (1.0 + TIE) && k < best->count)
        best->count = k;
}

/* Floor and ceiling of a count in real numbers, clipped into the range. */
static void weigh_around(const sluice_whole *q, double k, choice *best)
{
    if (isnan(k))
        return;
    k = k < (double)q->k_min ? (double)q->k_min : k;
    k = k > (double)q->k_max ? (double)q->k_max : k;
    weigh(q, (int64_t)floor(k), best);
    weigh(q, (int64_t)ceil(k), best);
}

/* Where the latency can have its minimum: the best k of each stage, and the crossings of two. */
static void weigh_all(const sluice_whole *q, choice *best)
{
    double sum = 0.0, whole = (double)q->message_bytes, cost[SPAN];
    for (int64_t j = 0; j < q->n; j++) {
        cost[j] = q->ns_per_byte[j] / 1000.0;
        sum += cost[j];
    }
    weigh(q, q->k_min, best);
    weigh(q, q->k_max, best);
    for (int64_t i = 0; i < q->n; i++) {
        weigh_around(q, sqrt(whole * (sum - cost[i]) / q->overhead_us[i]), best);
        for (int64_t j = 0; j < q->n; j++)
            if (i != j)
                weigh_around(q, whole * (cost[i] - cost[j]) /
                                    (q->overhead_us[j] - q->overhead_us[i]), best);
    }
}

int64_t sluice_equal_count(const sluice_whole *q)
{
    choice best = {INFINITY, INT64_MAX, 0};
    for (; best.again < 2; best.again++) {
        if (q->k_max - q->k_min >= q->n * q->n)
            weigh_all(q, &best);
        else
            for (int64_t k = q->k_min; k <= q->k_max; k++)
                weigh(q, k, &best);
    }
    return best.count;
}

/* The most equal whole sizes of one count. */
typedef struct {
    int64_t k, small, large, rest;
    double lower_us;
    int tried;
} balanced;

/* 0 where the limits do not admit it. */
static int balance(const sluice_whole *q, int64_t k, balanced *cut)
{
    int64_t unit = q->unit_bytes, small = q->message_bytes / (k * unit) * unit;
    int64_t left = q->message_bytes - k * small, large = left / unit, rest = left % unit;
    int64_t minimum = large < (rest ? k - 1 : k) ? small : small + rest;
    int64_t maximum = large ? small + unit : small + rest;
    *cut = (balanced){k, small, large, rest, 0.0, 0};
    return minimum >= q->min_bytes && maximum <= q->max_bytes;
}

/* A path that stays in stage b pays it for every fragment, and elsewhere the cheapest size. */
static double lower_of(const sluice_whole *q, const balanced *cut)
{
    int64_t unit = q->unit_bytes, has_rest = cut->rest > 0;
    int64_t sizes[3] = {cut->small, cut->small + unit, cut->small + cut->rest};
    int64_t counts[3] = {(has_rest ? cut->k - 1 : cut->k) - cut->large, cut->large, has_rest};
    double sum = 0.0, maximum = 0.0;
    for (int64_t j = 0; j < q->n; j++) {
        double every = 0.0, cheapest = INFINITY;
        for (int kind = 0; kind < 3; kind++) {
            double t = sluice_time_us(q, j, (double)sizes[kind]);
            every += t * (double)counts[kind];
            cheapest = counts[kind] > 0 && t < cheapest ? t : cheapest;
        }
        sum += cheapest;
        maximum = every - cheapest > maximum ? every - cheapest : maximum;
    }
    return sum + maximum + q->delay_us;
}

/* Whether place i carries a unit more: spread evenly in three ways, and all first, last, amid. */
static int64_t carries(int pattern, int64_t i, int64_t places, int64_t large)
{
    int64_t half = places / 2, from = (places - large) / 2, back = places - 1 - i;
    switch (pattern) {
    case 0: return (i + 1) * large / places - i * large / places;
    case 1: return ((i + 1) * large + half) / places - (i * large + half) / places;
    case 2: return (back + 1) * large / places - back * large / places;
    case 3: return i < large;
    case 4: return back < large;
    default: return i >= from && i < from + large;
    }
}

/* The best order of a cut's sizes; `trial` (k) to work in. */
static double best_order(const sluice_whole *q, const balanced *cut, int64_t *trial,
                         int64_t *sizes)
{
    int64_t places = cut->rest ? cut->k - 1 : cut->k, large = cut->large;
    int patterns = large == 0 || large == places ? 1 : 6;
    double best = INFINITY;
    for (int pattern = 0; pattern < patterns; pattern++) {
        for (int64_t i = 0; i < places; i++)
            trial[i] = cut->small + (patterns == 1 ? (large ? q->unit_bytes : 0)
                                                   : q->unit_bytes *
                                                         carries(pattern, i, places, large));
        if (cut->rest)
            trial[places] = cut->small + cut->rest;
        double latency = sluice_evaluate(q, cut->k, trial);
        if (latency < best) {
            best = latency;
            memcpy(sizes, trial, (size_t)cut->k * sizeof *sizes);
        }
    }
    return best;
}

/* The untried cut to try next: the one nearest to `near` first, then the least bound; or none. */
static balanced *next_of(balanced *cuts, int64_t number, int64_t near, int64_t tried)
{
    balanced *found = NULL;
    for (balanced *one = cuts; one < cuts + number; one++) {
        if (one->tried)
            continue;
        if (found == NULL ||
            (tried ? one->lower_us < found->lower_us
                   : llabs(one->k - near) < llabs(found->k - near)))
            found = one;
    }
    return found;
}

static void try_all(const sluice_whole *q, const sluice_equal_search *asked, balanced *cuts,
                    int64_t number, int64_t *room, int64_t *sizes, int64_t *count)
{
    double best = INFINITY;
    int64_t cells = 0, maximum = asked->near + asked->neighbours;
    for (int64_t tried = 0; tried < number; tried++) {
        balanced *cut = next_of(cuts, number, asked->near, tried);
        cut->tried = 1;
        if (cut->lower_us >= best * (1.0 - TIE))
            continue;
        if (cells > asked->cells)
            return;
        double latency = best_order(q, cut, room, room + maximum);
        cells += cut->k * q->n;
        if (latency < best * (1.0 - TIE)) {
            best = latency;
            *count = cut->k;
            memcpy(sizes, room + maximum, (size_t)cut->k * sizeof *sizes);
        }
    }
}

int sluice_equal_cut(const sluice_whole *q, const sluice_equal_search *asked, int64_t *sizes,
                     int64_t *count)
{
    int64_t low = asked->near - asked->neighbours, high = asked->near + asked->neighbours;
    int64_t number = 0;
    balanced *cuts = malloc((size_t)(high - low + 1) * sizeof *cuts);
    int64_t *room = malloc((size_t)(2 * high) * sizeof *room);
    int status = SLUICE_EQUAL_MEMORY;
    low = low < q->k_min ? q->k_min : low;
    high = high > q->k_max ? q->k_max : high;
    if (cuts != NULL && room != NULL) {
        for (int64_t k = low; k <= high; k++)
            number += balance(q, k, cuts + number);
        for (int64_t i = 0; i < number; i++)
            cuts[i].lower_us = lower_of(q, cuts + i);
        try_all(q, asked, cuts, number, room, sizes, count);
        status = number ? SLUICE_EQUAL_FOUND : SLUICE_EQUAL_NONE;
    }
    free(cuts);
    free(room);
    return status;
}
