#include "rounding.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "portable.h"

/* Source    docs/theory.md sec. 6; solvers/rounding.py.
   Notation  tau (k, n) exit times; rest (k, n) longest path from entering (i, j) to the end.
   Cost      O(roundings k n), and O(k n) for the 2(k-1) moves of a pass.
   Exact     no: see rounding.py.
   Traps     positions are rounded and not sizes: the error would grow with k. */

#define SPAN SLUICE_LINES_MAX_STAGES
#define LARGEST 1e15 /* bytes; no message is larger, and doubles below it count single bytes */
#define GAIN (1.0 - 1e-13)
#define TIE (1.0 + 1e-13) /* values this close are equal, whatever their last digits: first wins */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t product(int64_t count, int64_t size, int64_t cap)
{
    return count > cap / size ? cap : count * size;
}

/* Where inner position i, behind i fragments, may lie given the limits on both of its sides. */
static void window(const sluice_whole *q, int64_t count, int64_t i, int64_t *low, int64_t *high)
{
    int64_t unit = q->unit_bytes, whole = q->message_bytes, behind = count - 1 - i;
    int64_t last_low = (whole - q->max_bytes + unit - 1) / unit * unit;
    int64_t last_high = (whole - q->min_bytes) / unit * unit;
    *low = larger(i * q->min_aligned, last_low - product(behind, q->max_aligned, whole));
    *high = smaller(product(i, q->max_aligned, whole), last_high - behind * q->min_aligned);
}

/* Aligned positions to sizes within the limits, moved as little as that takes; 0 where none are. */
static int repair(const sluice_whole *q, int64_t count, const int64_t *positions, int64_t *sizes)
{
    int64_t minimum = q->min_aligned, before = 0, raised = 0;
    for (int64_t i = 1; i < count; i++) {
        int64_t low, high, place = positions[i - 1];
        window(q, count, i, &low, &high);
        if (low > high)
            return 0;
        place = place < low ? low : place > high ? high : place;
        /* Raised to the place before and the least size, then lowered to it and the greatest. */
        raised = i > 1 ? larger(place, raised + minimum) : place;
        place = i > 1 ? smaller(raised, before + q->max_aligned) : raised;
        sizes[i - 1] = place - before;
        before = place;
    }
    sizes[count - 1] = q->message_bytes - before;
    for (int64_t i = 0; i < count; i++)
        if (sizes[i] < q->min_bytes || sizes[i] > q->max_bytes)
            return 0;
    for (int64_t i = 0; q->unit_bytes > 1 && i < count - 1; i++)
        if (sizes[i] % q->unit_bytes)
            return 0;
    return 1;
}

/* Room for one cut's roundings and moves. */
typedef struct {
    double *positions;              /* (count), in units */
    int64_t *places, *known, *trial; /* (count) */
    double *tau, *rest, *t;         /* (count + 2, n) */
    double *values;                 /* of all that is compared */
    double *lanes;                  /* (3 + 2 n, count^2) paths of all exchanges */
} room;

/* The first of the values that are the least but for rounding; -1 where all are infinite. */
static int64_t first_of_least(const double *values, int64_t count)
{
    double least = INFINITY;
    int64_t first = 0;
    for (int64_t c = 0; c < count; c++)
        least = values[c] < least ? values[c] : least;
    if (least == INFINITY)
        return -1;
    while (values[first] > least * TIE)
        first++;
    return first;
}

/* How many values are compared at once, at most. */
static int64_t compared(const sluice_rounding *asked)
{
    int64_t pairs = asked->exchanges > 0 ? 2 * asked->count * asked->count : 0;
    return larger(larger(asked->roundings, 2 * asked->count), pairs);
}

/* The places of one rounding. */
static void place(const sluice_whole *q, const sluice_rounding *asked, room *r, int64_t u)
{
    for (int64_t i = 0; i < asked->count - 1; i++)
        r->places[i] = (int64_t)floor(r->positions[i] + asked->offsets[u]) * q->unit_bytes;
}

/* All roundings; the best cut in `sizes`. Equal ones are neighbours, for offsets ascend. */
static int best_rounding(const sluice_whole *q, const sluice_rounding *asked, room *r,
                         int64_t *sizes)
{
    size_t inner = (size_t)(asked->count - 1);
    for (int64_t u = 0; u < asked->roundings; u++) {
        place(q, asked, r, u);
        r->values[u] = INFINITY;
        if (u > 0 && !memcmp(r->places, r->known, inner * sizeof *r->places))
            continue;
        memcpy(r->known, r->places, inner * sizeof *r->places);
        if (repair(q, asked->count, r->places, r->trial))
            r->values[u] = sluice_evaluate(q, asked->count, r->trial);
    }
    int64_t best = first_of_least(r->values, asked->roundings);
    if (best < 0)
        return 0;
    place(q, asked, r, best);
    return repair(q, asked->count, r->places, sizes);
}

/* Rows 1..count of tau and of rest; row 0 of tau and row count + 1 of rest are nothing. */
static void paths(const sluice_whole *q, int64_t count, const int64_t *sizes, room *r)
{
    int64_t n = q->n;
    for (int64_t j = 0; j < n; j++)
        r->tau[j] = r->rest[(count + 1) * n + j] = 0.0;
    for (int64_t i = 0; i < count; i++) {
        double ready = 0.0, *row = r->tau + (i + 1) * n, *t = r->t + i * n;
        for (int64_t j = 0; j < n; j++) {
            t[j] = sluice_time_us(q, j, (double)sizes[i]);
            ready = row[j] = (ready > row[j - n] ? ready : row[j - n]) + t[j];
        }
    }
    for (int64_t i = count - 1; i >= 0; i--) {
        double ready = 0.0, *row = r->rest + (i + 1) * n;
        for (int64_t j = n - 1; j >= 0; j--)
            ready = row[j] = (ready > row[j + n] ? ready : row[j + n]) + r->t[i * n + j];
    }
}

/* Latency, without delay, after fragments i and i + 1 take other sizes. */
static double moved(const sluice_whole *q, const room *r, int64_t i, int64_t first,
                    int64_t second)
{
    int64_t n = q->n, pair[2] = {first, second};
    double exits[SPAN], maximum = 0.0;
    memcpy(exits, r->tau + i * n, (size_t)n * sizeof *exits);
    for (int row = 0; row < 2; row++) {
        double ready = 0.0;
        for (int64_t j = 0; j < n; j++)
            ready = exits[j] = (ready > exits[j] ? ready : exits[j]) +
                               sluice_time_us(q, j, (double)pair[row]);
    }
    const double *behind = r->rest + (i + 3) * n;
    for (int64_t j = 0; j < n; j++)
        maximum = exits[j] + behind[j] > maximum ? exits[j] + behind[j] : maximum;
    return maximum;
}

static int admitted(const sluice_whole *q, int64_t size)
{
    return size >= q->min_bytes && size <= q->max_bytes;
}

/* The best of all moves of one position by one unit, taken if it is better; 0 if none is. Of equals
   the first place, and there the lesser shift. */
static int improve(const sluice_whole *q, int64_t count, int64_t *sizes, room *r)
{
    int64_t unit = q->unit_bytes;
    paths(q, count, sizes, r);
    double known = r->tau[count * q->n + q->n - 1] * GAIN;
    for (int64_t move = 0; move < 2 * (count - 1); move++) {
        int64_t i = move / 2, shift = move % 2 ? unit : -unit;
        int64_t first = sizes[i] + shift, second = sizes[i + 1] - shift;
        int takes = admitted(q, first) && admitted(q, second);
        r->values[move] = takes ? moved(q, r, i, first, second) : INFINITY;
    }
    int64_t best = first_of_least(r->values, 2 * (count - 1));
    if (best < 0 || !(r->values[best] < known))
        return 0;
    sizes[best / 2] += best % 2 ? unit : -unit;
    sizes[best / 2 + 1] -= best % 2 ? unit : -unit;
    return 1;
}

/* The path length of a cut with smooth maxima, (a + b + sqrt((a - b)^2 + width)) / 2, and in `hard`
   the true one, both without delay. Sums, products and roots alone: NumPy gives the same bits. */
static double smooth_length(const sluice_whole *q, int64_t count, const int64_t *sizes, double width,
                            double *hard)
{
    double soft[SPAN], tau[SPAN];
    for (int64_t i = 0; i < count; i++) {
        double before = 0.0, ready = 0.0;
        for (int64_t j = 0; j < q->n; j++) {
            double t = sluice_time_us(q, j, (double)sizes[i]);
            if (i > 0 && j > 0) {
                double apart = before - soft[j];
                before = 0.5 * ((before + soft[j]) + sqrt(apart * apart + width));
            } else if (i > 0) {
                before = soft[j];
            }
            before = soft[j] = before + t;
            ready = tau[j] = (i > 0 && tau[j] > ready ? tau[j] : ready) + t;
        }
    }
    *hard = tau[q->n - 1];
    return soft[q->n - 1];
}

static void shift(const sluice_whole *q, int64_t count, int64_t *sizes, int64_t pair, int64_t by)
{
    sizes[pair / count] -= by * q->unit_bytes;
    sizes[pair % count] += by * q->unit_bytes;
}

/* One stage for one fragment of every pair: all of them side by side, so that the processor waits for
   a root once and not once a pair. The operations of smooth_length, in its order. */
CLONES static void join_paths(int64_t pairs, double width, const double *restrict t,
                              double *restrict soft, double *restrict tau, double *restrict before,
                              double *restrict ready)
{
    for (int64_t l = 0; l < pairs; l++) {
        double apart = before[l] - soft[l];
        double path = 0.5 * ((before[l] + soft[l]) + sqrt(apart * apart + width)) + t[l];
        double at = (tau[l] > ready[l] ? tau[l] : ready[l]) + t[l];
        soft[l] = before[l] = path;
        tau[l] = ready[l] = at;
    }
}

/* The same where one of the two paths does not exist: the first stage, and the first fragment. */
CLONES static void extend_paths(int64_t pairs, const double *restrict t, const double *soft_from,
                                const double *tau_from, double *soft, double *tau,
                                double *before, double *ready)
{
    for (int64_t l = 0; l < pairs; l++) {
        double path = soft_from[l] + t[l], at = tau_from[l] + t[l];
        soft[l] = before[l] = path;
        tau[l] = ready[l] = at;
    }
}

/* Times of fragment i in stage j: a unit less where it gives, one more where it takes. */
static void times_of_pairs(const sluice_whole *q, int64_t count, int64_t j, int64_t i, int64_t size,
                           double *t)
{
    double as_is = sluice_time_us(q, j, (double)size);
    double given = sluice_time_us(q, j, (double)(size - q->unit_bytes));
    double taken = sluice_time_us(q, j, (double)(size + q->unit_bytes));
    for (int64_t pair = 0; pair < count * count; pair++)
        t[pair] = as_is;
    for (int64_t other = 0; other < count; other++)
        t[other * count + i] = taken;
    for (int64_t other = 0; other < count; other++)
        t[i * count + other] = given;
}

/* Both lengths of the cut after each exchange of a unit between two fragments: giver by giver. */
static void exchanges(const sluice_whole *q, int64_t count, const int64_t *sizes, double width,
                      double *values, double *lanes)
{
    int64_t n = q->n, pairs = count * count;
    double *t = lanes, *before = lanes + pairs, *ready = lanes + 2 * pairs;
    double *soft = lanes + 3 * pairs, *tau = soft + n * pairs;
    for (int64_t i = 0; i < count; i++) {
        for (int64_t pair = 0; pair < pairs; pair++)
            before[pair] = ready[pair] = 0.0;
        for (int64_t j = 0; j < n; j++) {
            double *soft_j = soft + j * pairs, *tau_j = tau + j * pairs;
            times_of_pairs(q, count, j, i, sizes[i], t);
            if (i > 0 && j > 0)
                join_paths(pairs, width, t, soft_j, tau_j, before, ready);
            else
                extend_paths(pairs, t, i > 0 ? soft_j : before, i > 0 ? tau_j : ready, soft_j,
                             tau_j, before, ready);
        }
    }
    for (int64_t pair = 0; pair < pairs; pair++) {
        int takes = pair / count != pair % count &&
                    admitted(q, sizes[pair / count] - q->unit_bytes) &&
                    admitted(q, sizes[pair % count] + q->unit_bytes);
        values[pair] = takes ? before[pair] : INFINITY;
        values[pairs + pair] = takes ? ready[pair] : INFINITY;
    }
}

/* Descends on the smooth length at each level, keeping the best true length met on the way; a level
   that is wider than the one before starts from it. */
static void exchange(const sluice_whole *q, const sluice_rounding *asked, room *r, int64_t *sizes)
{
    int64_t count = asked->count, pairs = count * count, *at = r->trial;
    double known, hard;
    smooth_length(q, count, sizes, 0.0, &known);
    memcpy(at, sizes, (size_t)count * sizeof *at);
    for (int64_t level = 0; level < asked->levels; level++) {
        double width = asked->widths[level];
        if (level > 0 && width > asked->widths[level - 1])
            memcpy(at, sizes, (size_t)count * sizeof *at);
        double soft = smooth_length(q, count, at, width, &hard);
        for (int64_t pass = 0; pass < asked->exchanges; pass++) {
            exchanges(q, count, at, width, r->values, r->lanes);
            int64_t smooth = first_of_least(r->values, pairs);
            int64_t truly = first_of_least(r->values + pairs, pairs);
            if (smooth < 0)
                return;
            if (r->values[pairs + truly] < known * GAIN) {
                known = r->values[pairs + truly];
                memcpy(sizes, at, (size_t)count * sizeof *at);
                shift(q, count, sizes, truly, 1);
            }
            if (!(r->values[smooth] < soft * GAIN))
                break;
            soft = r->values[smooth];
            shift(q, count, at, smooth, 1);
        }
    }
}

/* Cumulative positions in units; 0 where some cannot be counted in whole bytes. */
static int positions_of(const sluice_whole *q, const sluice_rounding *asked, double *positions)
{
    double sum = 0.0, unit = (double)q->unit_bytes;
    for (int64_t i = 0; i < asked->count - 1; i++) {
        sum += asked->x[i];
        if (!(sum >= 0.0 && sum <= LARGEST))
            return 0;
        positions[i] = sum / unit;
    }
    return 1;
}

static int round_with(const sluice_whole *q, const sluice_rounding *asked, room *r, int64_t *sizes)
{
    if (!positions_of(q, asked, r->positions))
        return SLUICE_ROUND_OTHER;
    if (!best_rounding(q, asked, r, sizes))
        return SLUICE_ROUND_NONE;
    for (int64_t pass = 0; pass < asked->passes; pass++)
        if (!improve(q, asked->count, sizes, r))
            break;
    if (asked->exchanges > 0)
        exchange(q, asked, r, sizes);
    return SLUICE_ROUND_FOUND;
}

int sluice_round(const sluice_whole *q, const sluice_rounding *asked, int64_t *sizes)
{
    int64_t count = asked->count, cells = (count + 2) * q->n;
    if (count < 2 || count > q->k_max || q->max_aligned < q->unit_bytes)
        return SLUICE_ROUND_OTHER;
    int64_t lanes = asked->exchanges > 0 ? (3 + 2 * q->n) * count * count : 0;
    size_t room_for = (size_t)(count + 3 * cells + compared(asked) + lanes);
    double *numbers = malloc(room_for * sizeof *numbers);
    int64_t *places = malloc((size_t)(3 * count) * sizeof *places);
    int status = SLUICE_ROUND_MEMORY;
    if (numbers != NULL && places != NULL) {
        room r = {
            .positions = numbers,
            .places = places,
            .known = places + count,
            .trial = places + 2 * count,
            .tau = numbers + count,
            .rest = numbers + count + cells,
            .t = numbers + count + 2 * cells,
            .values = numbers + count + 3 * cells,
            .lanes = numbers + count + 3 * cells + compared(asked),
        };
        status = round_with(q, asked, &r, sizes);
    }
    free(numbers);
    free(places);
    return status;
}
