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

/* What a solve works on and with. */
typedef struct {
    const sluice_lines *lines;
    int64_t k;
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

static int is_close(const solve *s)
{
    return s->bounds->upper_us - s->bounds->lower_us <= s->close * s->bounds->upper_us;
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

/* Let fragments wait behind the boundaries out of order, of neighbours alike only the first; where
   that adds none, behind all. How many may wait now. */
static int64_t let_wait(solve *s, double complementarity)
{
    int64_t boundaries = s->lines->n - 1, before = -2, added = 0, all = 0;
    double value = 0.0;
    double minimum = complementarity > 1e-8 ? 3.0 * sqrt(complementarity) : DISORDER;
    minimum = minimum > DISORDER ? minimum : DISORDER;
    for (int64_t d = 0; d < boundaries; d++) {
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
    for (int64_t d = 0; d < boundaries; d++) {
        s->waits[d] = added ? s->waits[d] : 1;
        all += s->waits[d];
    }
    return all;
}

/* One run of the interior point on the boundaries chosen so far. */
static int iterate(solve *s, int64_t waiting, double time_limit_s, double *complementarity)
{
    int64_t chosen[SPAN], q = 0;
    for (int64_t d = 0; s->k > 2 && d < s->lines->n - 1; d++)
        if (s->waits[d])
            chosen[q++] = d;
    sluice_ip_outcome outcome;
    sluice_ip_problem asked = {
        .k = s->k,
        .n = s->lines->n,
        .overhead_us = s->overhead,
        .us_per_byte = s->lines->us_per_byte,
        .free_bytes = s->free_bytes,
        .spread_bytes = s->spread,
        .repeat_step = 0,
        .repeats = 1,
        .boundaries = chosen,
        .q = q,
        .close = s->aim,
        .max_iterations = MAX_ITERATIONS,
        .time_limit_s = time_limit_s,
        .check_order_at = waiting == s->lines->n - 1 ? 0.0 : CHECK_ORDER_AT,
    };
    int status = sluice_ip_solve(&asked, s->x, s->p, s->violation, &outcome);
    *complementarity = outcome.complementarity;
    return status;
}

static int search(solve *s, double time_limit_s)
{
    int64_t waiting = 0, boundaries = s->lines->n - 1;
    for (int round = 0; round < MAX_ROUNDS; round++) {
        double complementarity = 0.0;
        memset(s->violation, 0, sizeof s->violation);
        int status = iterate(s, waiting, time_limit_s, &complementarity);
        if (status == SLUICE_IP_MEMORY)
            return SLUICE_COUNT_MEMORY;
        certify(s);
        if (is_close(s))
            return SLUICE_COUNT_CLOSE;
        if (status == SLUICE_IP_TIME || waiting == boundaries)
            break;
        waiting = let_wait(s, complementarity);
    }
    return SLUICE_COUNT_APART;
}

int sluice_count_solve(const sluice_lines *lines, int64_t k, double close, double aim,
                       double time_limit_s, double *x, double *p, sluice_bounds *bounds)
{
    int64_t n = lines->n;
    solve s = {.lines = lines, .k = k, .close = close, .aim = aim, .bounds = bounds};
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
    if (!is_close(&s) && n > 1)
        status = s.free_bytes > 0.0 ? search(&s, time_limit_s) : SLUICE_COUNT_APART;
    free(s.x);
    return status;
}
