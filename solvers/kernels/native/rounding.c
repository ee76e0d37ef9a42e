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
#define LANES 8 /* cuts that exchanges evaluate side by side */
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
    double *less, *more, *side;     /* (count + 2, n) and (count, n, LANES): of exchanges */
    double *values;                 /* of all that is compared */
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

/* `some` roundings from `first` on; the best cut in `sizes`, 0 without any. Equal ones are
   neighbours, for offsets ascend. */
static int best_rounding(const sluice_whole *q, const sluice_rounding *asked, room *r,
                         int64_t first, int64_t some, int64_t *sizes)
{
    size_t inner = (size_t)(asked->count - 1);
    for (int64_t u = 0; u < some; u++) {
        place(q, asked, r, first + u);
        r->values[u] = INFINITY;
        if (u > 0 && !memcmp(r->places, r->known, inner * sizeof *r->places))
            continue;
        memcpy(r->known, r->places, inner * sizeof *r->places);
        if (repair(q, asked->count, r->places, r->trial))
            r->values[u] = sluice_evaluate(q, asked->count, r->trial);
    }
    int64_t best = first_of_least(r->values, some);
    if (best < 0)
        return 0;
    place(q, asked, r, first + best);
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

/* Times of each fragment as it is, and with a unit less and more: (count, n). */
static void times_of(const sluice_whole *q, int64_t count, const int64_t *sizes, room *r)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < q->n; j++) {
            r->t[i * q->n + j] = sluice_time_us(q, j, (double)sizes[i]);
            r->less[i * q->n + j] = sluice_time_us(q, j, (double)(sizes[i] - q->unit_bytes));
            r->more[i * q->n + j] = sluice_time_us(q, j, (double)(sizes[i] + q->unit_bytes));
        }
}

/* The path length of a cut with smooth maxima, (a + b + sqrt((a - b)^2 + width)) / 2, from its
   times. Rows i + 1 of tau and rest get the true and the smooth exits of fragment i. Sums, products
   and roots alone: NumPy gives the same bits. */
static double smooth_length(int64_t n, int64_t count, double width, room *r)
{
    for (int64_t j = 0; j < n; j++)
        r->tau[j] = r->rest[j] = 0.0;
    for (int64_t i = 0; i < count; i++) {
        const double *t = r->t + i * n, *soft_before = r->rest + i * n, *before_it = r->tau + i * n;
        double *soft = r->rest + (i + 1) * n, *tau = r->tau + (i + 1) * n;
        double before = 0.0, ready = 0.0;
        for (int64_t j = 0; j < n; j++) {
            if (i > 0 && j > 0) {
                double apart = before - soft_before[j];
                before = 0.5 * ((before + soft_before[j]) + sqrt(apart * apart + width));
            } else if (i > 0) {
                before = soft_before[j];
            }
            before = soft[j] = before + t[j];
            ready = tau[j] = (i > 0 && before_it[j] > ready ? before_it[j] : ready) + t[j];
        }
    }
    return r->rest[count * n + n - 1];
}

/* The same of LANES cuts side by side, from fragment `first` on, before which all are the cut of the
   room: what one waits for, one root after the other, others fill. Of `times`, (count, n, LANES),
   what is before that is not read. The pragmas keep each loop one, so that it becomes vectors. */
CLONES static void smooth_lengths(int64_t n, int64_t first, int64_t count, double width,
                                  const room *r, double *restrict smooth, double *restrict truly)
{
    double soft[SPAN][LANES], tau[SPAN][LANES], before[LANES], ready[LANES];
    for (int64_t j = 0; j < n; j++)
        KEEP_LOOP for (int c = 0; c < LANES; c++) {
            soft[j][c] = r->rest[first * n + j];
            tau[j][c] = r->tau[first * n + j];
        }
    for (int64_t i = first; i < count; i++) {
        const double *restrict t = r->side + i * n * LANES;
        KEEP_LOOP for (int c = 0; c < LANES; c++) {
            before[c] = (i ? soft[0][c] : 0.0) + t[c];
            ready[c] = (i ? tau[0][c] : 0.0) + t[c];
            soft[0][c] = before[c];
            tau[0][c] = ready[c];
        }
        for (int64_t j = 1; j < n; j++) {
            t += LANES;
            if (i)
                KEEP_LOOP for (int c = 0; c < LANES; c++) {
                    double apart = before[c] - soft[j][c];
                    before[c] = 0.5 * ((before[c] + soft[j][c]) + sqrt(apart * apart + width));
                    ready[c] = tau[j][c] > ready[c] ? tau[j][c] : ready[c];
                }
            KEEP_LOOP for (int c = 0; c < LANES; c++) {
                before[c] = soft[j][c] = before[c] + t[c];
                ready[c] = tau[j][c] = ready[c] + t[c];
            }
        }
    }
    KEEP_LOOP for (int c = 0; c < LANES; c++) {
        smooth[c] = soft[n - 1][c];
        truly[c] = tau[n - 1][c];
    }
}

/* Both lengths of the cuts after each of these exchanges, LANES at most, into the room's values. */
static void exchanged(const sluice_whole *q, int64_t count, double width, const room *r,
                      const int64_t *pairs, int some)
{
    const int64_t n = q->n;
    double smooth[LANES], truly[LANES];
    int64_t first = count;
    for (int c = 0; c < some; c++)
        first = smaller(first, smaller(pairs[c] / count, pairs[c] % count));
    for (int64_t cell = first * n; cell < count * n; cell++)
        for (int c = 0; c < LANES; c++)
            r->side[cell * LANES + c] = r->t[cell];
    for (int c = 0; c < some; c++)
        for (int64_t j = 0; j < n; j++) {
            int64_t giver = pairs[c] / count * n + j, taker = pairs[c] % count * n + j;
            r->side[giver * LANES + c] = r->less[giver];
            r->side[taker * LANES + c] = r->more[taker];
        }
    smooth_lengths(n, first, count, width, r, smooth, truly);
    for (int c = 0; c < some; c++) {
        r->values[pairs[c]] = smooth[c];
        r->values[count * count + pairs[c]] = truly[c];
    }
}

static void shift(const sluice_whole *q, int64_t count, int64_t *sizes, int64_t pair, int64_t by)
{
    sizes[pair / count] -= by * q->unit_bytes;
    sizes[pair % count] += by * q->unit_bytes;
}

/* Both lengths of the cut after each exchange of a unit between two fragments: giver by giver. */
static void exchanges(const sluice_whole *q, int64_t count, const int64_t *sizes, double width,
                      const room *r)
{
    int64_t waiting[LANES];
    int some = 0;
    for (int64_t pair = 0; pair < count * count; pair++) {
        int64_t giver = pair / count, taker = pair % count;
        r->values[pair] = r->values[count * count + pair] = INFINITY;
        if (giver == taker || !admitted(q, sizes[giver] - q->unit_bytes) ||
            !admitted(q, sizes[taker] + q->unit_bytes))
            continue;
        waiting[some++] = pair;
        if (some == LANES) {
            exchanged(q, count, width, r, waiting, some);
            some = 0;
        }
    }
    if (some)
        exchanged(q, count, width, r, waiting, some);
}

/* Descends on the smooth length at each level, keeping the best true length met on the way; a level
   that is wider than the one before starts from it. */
static void exchange(const sluice_whole *q, const sluice_rounding *asked, room *r, int64_t *sizes)
{
    int64_t count = asked->count, pairs = count * count, *at = r->trial;
    times_of(q, count, sizes, r);
    smooth_length(q->n, count, 0.0, r);
    double known = r->tau[count * q->n + q->n - 1];
    memcpy(at, sizes, (size_t)count * sizeof *at);
    for (int64_t level = 0; level < asked->levels; level++) {
        double width = asked->widths[level];
        if (level > 0 && width > asked->widths[level - 1])
            memcpy(at, sizes, (size_t)count * sizeof *at);
        times_of(q, count, at, r);
        double soft = smooth_length(q->n, count, width, r);
        for (int64_t pass = 0; pass < asked->exchanges; pass++) {
            exchanges(q, count, at, width, r);
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
            shift(q, count, at, smooth, 1);
            times_of(q, count, at, r);
            soft = smooth_length(q->n, count, width, r);
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

/* The best cut that the offsets from `first` on, `some` of them, lead to without exchanges; 0 where
   they lead to none. */
static int descended(const sluice_whole *q, const sluice_rounding *asked, room *r, int64_t first,
                     int64_t some, int64_t *sizes)
{
    if (!best_rounding(q, asked, r, first, some, sizes))
        return 0;
    for (int64_t pass = 0; pass < asked->passes; pass++)
        if (!improve(q, asked->count, sizes, r))
            break;
    return 1;
}

/* How many cuts are in `sizes`; starts that lead to the same place are gone on from once. */
static int round_with(const sluice_whole *q, const sluice_rounding *asked, room *r, int64_t *sizes)
{
    int64_t count = asked->count, starts = 1 + (asked->exchanges > 0 ? asked->others : 0);
    int found = 0;
    if (!positions_of(q, asked, r->positions))
        return SLUICE_ROUND_OTHER;
    for (int64_t start = 0; start < starts; start++) {
        int64_t first = start ? asked->roundings + start - 1 : 0, *cut = sizes + found * count;
        int is_new = descended(q, asked, r, first, start ? 1 : asked->roundings, cut);
        for (int before = 0; before < found && is_new; before++)
            is_new = memcmp(sizes + before * count, cut, (size_t)count * sizeof *cut) != 0;
        found += is_new;
        if (!start && starts > 1 && found && sluice_evaluate(q, count, sizes) <= asked->enough_us)
            return found;
    }
    for (int at = 0; at < found && asked->exchanges > 0; at++)
        exchange(q, asked, r, sizes + at * count);
    return found;
}

int sluice_round(const sluice_whole *q, const sluice_rounding *asked, int64_t *sizes)
{
    int64_t count = asked->count, cells = (count + 2) * q->n;
    int64_t more = asked->exchanges > 0 ? 2 * cells + count * q->n * LANES : 0;
    if (count < 2 || count > q->k_max || q->max_aligned < q->unit_bytes)
        return SLUICE_ROUND_OTHER;
    double *numbers = malloc((size_t)(count + 3 * cells + more + compared(asked)) * sizeof *numbers);
    int64_t *places = malloc((size_t)(3 * count) * sizeof *places);
    int status = SLUICE_ROUND_MEMORY;
    if (numbers != NULL && places != NULL) {
        double *exchanged = numbers + count + 3 * cells;
        room r = {
            .positions = numbers,
            .places = places,
            .known = places + count,
            .trial = places + 2 * count,
            .tau = numbers + count,
            .rest = numbers + count + cells,
            .t = numbers + count + 2 * cells,
            .less = exchanged,
            .more = exchanged + cells,
            .side = exchanged + 2 * cells,
            .values = exchanged + more,
        };
        status = round_with(q, asked, &r, sizes);
    }
    free(numbers);
    free(places);
    return status;
}
