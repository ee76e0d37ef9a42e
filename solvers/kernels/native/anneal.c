/* Threshold accepting: amounts, ends of regions, places, one fragment more or less. The numbers
   drawn are of the seed alone and no function of the platform's is in them. */
#include "anneal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NEAR = 8, COPIED = 8 }; /* places; sizes that are copied in the time of a cell */
enum { TRANSFER = 140, PLACE = 192, SPLIT = 224, DRAWN = 256 }; /* of so many moves */

typedef struct {
    const sluice_anneal_problem *of;
    uint64_t state;
    int64_t count;
    double *size, *moved, *best;  /* (max_count) */
    double *exits, *moved_exits;  /* (max_count + 1, n) when each fragment leaves each stage */
    double *rests;                /* (max_count + 1, n) the longest path from there to the end */
    double least, most;           /* sizes */
    int64_t best_count;
} walk;

static uint64_t drawn(walk *w)
{
    w->state ^= w->state << 13, w->state ^= w->state >> 7, w->state ^= w->state << 17;
    return w->state * UINT64_C(0x2545F4914F6CDD1D) >> 11; /* 53 bits */
}

static int64_t below(walk *w, int64_t end) { return (int64_t)(drawn(w) % (uint64_t)end); }

static double share(walk *w) { return (double)drawn(w) * 0x1p-53; }

static double whole(const walk *w, double amount)
{
    return w->of->unit_bytes * floor(amount / w->of->unit_bytes);
}

/* An aligned size at an end of a region: the last one of it, or the first one. */
static double some_end(walk *w)
{
    int64_t end = below(w, 2 * w->of->regions);
    double unit = w->of->unit_bytes;
    return end & 1 ? unit * floor(w->of->high[end / 2] / unit)
                   : unit * ceil(w->of->low[end / 2] / unit);
}

static int64_t region_of(const sluice_anneal_problem *of, double size)
{
    int64_t from = 0, to = of->regions - 1;
    while (from < to) {
        int64_t middle = (from + to) / 2;
        if (size <= of->high[middle]) to = middle;
        else from = middle + 1;
    }
    return from;
}

/* Fills in the exits of fragments first..last. */
static void run(const sluice_anneal_problem *of, const double *size, int64_t first, int64_t last,
                double *exits)
{
    int64_t n = of->stages;
    for (int64_t i = first; i <= last; i++) {
        int64_t q = region_of(of, size[i]);
        const double *g = of->overhead_us + q * n, *G = of->us_per_byte + q * n;
        const double *above = exits + i * n;
        double *here = exits + (i + 1) * n, before = 0.0;
        for (int64_t j = 0; j < n; j++) {
            before = (above[j] > before ? above[j] : before) + g[j] + G[j] * size[i];
            here[j] = before;
        }
    }
}

/* Fills in, for fragments last, last - 1, .. 0, the longest path from the moment that a fragment
   can enter a stage. That of `count` is nothing but the last stage's. */
static void run_back(walk *w, int64_t last)
{
    const sluice_anneal_problem *of = w->of;
    int64_t n = of->stages;
    for (int64_t i = last; i >= 0; i--) {
        int64_t q = region_of(of, w->size[i]);
        const double *g = of->overhead_us + q * n, *G = of->us_per_byte + q * n;
        const double *below = w->rests + (i + 1) * n;
        double *here = w->rests + i * n, behind = 0.0;
        for (int64_t j = n - 1; j >= 0; j--) {
            behind = (below[j] > behind ? below[j] : behind) + g[j] + G[j] * w->size[i];
            here[j] = behind;
        }
    }
}

static void place(walk *w, int64_t from, int64_t to)
{
    double size = w->moved[from];
    if (from < to)
        memmove(w->moved + from, w->moved + from + 1, (size_t)(to - from) * sizeof size);
    else memmove(w->moved + to + 1, w->moved + to, (size_t)(from - to) * sizeof size);
    w->moved[to] = size;
}

/* The fragments of the moved cut that differ: none where `first` is negative. */
typedef struct {
    int64_t first, last;
} span;

static const span NONE = {-1, -1};

static span between(int64_t one, int64_t other)
{
    return one < other ? (span){one, other} : (span){other, one};
}

/* Another place: mostly one that is near. */
static int64_t other_place(walk *w, int64_t from, int64_t end)
{
    int64_t reach = below(w, 4) ? NEAR : end, to;
    int64_t low = from > reach ? from - reach : 0, high = from + reach < end - 1 ? from + reach : end - 1;
    to = low + below(w, high - low);
    return to < from ? to : to + 1;
}

/* One fragment's bytes to another. */
static span transferred(walk *w)
{
    if (w->count < 2) return NONE;
    int64_t i = below(w, w->count), j = other_place(w, i, w->count), kind = below(w, 4);
    double amount, *x = w->moved;
    if (kind == 0) amount = whole(w, ldexp(x[j] * share(w), -(int)below(w, 24)));
    else if (kind == 3) amount = whole(w, (x[j] - x[i]) * share(w));
    else amount = whole(w, kind == 1 ? some_end(w) - x[i] : x[j] - some_end(w));
    x[i] += amount, x[j] -= amount;
    if (amount == 0.0 || x[i] < w->least || x[j] < w->least || x[i] > w->most || x[j] > w->most)
        return NONE;
    return between(i, j);
}

/* Two fragments in each other's place, or one in another place. Where the message is no multiple
   of the unit the last one stays: it alone may be none. */
static span placed(walk *w, int64_t movable)
{
    if (movable < 2) return NONE;
    int64_t i = below(w, movable), j = other_place(w, i, movable);
    if (w->moved[i] == w->moved[j]) return NONE;
    if (below(w, 2)) {
        double size = w->moved[i];
        w->moved[i] = w->moved[j], w->moved[j] = size;
    } else {
        place(w, i, j);
    }
    return between(i, j);
}

static span split(walk *w, int64_t movable)
{
    if (w->count >= w->of->max_count) return NONE;
    int64_t i = below(w, w->count);
    double part = below(w, 2) ? some_end(w) : whole(w, w->moved[i] * share(w));
    double rest = w->moved[i] - part;
    if (part < w->least || rest < w->least || part > w->most || rest > w->most) return NONE;
    int64_t at = below(w, 3) ? i : below(w, movable + 1);
    w->moved[i] = rest;
    memmove(w->moved + at + 1, w->moved + at, (size_t)(w->count - at) * sizeof part);
    w->moved[at] = part;
    return between(at, at <= i ? i + 1 : i);
}

static span joined(walk *w, int64_t movable)
{
    if (w->count <= w->of->min_count || w->count < 2 || movable < 1) return NONE;
    int64_t i = below(w, movable), j = other_place(w, i, w->count);
    w->moved[j] += w->moved[i];
    if (w->moved[j] > w->most) return NONE;
    int64_t behind = w->count - 1 - i;
    memmove(w->moved + i, w->moved + i + 1, (size_t)behind * sizeof *w->moved);
    return j > i ? (span){i, j - 1} : (span){j, i - 1};
}

static double walked(walk *w, double latency, double message)
{
    const sluice_anneal_problem *of = w->of;
    double best = latency, threshold;
    int is_odd = message != whole(w, message);
    for (int64_t left = of->cells; left > 0;) {
        double rest = (double)left / (double)of->cells;
        threshold = of->first * (rest * rest) * (rest * rest);
        int64_t kind = below(w, DRAWN), count = w->count, movable = count - is_odd;
        span changed;
        left -= of->stages + count / COPIED; /* a move that is not evaluated is work too */
        memcpy(w->moved, w->size, (size_t)count * sizeof *w->size);
        if (kind < TRANSFER) changed = transferred(w);
        else if (kind < PLACE) changed = placed(w, movable);
        else if (kind < SPLIT) changed = split(w, movable), count++;
        else changed = joined(w, movable), count--;
        if (changed.first < 0) continue;
        size_t n = (size_t)of->stages, row = n * sizeof *w->exits;
        size_t first = (size_t)changed.first, behind = (size_t)changed.last + 1;
        memcpy(w->moved_exits + first * n, w->exits + first * n, row);
        run(of, w->moved, changed.first, changed.last, w->moved_exits);
        left -= (int64_t)((behind - first) * n);
        const double *rests = w->rests + ((int64_t)behind + w->count - count) * of->stages;
        double here = 0.0;
        for (size_t j = 0; j < n; j++) {
            double path = w->moved_exits[behind * n + j] + rests[j];
            if (path > here) here = path;
        }
        if (here > latency && here > latency + best * threshold * share(w)) continue;
        memcpy(w->size, w->moved, (size_t)count * sizeof *w->size);
        int64_t from = count == w->count ? changed.last : count - 1;
        memset(w->rests + count * of->stages, 0, row);
        w->count = count;
        run(of, w->size, changed.first, count - 1, w->exits);
        run_back(w, from);
        latency = w->exits[count * of->stages + of->stages - 1];
        left -= 2 * count * of->stages;
        if (latency >= best) continue;
        best = latency, w->best_count = count;
        memcpy(w->best, w->size, (size_t)count * sizeof *w->size);
    }
    return best;
}

double sluice_anneal(const sluice_anneal_problem *of, double *size, int64_t *count)
{
    size_t room = (size_t)of->max_count + 1, n = (size_t)of->stages;
    double *numbers = calloc(3 * room + 3 * (room + 1) * n, sizeof *numbers);
    if (!numbers || *count > of->max_count) {
        free(numbers);
        return -1.0;
    }
    walk w = {.of = of, .state = of->seed * UINT64_C(0x9E3779B97F4A7C15) + 88172645463325252,
              .count = *count, .size = numbers, .moved = numbers + room,
              .best = numbers + 2 * room, .exits = numbers + 3 * room,
              
              .moved_exits = numbers + 3 * room + (room + 1) * n,
              .rests = numbers + 3 * room + 2 * (room + 1) * n, .least = of->low[0],
              .most = of->high[of->regions - 1], .best_count = *count};
    double message = 0.0;
    for (int64_t i = 0; i < *count; i++) message += size[i];
    memcpy(w.size, size, (size_t)*count * sizeof *size);
    memcpy(w.best, size, (size_t)*count * sizeof *size);
    run(of, size, 0, *count - 1, w.exits);
    run_back(&w, *count - 1);
    double best = w.exits[*count * of->stages + of->stages - 1];
    if (!w.state) w.state = 1;
    best = walked(&w, best, message);
    memcpy(size, w.best, (size_t)w.best_count * sizeof *size);
    *count = w.best_count;
    free(numbers);
    return best;
}
