#include "count.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dual.h"
#include "interior_point.h"
#include "recurrence.h"

/* Source    solvers/exact/structured.py, which is the same for every size and every outcome.
   Notation  k fragments, n stages; d: a boundary, the stage behind which fragments may wait.
   Cost      that of the interior point; nothing else here grows faster than k n.
   Exact     what is returned is certified here and not taken from the method.
   Traps     only the first of neighbouring boundaries with the same violation is let wait. */

#define SPAN SLUICE_LINES_MAX_STAGES
#define MAX_ROUNDS 8
#define MAX_ITERATIONS 80
#define CHECK_ORDER_AT 1e-3
#define DISORDER 1e-9
#define ALIKE 0.05
#define CONVERGED 1e-9 /* complementarity from which on only the digits of p are missing */
#define ROUNDED 1e-6   /* bounds farther apart lack more than digits */

#define UNSETTLED 0.25 /* of the root of the complementarity, see is_unsettled */

/* What a solve works on and with. */
typedef struct {
    const sluice_lines *lines;
    int64_t k;
    int64_t first, last;     /* fragments of each end that may differ; 0: all may */
    double close, aim;
    double free_bytes, spread;
    double overhead[SPAN];   /* with the least size taken in */
    double violation[SPAN];
    char waits[SPAN];        /* whether fragments may wait behind a stage */
    double *x, *p;           /* of the iterate in hand */
    double *best_x, *best_p; /* of the best of each side */
    sluice_bounds *bounds;
} solve;

static double latency_of(const sluice_lines *lines, int64_t k, const double *x)
{
    int64_t ranges[SPAN];
    double latency = INFINITY;
    for (int64_t j = 0; j < lines->n; j++)
        ranges[j] = 1;
    sluice_pipeline all = {lines->n, ranges, x, lines->overhead_us, lines->us_per_byte, 1.0};
    (void)sluice_latencies(&all, 1, k, x, &latency);
    return latency;
}

/* Keep the better of each side. */
static void keep(solve *s)
{
    double lower = sluice_dual_value(s->lines, s->k, s->p);
    double upper = latency_of(s->lines, s->k, s->x);
    if (lower > s->bounds->lower_us) {
        s->bounds->lower_us = lower;
        memcpy(s->best_p, s->p, (size_t)((s->k - 1) * s->lines->n) * sizeof *s->p);
    }
    if (upper < s->bounds->upper_us) {
        s->bounds->upper_us = upper;
        memcpy(s->best_x, s->x, (size_t)s->k * sizeof *s->x);
    }
}

static int is_within(const solve *s, double share)
{
    return s->bounds->upper_us - s->bounds->lower_us <= share * s->bounds->upper_us;
}

/* Equal sizes, and the bound of the stage that is slowest at that size. */
static void equal_sizes(solve *s)
{
    const sluice_lines *lines = s->lines;
    int64_t slowest = 0;
    double size = lines->message_bytes / (double)s->k, maximum = -1.0;
    for (int64_t j = 0; j < lines->n; j++) {
        double t = lines->overhead_us[j] + lines->us_per_byte[j] * size;
        if (t > maximum) {
            maximum = t;
            slowest = j;
        }
    }
    memset(s->p, 0, (size_t)((s->k - 1) * lines->n) * sizeof *s->p);
    for (int64_t i = 0; i < s->k - 1; i++)
        s->p[i * lines->n + slowest] = 1.0;
    for (int64_t i = 0; i < s->k; i++)
        s->x[i] = size;
}

/* Amounts y in proportion to themselves, none above `most`, that sum to the whole; in place. */
static void spread_shares(int64_t k, double *y, double whole, double maximum)
{
    double given = 0.0;
    for (int64_t i = 0; i < k; i++)
        given += y[i];
    for (int64_t i = 0; i < k; i++)
        y[i] = given > 0.0 ? y[i] * (whole / given) : whole / (double)k;
    for (int64_t round = 0; round < k; round++) {
        double excess = 0.0;
        int64_t over = 0, open = 0;
        for (int64_t i = 0; i < k; i++) {
            over += y[i] > maximum;
            open += y[i] < maximum;
            excess += y[i] > maximum ? y[i] - maximum : 0.0;
        }
        for (int64_t i = 0; over && i < k; i++)
            y[i] = y[i] >= maximum ? maximum : y[i] + excess / (double)open;
        if (!over || !open)
            return;
    }
}

/* The iterate in hand made feasible on both sides. */
static void certify(solve *s)
{
    int64_t k = s->k;
    for (int64_t i = 0; i < k; i++)
        s->x[i] = s->x[i] > 0.0 && s->x[i] < INFINITY ? s->x[i] : 0.0;
    spread_shares(k, s->x, s->free_bytes, s->spread);
    for (int64_t i = 0; i < k; i++)
        s->x[i] += s->lines->min_bytes;
    sluice_dual_repair(k - 1, s->lines->n, s->p);
    keep(s);
}

/* Let fragments wait behind the boundaries out of order, of neighbours alike only the first; returns
   how many of them are new. */
static int64_t let_wait(solve *s, double complementarity)
{
    int64_t before = -2, added = 0;
    double value = 0.0;
    double minimum = complementarity > 1e-8 ? 3.0 * sqrt(complementarity) : DISORDER;
    minimum = minimum > DISORDER ? minimum : DISORDER;
    for (int64_t d = 0; d < s->lines->n - 1; d++) {
        double here = s->violation[d];
        if (!(here > minimum))
            continue;
        if (d != before + 1 || fabs(here - value) > ALIKE * here) {
            added += !s->waits[d];
            s->waits[d] = 1;
        }
        before = d;
        value = here;
    }
    return added;
}

/* Whether p still moves beside the repeated step, by more than the iterate is rough. Asked of ends
   of one length, which are guesses: others are long enough for their stages. */
static int is_unsettled(const solve *s, double complementarity)
{
    int64_t n = s->lines->n;
    const double *row = s->p + (s->first - 1) * n;
    double moved = 0.0;
    if (s->first == 0 || s->first != s->last)
        return 0;
    for (int64_t c = 0; c < n; c++) {
        moved = fmax(moved, fabs(row[c] - row[c - n]));
        moved = fmax(moved, fabs(row[c + n] - row[c]));
    }
    return moved > UNSETTLED * sqrt(complementarity > 0.0 ? complementarity : 0.0);
}

/* Sizes and p of the fragments between the ends, in place. */
static void lay_out(solve *s)
{
    int64_t n = s->lines->n, first = s->first, last = s->last, inner = s->k - first - last;
    if (first == 0)
        return;
    double repeated = s->x[first + last];
    memmove(s->x + first + inner, s->x + first, (size_t)last * sizeof *s->x);
    for (int64_t i = first; i < first + inner; i++)
        s->x[i] = repeated;
    memmove(s->p + (first + inner) * n, s->p + first * n, (size_t)((last - 1) * n) * sizeof *s->p);
    for (int64_t i = first; i < first + inner; i++)
        memcpy(s->p + i * n, s->p + (first - 1) * n, (size_t)n * sizeof *s->p);
}

/* One run of the interior point on the boundaries chosen so far. */
static int iterate(solve *s, int64_t waiting, double time_limit_s, sluice_ip_outcome *outcome)
{
    int64_t chosen[SPAN], q = 0;
    for (int64_t d = 0; s->k > 2 && d < s->lines->n - 1; d++)
        if (s->waits[d])
            chosen[q++] = d;
    int is_short = s->first > 0;
    sluice_ip_problem asked = {
        .k = is_short ? s->first + s->last : s->k,
        .n = s->lines->n,
        .overhead_us = s->overhead,
        .us_per_byte = s->lines->us_per_byte,
        .free_bytes = s->free_bytes,
        .spread_bytes = s->spread,
        .repeat_step = is_short ? s->first - 1 : 0,
        .repeats = is_short ? s->k - s->first - s->last + 1 : 1,
        .boundaries = chosen,
        .q = q,
        .close = s->aim,
        .max_iterations = MAX_ITERATIONS,
        .time_limit_s = time_limit_s,
        .check_order_at = waiting == s->lines->n - 1 ? 0.0 : CHECK_ORDER_AT,
    };
    return sluice_ip_solve(&asked, s->x, s->p, s->violation, outcome);
}

/* An iterate that was stopped because boundaries are missing is certified only where it is the last
   one. */
static int search(solve *s, double time_limit_s)
{
    int64_t waiting = 0, boundaries = s->lines->n - 1;
    for (int round = 1; round <= MAX_ROUNDS; round++) {
        sluice_ip_outcome outcome = {0.0, 1.0, 0};
        memset(s->violation, 0, sizeof s->violation);
        int status = iterate(s, waiting, time_limit_s, &outcome);
        if (status == SLUICE_IP_MEMORY)
            return SLUICE_COUNT_MEMORY;
        int64_t added = let_wait(s, outcome.complementarity);
        int is_last = status == SLUICE_IP_TIME || round == MAX_ROUNDS || waiting == boundaries ||
                      is_unsettled(s, outcome.complementarity) || (s->first > 0 && !added);
        if (is_last || !added || outcome.apart <= ROUNDED) {
            lay_out(s);
            certify(s);
            if (is_within(s, s->close))
                return SLUICE_COUNT_CLOSE;
            if (outcome.complementarity <= CONVERGED && is_within(s, ROUNDED))
                break; /* the caller brings the digits back */
        }
        if (is_last)
            break;
        for (int64_t d = 0; !added && d < boundaries; d++)
            s->waits[d] = 1;
        waiting = added ? waiting + added : boundaries;
    }
    return SLUICE_COUNT_APART;
}

int sluice_count_solve(const sluice_lines *lines, int64_t k, int64_t first, int64_t last,
                       double close, double aim, double time_limit_s, double *x, double *p,
                       sluice_bounds *bounds)
{
    int64_t n = lines->n;
    solve s = {.lines = lines, .k = k, .close = close, .aim = aim, .bounds = bounds};
    s.first = first > 1 && last > 1 && first + last < k ? first : 0;
    s.last = s.first > 0 ? last : 0;
    double left = lines->message_bytes - (double)k * lines->min_bytes;
    s.free_bytes = left > 0.0 ? left : 0.0;
    s.spread = lines->max_bytes - lines->min_bytes;
    for (int64_t j = 0; j < n; j++)
        s.overhead[j] = lines->overhead_us[j] + lines->min_bytes * lines->us_per_byte[j];
    /* The interior point writes one more size than there are fragments. */
    s.x = malloc((size_t)(k + 1 + (k - 1) * n) * sizeof *s.x);
    if (s.x == NULL)
        return SLUICE_COUNT_MEMORY;
    s.p = s.x + k + 1;
    s.best_x = x;
    s.best_p = p;
    *bounds = (sluice_bounds){-INFINITY, INFINITY};
    equal_sizes(&s);
    keep(&s);
    int status = SLUICE_COUNT_CLOSE;
    if (!is_within(&s, s.close) && n > 1)
        status = s.free_bytes > 0.0 ? search(&s, time_limit_s) : SLUICE_COUNT_APART;
    free(s.x);
    return status;
}

int sluice_count_changed(const sluice_lines *lines, int64_t k, int64_t count,
                         const sluice_change *changes, double close, sluice_bounds *bounds)
{
    const int64_t n = lines->n;
    double overhead[SPAN], cost[SPAN];
    double *x = malloc((size_t)(k + (k - 1) * n) * sizeof *x);
    int status = x == NULL ? SLUICE_COUNT_MEMORY : 0;
    sluice_lines changed = *lines;
    changed.overhead_us = overhead;
    changed.us_per_byte = cost;
    for (int64_t c = 0; c < count && status == 0; c++) {
        memcpy(overhead, lines->overhead_us, (size_t)n * sizeof *overhead);
        memcpy(cost, lines->us_per_byte, (size_t)n * sizeof *cost);
        overhead[changes[c].stage] *= changes[c].factor;
        cost[changes[c].stage] *= changes[c].factor;
        if (sluice_count_solve(&changed, k, 0, 0, close, close, INFINITY, x, x + k, bounds + c) ==
            SLUICE_COUNT_MEMORY)
            status = SLUICE_COUNT_MEMORY;
    }
    free(x);
    return status;
}
