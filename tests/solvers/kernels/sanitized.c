/* Runs every kernel on random and degenerate input, for a build with sanitizers.

   usage: sanitized SEED CASES. Buffers have exactly the size that the headers ask for. A further
   kernel gets a function here and a line in main. Exit status 1 where a result is wrong. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "anneal.h"
#include "blocks.h"
#include "bounds.h"
#include "busy.h"
#include "count.h"
#include "draws.h"
#include "dual.h"
#include "equal.h"
#include "groups.h"
#include "interior_point.h"
#include "item_draws.h"
#include "items.h"
#include "machine.h"
#include "project.h"
#include "recurrence.h"
#include "repeat.h"
#include "rounding.h"
#include "sizes.h"
#include "tree.h"

static uint64_t state;

static uint64_t bits(void) /* splitmix64 */
{
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int64_t between(int64_t minimum, int64_t maximum)
{
    return minimum + (int64_t)(bits() % (uint64_t)(maximum - minimum + 1));
}

static int64_t least(int64_t one, int64_t other) { return one < other ? one : other; }

static double uniform(void) { return (double)(bits() >> 11) * 0x1p-53; }

/* Zero now and then, else log-uniform. */
static double wide(double minimum, double maximum)
{
    return bits() % 8 == 0 ? 0.0 : minimum * pow(maximum / minimum, uniform());
}

static void *must(size_t count, size_t size)
{
    void *out = calloc(count ? count : 1, size); /* of no use beyond `count`, and not null */
    if (out == NULL)
        abort();
    return out;
}

static double *doubles(int64_t count) { return must((size_t)count, sizeof(double)); }

static void expect(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "wrong: %s\n", what);
        exit(1);
    }
}

/* ---- the recurrence ---------------------------------------------------------------------------- */

static double time_of(const sluice_pipeline *p, int64_t first, int64_t ranges, double size)
{
    int64_t r = first;
    while (r < first + ranges - 1 && !(size <= p->end_bytes[r]))
        r++;
    return p->overhead_us[r] + p->cost[r] * size / p->divisor;
}

static double plain_latency(const sluice_pipeline *p, int64_t count, const double *sizes)
{
    double tau[SLUICE_RECURRENCE_MAX_STAGES] = {0.0};
    for (int64_t i = 0; i < count; i++) {
        double ready = 0.0;
        for (int64_t j = 0, first = 0; j < p->stages; first += p->ranges[j++]) {
            double start = ready > tau[j] ? ready : tau[j];
            ready = tau[j] = start + time_of(p, first, p->ranges[j], sizes[i]);
        }
    }
    return tau[p->stages - 1];
}

static void recurrence(void)
{
    int64_t n = between(1, SLUICE_RECURRENCE_MAX_STAGES), cuts = between(0, 3), all = 0;
    int64_t count = between(0, 5) == 0 ? between(0, 3) : between(1, 700);
    int64_t *ranges = must((size_t)n, sizeof *ranges);
    for (int64_t j = 0; j < n; j++)
        all += ranges[j] = between(0, 2) ? 1 : between(2, 64);
    double *ends = doubles(all), *overhead = doubles(all), *cost = doubles(all);
    double *sizes = doubles(cuts * count), *latency = doubles(cuts), odd[] = {0.0, INFINITY, NAN};
    for (int64_t j = 0, r = 0; j < n; j++)
        for (int64_t e = 0; e < ranges[j]; e++, r++) {
            ends[r] = e == ranges[j] - 1 ? odd[between(1, 2)] : (double)(e * 100 + between(1, 99));
            overhead[r] = wide(1e-3, 1e5);
            cost[r] = wide(1e-4, 1e9);
        }
    for (int64_t i = 0; i < cuts * count; i++)
        sizes[i] = between(0, 200) ? (double)between(1, 7000) : odd[between(0, 2)];
    sluice_pipeline p = {n, ranges, ends, overhead, cost, between(0, 1) ? 1000.0 : 1.0};
    expect(sluice_latencies(&p, cuts, count, sizes, latency) == 0, "latencies refused");
    for (int64_t c = 0; c < cuts; c++) {
        double plain = plain_latency(&p, count, sizes + c * count);
        expect(latency[c] == plain || (isnan(latency[c]) && isnan(plain)), "latency");
    }
    if (cuts > 0) {
        int64_t stage = between(0, n - 1), first = 0;
        double factor = uniform(), changed;
        int status = sluice_changed_latencies(&p, 1, &stage, &factor, count, sizes, &changed);
        for (int64_t j = 0; j < stage; j++)
            first += ranges[j];
        for (int64_t r = first; r < first + ranges[stage]; r++) {
            overhead[r] *= factor;
            cost[r] *= factor;
        }
        double plain = plain_latency(&p, count, sizes);
        expect(status == 0 && (changed == plain || isnan(plain)), "latency at changed costs");
    }
    p.stages = between(0, 1) ? 0 : SLUICE_RECURRENCE_MAX_STAGES + 1;
    expect(sluice_latencies(&p, cuts, count, sizes, latency) == -1, "count of stages");
    free(ranges), free(ends), free(overhead), free(cost), free(sizes), free(latency);
}

/* ---- block tridiagonal systems ------------------------------------------------------------------ */

/* Diagonally dominant, or (for a look at what rounding leaves) singular or full of zeros. */
static void fill_blocks(int64_t count, int64_t m, double *diagonal, double *upper, int kind)
{
    for (int64_t i = 0; i < count * m * m; i++) {
        diagonal[i] = kind == 2 ? 0.0 : 1.0;
        upper[i] = kind == 0 ? uniform() - 0.5 : kind == 1 ? 1.0 : 0.0;
    }
    for (int64_t b = 0; kind == 0 && b < count; b++)
        for (int64_t r = 0; r < m; r++)
            diagonal[b * m * m + r * m + r] = 4.0 * (double)m;
}

static void blocks(void)
{
    int64_t count = between(1, 9), m = between(0, 9) ? between(1, 10) : 64;
    double *diagonal = doubles(count * m * m), *upper = doubles(count * m * m);
    double *inverse = doubles(count * m), *side = doubles(count * m), *known = doubles(count * m);
    double *again = doubles(count * m);
    unsigned char wide[9];
    int kind = (int)between(0, 2);
    fill_blocks(count, m, diagonal, upper, kind);
    for (int64_t b = 0; b < count; b++) {
        wide[b] = (unsigned char)(between(0, 2) > 0);
        for (int64_t c = 0; c < m; c++) /* what is not wide has one unknown */
            known[b * m + c] = c == 0 || wide[b] ? uniform() : 0.0;
    }
    for (int64_t b = 0; b < count; b++)
        for (int64_t r = 0; r < m; r++)
            for (int64_t c = 0; c < m; c++) {
                side[b * m + r] += diagonal[(b * m + r) * m + c] * known[b * m + c];
                if (b + 1 < count) {
                    side[b * m + r] += upper[(b * m + r) * m + c] * known[(b + 1) * m + c];
                    side[(b + 1) * m + c] += upper[(b * m + r) * m + c] * known[b * m + r];
                }
            }
    sluice_blocks_factor(count, m, wide, diagonal, upper, inverse);
    if (between(0, 1))
        sluice_blocks_solve(count, m, wide, diagonal, upper, inverse, side);
    else
        sluice_blocks_solve_two(count, m, wide, diagonal, upper, inverse, side, again);
    for (int64_t i = 0; kind == 0 && i < count * m; i++)
        expect((i % m && !wide[i / m]) || fabs(side[i] - known[i]) < 1e-9, "solution of a block system");
    free(diagonal), free(upper), free(inverse), free(side), free(known), free(again);
}

/* ---- the interior point ------------------------------------------------------------------------- */

static void check_certificate(const sluice_ip_problem *q, double *p)
{
    sluice_ip_repair(q->k - 1, q->n, p);
    for (int64_t t = 0; t < q->k - 1; t++) {
        double total = 0.0;
        for (int64_t c = 0; c < q->n; c++) {
            expect(p[t * q->n + c] >= 0.0, "repaired row below zero");
            total += p[t * q->n + c];
        }
        expect(fabs(total - 1.0) < 1e-9, "sum of a repaired row");
    }
}

static void interior_point(void)
{
    int64_t n = between(0, 15) ? between(2, 12) : 64, k = between(2, between(0, 3) ? 20 : 200);
    double *overhead = doubles(n), *cost = doubles(n), *sizes = doubles(k + 1);
    double *p = doubles((k - 1) * n), *violation = doubles(n - 1);
    int64_t *boundaries = must((size_t)(n - 1), sizeof *boundaries), q = 0;
    for (int64_t c = 0; c < n; c++) {
        overhead[c] = wide(1e-3, 1e5);
        cost[c] = wide(1e-7, 10.0);
    }
    for (int64_t d = 0; d < n - 1; d++)
        if (between(0, 2) == 0)
            boundaries[q++] = d;
    sluice_ip_span *spans = must((size_t)(q * k + 1), sizeof *spans);
    int64_t runs = 0;
    for (int64_t d = 0; d < q; d++)
        for (int64_t first = 1, last; first < k - 1; first = last + 2) {
            last = between(first, k - 2);
            if (between(0, 2))
                spans[runs++] = (sluice_ip_span){d, first, last};
        }
    double all = wide(1.0, 1e9) + 1e-3;
    double spread = between(0, 1) ? all : all / (double)k * (1.0 + 4.0 * uniform());
    sluice_ip_problem asked = {k, n, overhead, cost, all, spread, between(0, k - 2),
                               between(0, 2) ? 1 : between(2, 100000), boundaries, q,
                               between(0, 1) ? spans : NULL, runs, 1e-9,
                               between(0, 40), 5.0, between(0, 1) ? 1e-3 : 0.0};
    if (between(0, 9) == 0) /* nothing costs anything */
        for (int64_t c = 0; c < n; c++)
            overhead[c] = cost[c] = 0.0;
    sluice_ip_outcome outcome;
    int status = sluice_ip_solve(&asked, sizes, p, violation, &outcome);
    expect(status >= SLUICE_IP_CLOSE && status <= SLUICE_IP_TIME, "status");
    for (int64_t i = 0; i < (k - 1) * n; i += between(1, 50))
        p[i] = between(0, 3) ? p[i] : between(0, 1) ? NAN : -1.0;
    check_certificate(&asked, p);
    free(overhead), free(cost), free(sizes), free(p), free(violation), free(boundaries);
    free(spans);
}

static void refusals(void)
{
    double one[65] = {0.0}, sizes[4], p[3], violation[2];
    sluice_ip_outcome outcome;
    sluice_ip_problem asked = {1, 2, one, one, 1.0, 1.0, 0, 1, NULL, 0, NULL, 0,
                               1e-9, 9, 1.0, 0.0};
    expect(sluice_ip_solve(&asked, sizes, p, violation, &outcome) == SLUICE_IP_MEMORY, "k of 1");
    asked.k = 2, asked.n = 65;
    expect(sluice_ip_solve(&asked, sizes, p, violation, &outcome) == SLUICE_IP_MEMORY, "n of 65");
}

/* ---- stages of one line: whole bytes ------------------------------------------------------------- */

/* Admitted counts, as MessageProblem.count_range has them; 0 where the limits admit none. */
static int count_range(sluice_whole *q)
{
    int64_t whole = q->message_bytes, unit = q->unit_bytes, minimum = q->min_bytes;
    q->min_aligned = (minimum + unit - 1) / unit * unit;
    q->max_aligned = q->max_bytes / unit * unit;
    if (q->max_aligned < q->min_aligned || whole <= minimum)
        return 0;
    int64_t over = whole - q->max_bytes, last = minimum + (whole - minimum) % unit;
    q->k_min = 1 + (over + q->max_aligned - 1) / q->max_aligned;
    q->k_max = 1 + (whole - last) / q->min_aligned;
    q->k_max = q->k_max < 3000 ? q->k_max : 3000;
    return last <= q->max_bytes && q->k_max >= q->k_min;
}

static void check_cut(const sluice_whole *q, int64_t count, const int64_t *sizes)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < count; i++) {
        expect(sizes[i] >= q->min_bytes && sizes[i] <= q->max_bytes, "limits");
        expect(i == count - 1 || sizes[i] % q->unit_bytes == 0, "alignment");
        sum += sizes[i];
    }
    expect(sum == q->message_bytes, "sum of the sizes");
    expect(sluice_bound(q, count) <= sluice_evaluate(q, count, sizes) * (1.0 + 1e-12), "bound");
}

static void check_rounding(const sluice_whole *q)
{
    int64_t k = between(q->k_min, q->k_max < q->k_min + 90 ? q->k_max
                                                                    : q->k_min + 90);
    int64_t *sizes = must((size_t)(3 * k), sizeof *sizes);
    double *x = doubles(k), offsets[] = {0.0, 0.25, 0.5, 1.0, 0.0, 0.5}, sum = 0.0;
    for (int64_t i = 0; i < k; i++)
        sum += x[i] = uniform();
    for (int64_t i = 0; i < k; i++)
        x[i] *= (double)q->message_bytes / sum;
    if (between(0, 40) == 0)
        x[between(0, k - 1)] = between(0, 1) ? NAN : INFINITY;
    double widths[] = {1e4, 1.0, 1e-4, 10.0};
    int64_t exchanges = k <= 20 ? between(0, 3) : 0;
    sluice_rounding asked = {k, x, offsets, 4, 2, between(0, 9), widths, 4, exchanges,
                             between(0, 1) ? wide(1.0, 1e6) : 0.0};
    int found = sluice_round(q, &asked, sizes);
    expect(found <= (exchanges ? 3 : 1), "cuts of a rounding");
    for (int at = 0; at < found; at++)
        check_cut(q, k, sizes + at * k);
    free(sizes), free(x);
}

static void check_equal(const sluice_whole *q)
{
    int64_t near = sluice_equal_count(q), neighbours = between(0, 24), count = 0;
    int64_t *sizes = must((size_t)(near + neighbours), sizeof *sizes);
    expect(near >= q->k_min && near <= q->k_max, "count of equal fragments");
    sluice_equal_search asked = {near, neighbours, between(0, 1) ? 1000000 : 0};
    if (sluice_equal_cut(q, &asked, sizes, &count) == SLUICE_EQUAL_FOUND)
        check_cut(q, count, sizes);
    free(sizes);
}

static void check_repeat(const sluice_whole *q)
{
    sluice_repeated best;
    sluice_repeat(q, between(1, 5000), &best);
    if (best.full == 0)
        return;
    int64_t rest = q->message_bytes - best.full * best.size_bytes, count = best.full + (rest > 0);
    int64_t *sizes = must((size_t)count, sizeof *sizes);
    for (int64_t i = 0; i < count; i++)
        sizes[i] = i < best.full ? best.size_bytes : rest;
    if (count > 1)
        check_cut(q, count, sizes);
    double evaluated = sluice_evaluate(q, count, sizes), reported = best.latency_us + q->delay_us;
    expect(fabs(evaluated - reported) <= 1e-9 * evaluated, "latency of a repeated size");
    free(sizes);
}

static void check_repeated_messages(const sluice_whole *q)
{
    int64_t messages = least(between(1, 40), q->message_bytes), k = between(2, 50);
    int64_t first = q->message_bytes - messages + 1, *sizes = must((size_t)messages, sizeof *sizes);
    double *latency = doubles(messages), *read = doubles(messages);
    sluice_repeat_each(q, k, first, messages, sizes, latency);
    for (int64_t m = 0; m < messages; m++) {
        int64_t message = first + m, rest = message - (k - 1) * sizes[m];
        if (sizes[m] == 0)
            continue;
        expect(rest >= q->min_bytes && rest <= sizes[m], "remainder of a message");
        expect(sizes[m] % q->unit_bytes == 0, "unit of a repeated size");
        sluice_repeat_read(q, message, 1, sizes[m], sizes[m], read);
        expect(read[0] == latency[m], "latency of a message");
    }
    int64_t size = q->unit_bytes * between(1, 1000);
    sluice_repeat_read(q, first, messages, size, size + q->unit_bytes * between(0, 1000), read);
    for (int64_t m = 0; m < messages; m++)
        expect(read[m] >= 0.0, "latency of a reader");
    free(sizes), free(latency), free(read);
}

static void check_bounds(const sluice_whole *q)
{
    int64_t first, last, counts[] = {q->k_min, q->k_max};
    double both[2];
    sluice_bounds_of(q, counts, 2, both);
    double limit = both[between(0, 1)] * (0.5 + uniform());
    sluice_bounds_within(q, between(0, 5000), limit, &first, &last);
    for (int64_t k = q->k_min + 1; k <= q->k_max; k++)
        expect((sluice_bound(q, k) <= limit) == (k >= first && k <= last), "counts within");
}

static void whole_bytes(void)
{
    int64_t n = between(0, 15) ? between(1, 12) : 64;
    double *overhead = doubles(n), *cost = doubles(n);
    for (int64_t j = 0; j < n; j++) {
        overhead[j] = wide(1e-3, 1e5);
        cost[j] = wide(1e-4, 1e4);
    }
    int64_t message = between(1, between(0, 3) ? 20000 : INT64_C(1) << 48);
    sluice_whole q = {.n = n, .overhead_us = overhead, .ns_per_byte = cost};
    q.message_bytes = message;
    q.unit_bytes = between(0, 2) ? 1 : between(1, 100);
    q.min_bytes = between(0, 2) ? 1 : between(1, 64);
    q.min_bytes = q.min_bytes < message ? q.min_bytes : message;
    q.max_bytes = between(0, 1) ? message : between(q.min_bytes, message);
    q.delay_us = wide(1e-3, 100.0);
    if (count_range(&q)) {
        check_rounding(&q);
        check_equal(&q);
        check_repeat(&q);
        check_repeated_messages(&q);
        check_bounds(&q);
    }
    free(overhead), free(cost);
}

/* ---- stages of one line: real sizes --------------------------------------------------------------- */

static void real_sizes(void)
{
    int64_t n = between(0, 15) ? between(1, 12) : 64, k = between(2, between(0, 9) ? 40 : 400);
    double *overhead = doubles(n), *cost = doubles(n), *x = doubles(k), *p = doubles((k - 1) * n);
    for (int64_t j = 0; j < n; j++) {
        overhead[j] = wide(1e-3, 1e5);
        cost[j] = wide(1e-7, 10.0);
    }
    double message = 1.0 + wide(1.0, 1e9);
    double minimum = between(0, 1) ? 0.0 : message / (double)(2 * k);
    double maximum = between(0, 1) ? message : message / (double)k * (1.0 + uniform());
    sluice_lines lines = {n, overhead, cost, message, minimum, maximum};
    for (int64_t i = 0; i < (k - 1) * n; i++)
        p[i] = between(0, 50) ? uniform() : between(0, 1) ? NAN : INFINITY;
    if (between(0, 1))
        sluice_dual_project(&lines, k, between(0, 1) ? 1e-7 : 0.0, p);
    if (between(0, 1))
        sluice_dual_restore(&lines, k, k - 1, between(0, 1) ? 0.2 : 0.0, p);
    else
        sluice_dual_repair(k - 1, n, p);
    expect(!isnan(sluice_dual_value(&lines, k, p)), "value of a dual");
    expect(!isnan(sluice_dual_above(&lines, k, p)), "value of a stretched dual");
    expect(k < 3 || !isnan(sluice_dual_below(&lines, k, p)), "value of a squeezed dual");
    sluice_bounds bounds;
    int whole = (int)between(0, 1);
    int status = sluice_count_solve(&lines, k, whole, 1e-9, 5e-10, 5.0, x, p, &bounds);
    expect(status == SLUICE_COUNT_CLOSE || status == SLUICE_COUNT_APART, "status of a solve");
    expect(bounds.lower_us <= bounds.upper_us * (1.0 + 1e-12), "bounds that cross");
    double largest = sluice_dual_largest(&lines, k, bounds.upper_us), value = sluice_dual_value(&lines, k, p);
    sluice_lines narrowed = lines;
    narrowed.max_bytes = largest > message / (double)k ? largest : message / (double)k;
    expect(bounds.lower_us >= value * (1.0 - 1e-12), "what p proves");
    expect(bounds.lower_us <= fmax(value, sluice_dual_value(&narrowed, k, p)) * (1.0 + 1e-12), "lower bound");
    sluice_dual_project(&lines, k, 1e-7, p);
    sluice_dual_repair(k - 1, n, p);
    expect(sluice_dual_value(&lines, k, p) <= bounds.upper_us * (1.0 + 1e-12), "projected bound");
    int64_t busy = sluice_busy_sizes(&lines, k, x);
    expect(busy >= -1 && busy < n, "the slowest stage");
    for (int64_t i = 0; busy >= 0 && i < k; i++)
        expect(x[i] >= minimum * (1.0 - 1e-12) && x[i] <= maximum, "a size that keeps it busy");
    double *by = doubles(2 * n + 1);
    expect(sluice_dual_gradient(&lines, k, p, x, by, by + n, by + 2 * n) == 0, "derivatives");
    expect(by[0] >= 1.0 && !isnan(by[2 * n]), "a derivative");
    free(overhead), free(cost), free(x), free(p), free(by);
}

/* ---- cuts in many draws ---------------------------------------------------------------------------- */

static void repeated_sizes(const sluice_draws *all, int64_t message)
{
    int64_t always = message, draws = all->draws, end_count = between(0, 3), ends[3];
    int64_t units[2] = {between(1, 9), between(1, 4096)}, octave_count = between(0, 9);
    double octaves[9];
    sluice_size_limits limits = {message, 1, message, 1, message, 1, message};
    sluice_size_grid grid = {between(1, 64), between(1, 40), between(0, 96), between(0, 32)};
    int64_t named = octave_count + 2 * (grid.powers + end_count) + grid.divided + grid.before + 2;
    int64_t *near = must((size_t)named, sizeof *near);
    sluice_size_search search = {between(1, draws), uniform(), between(1, 12), between(1, 12)};
    sluice_good_search good = {between(1, 40), between(1, 60), between(1, 8), 0.01, 0.9};
    for (int64_t at = 0; at < 9; at++)
        octaves[at] = pow((double)message, uniform());
    for (int64_t e = 0, end = 0; e < end_count; e++)
        ends[e] = end = between(end + 1, end + message);
    if (between(0, 1)) {
        limits.min_bytes = between(1, 64);
        limits.unit_bytes = between(1, 64);
        limits.max_bytes = between(1, message);
        limits.max_count = between(1, 100000);
        limits.low_bytes = between(1, message);
        limits.high_bytes = between(1, message);
    }
    int64_t near_count = sluice_near_sizes(all, &limits, &search, &grid, octave_count, octaves,
                                           end_count, ends, 1, &always, near);
    for (int64_t s = 0; s < near_count; s++)
        expect(near[s] > (s ? near[s - 1] : 0) && near[s] <= message, "sizes to price");
    if (!near_count) {
        free(near);
        return;
    }
    int64_t room = near_count + 4 * search.rounded + 2 * (search.beside + 2);
    int64_t *sizes = must((size_t)room, sizeof *sizes);
    double *latency = doubles(room * draws), *most = doubles(2 * draws);
    memcpy(sizes, near, (size_t)near_count * sizeof *sizes);
    int64_t count = sluice_price_sizes(all, &limits, &search, 2, units, near_count, sizes, latency);
    expect(1 <= count && count <= room, "sizes that are priced");
    for (int64_t s = 1; s < count; s++)
        expect(sizes[s - 1] < sizes[s] && sizes[s] <= message, "sizes that ascend");
    double *means = doubles(2 * count);
    expect(sluice_summarise(count, draws, latency, most, means, means + count) == 0, "a summary");
    for (int64_t s = 0; s < count; s++)
        expect(means[s] >= all->delay_us && means[count + s] >= 0.0, "a mean");
    for (int64_t i = 0; i < draws; i++) {
        most[draws + i] = most[i] * (1.0 + uniform());
        most[i] = most[draws + i] * 0.99;
    }
    sluice_round_rule rules[2] = {{units[1], message}, {1, between(1, 3)}};
    int64_t places[2];
    sluice_round_sizes(message, count, sizes, means + count, 2, rules, places);
    for (int64_t r = 0; r < 2; r++)
        expect(places[r] < count && (places[r] < 0 || sizes[places[r]] < message), "a round size");
    int64_t all_sizes = count + good.jumps_to + 2 * (good.fragments_to + 1) * end_count;
    int64_t *found = must((size_t)(6 * (all_sizes / 2 + 1)), sizeof *found);
    int64_t intervals = sluice_good_sizes(all, &limits, &good, count, sizes, latency, 2, most,
                                          end_count, ends, found);
    expect(0 <= intervals && intervals <= 2 * (all_sizes / 2 + 1), "good sizes");
    for (int64_t one = 0; one < intervals; one++)
        expect(found[3 * one] <= 1 && 1 <= found[3 * one + 1] &&
                   found[3 * one + 1] <= found[3 * one + 2] && found[3 * one + 2] <= message,
               "an interval");
    free(near), free(sizes), free(latency), free(most), free(found), free(means);
}

static void many_draws(void)
{
    int64_t n = between(1, 6), ranges = between(1, 4), draws = between(1, 40);
    int64_t row = draws + between(0, 3), cells = n * ranges * row, message = between(1, 1 << 20);
    double *overhead = doubles(cells), *cost = doubles(cells);
    double *ends = doubles(n * (ranges - 1) * row + 1), *latency = doubles(3 * draws);
    for (int64_t i = 0; i < cells; i++) {
        overhead[i] = between(0, 9) ? wide(1e-3, 1e4) : 0.0;
        cost[i] = between(0, 9) ? wide(1e-4, 1e3) : 0.0;
    }
    for (int64_t at = 0; at < n * (ranges - 1); at++)
        for (int64_t i = 0; i < row; i++)
            ends[at * row + i] = between(0, 9) ? (double)(between(1, 1000) + 1000 * at) : INFINITY;
    sluice_draws all = {n, ranges, draws, row, overhead, cost, ends, wide(1e-3, 10.0)};
    int64_t sizes[3] = {1, between(1, message), message};
    expect(sluice_repeated_in_draws(&all, message, 3, sizes, latency) == 0, "draws");
    for (int64_t i = 0; i < 3 * draws; i++)
        expect(latency[i] >= all.delay_us, "latency in a draw");
    int64_t cut[4] = {sizes[1], sizes[1], between(1, message), 1};
    expect(sluice_cut_in_draws(&all, between(1, 4), cut, latency) == 0, "a cut in draws");
    for (int64_t i = 0; i < draws; i++)
        expect(latency[i] >= all.delay_us, "latency of a cut in a draw");
    repeated_sizes(&all, message);
    free(overhead), free(cost), free(ends), free(latency);
}

/* ---- machines ---------------------------------------------------------------------------------- */

typedef struct {
    int64_t stages, ranges, nodes, windows, processors, pairs[4];
    int64_t *stage_of, *is_shared, *bounds;
    double *delay, *shared, *back, *overhead, *cost, *ends;
} machine_parts;

/* Nodes of each stage, their windows first, then any others. */
static void some_nodes(machine_parts *of)
{
    int64_t most = 2 * of->stages, others = between(0, 4), w = 0, takes_turns = bits() % 2;
    of->stage_of = must((size_t)most, sizeof(int64_t));
    of->is_shared = must((size_t)most, sizeof(int64_t));
    of->bounds = must((size_t)(4 * (2 * most + others)), sizeof(int64_t));
    of->delay = doubles(most), of->shared = doubles(most), of->back = doubles(2 * most + others);
    of->nodes = 0;
    for (int64_t j = 0; j < of->stages; j++) {
        int64_t parts = between(1, 2), lanes = takes_turns ? 1 : between(1, 5), first = of->nodes;
        double shared = parts == 2 ? wide(1e-4, 1e2) + 1e-4 : 0.0;
        for (int64_t part = 0; part < parts; part++, of->nodes++) {
            of->stage_of[of->nodes] = j, of->is_shared[of->nodes] = part;
            of->shared[of->nodes] = shared;
            of->delay[of->nodes] = part == parts - 1 ? wide(1e-2, 1e3) : 0.0;
            int64_t own[4] = {of->nodes, of->nodes, part ? 1 : lanes, 0};
            memcpy(of->bounds + 4 * w++, own, sizeof own);
        }
        int64_t both[4] = {first, of->nodes - 1, lanes, 0};
        if (parts == 2) memcpy(of->bounds + 4 * w++, both, sizeof both);
    }
    for (; others > 0; others--, w++) {
        int64_t a = between(0, of->nodes - 1), kind = between(0, 2);
        a -= of->is_shared[a]; /* a stage's first node */
        int64_t one[4] = {a, between(a, of->nodes - 1), kind != 1 ? between(1, 9) : 0,
                          kind != 0 ? between(1, 1 << 12) : 0};
        memcpy(of->bounds + 4 * w, one, sizeof one);
        of->back[w] = wide(1e-2, 1e3);
    }
    of->windows = w, of->processors = 0;
    if (of->nodes > 1 && takes_turns) {
        of->processors = 1, of->pairs[0] = between(0, of->nodes - 2);
        of->pairs[1] = between(of->pairs[0] + 1, of->nodes - 1);
    }
}

static machine_parts some_machine(int64_t draws)
{
    machine_parts of = {.stages = between(1, 5), .ranges = between(1, 3)};
    int64_t cells = of.stages * of.ranges * draws;
    of.overhead = doubles(cells), of.cost = doubles(cells);
    of.ends = doubles(of.stages * (of.ranges - 1) * draws);
    for (int64_t i = 0; i < cells; i++)
        of.overhead[i] = wide(1e-3, 1e4), of.cost[i] = wide(1e-4, 1e3);
    for (int64_t at = 0; at < of.stages * (of.ranges - 1); at++)
        for (int64_t i = 0; i < draws; i++)
            of.ends[at * draws + i] = between(0, 9) ? (double)(100 * (at + 1)) : INFINITY;
    some_nodes(&of);
    return of;
}

static void drop_machine(machine_parts of)
{
    free(of.stage_of), free(of.is_shared), free(of.bounds), free(of.delay), free(of.shared);
    free(of.back), free(of.overhead), free(of.cost), free(of.ends);
}

/* A message in equal fragments and a rest, asked in every way. */
static void machines(void)
{
    int64_t draws = between(1, 20), q = between(1, 40), s = between(1, 1000), lags[2] = {0};
    machine_parts of = some_machine(draws);
    sluice_machine m = {of.nodes,   of.stage_of, of.is_shared,  of.delay, of.shared, of.windows,
                        of.bounds,  of.back,     of.processors, of.pairs, 8};
    sluice_draws all = {of.stages, of.ranges, draws, draws, of.overhead, of.cost, of.ends, 1.0};
    int64_t r = between(0, s - 1), message = q * s + r;
    double *in_draws = doubles(draws), *cut = doubles(q + (r > 0));
    double *starts = doubles((q + (r > 0)) * m.nodes), *ends = doubles((q + (r > 0)) * m.nodes);
    double latency, same, slope, path, least, at, least_at = INFINITY;
    for (int64_t i = 0; i < q + (r > 0); i++) cut[i] = i < q ? (double)s : (double)r;
    expect(sluice_machine_repeated(&m, &all, 1, &q, &s, &r, &latency) == 0, "a machine");
    expect(sluice_machine_cut(&m, &all, q + (r > 0), cut, &same) == 0, "its cut");
    expect(latency == same, "repeated sizes are a cut");
    expect(sluice_machine_cut_in_draws(&m, &all, q + (r > 0), cut, in_draws) == 0, "its draws");
    expect(in_draws[0] == latency, "the first draw");
    expect(sluice_machine_repeated_in_draws(&m, &all, message, 1, &s, in_draws) == 0, "its sizes");
    expect(in_draws[0] == latency || fabs(in_draws[0] - latency) <= 1e-12 * latency,
           "the first draw of a size, whose rounds may repeat");
    for (least = INFINITY; lags[0] <= 8; lags[0]++) {
        expect(!sluice_machine_cut_at(&m, &all, q + (r > 0), cut, lags, &at), "a cut at a lag");
        least_at = at < least_at ? at : least_at;
        expect(!sluice_machine_times(&m, &all, q + (r > 0), cut, lags, starts, ends), "its times");
        for (int64_t i = 0; i < (q + (r > 0)) * m.nodes; i++)
            expect(ends[i] >= starts[i] && (ends[i] == INFINITY) == (at == INFINITY), "a time");
        expect(!sluice_machine_slopes(&m, &all, message, lags, 1, &q, &s, &same, &slope), "lines");
        least = same < least ? same : least;
        expect(!sluice_machine_paths(&m, &all, message, lags, 1, &q, &s, &path, &slope), "paths");
        expect(path <= same * (1.0 + 1e-9), "no path is longer");
    }
    expect(least == latency, "the best lag");
    expect(least_at == latency, "the best lag of a cut");
    r = 0;
    expect(sluice_machine_repeated(&m, &all, 1, &q, &s, &r, &latency) == 0, "no rest");
    expect(sluice_machine_equal(&m, &all, 1, (double[]){(double)s}, &q, &same) == 0, "equal");
    expect(same == latency || fabs(same - latency) <= 1e-9 * latency, "the formula");
    free(in_draws), free(cut), free(starts), free(ends);
    drop_machine(of);
}

/* ---- regions ----------------------------------------------------------------------------------- */

typedef struct {
    int64_t n, R, B;
    double *low, *high, *g, *G;
} regions;

static regions some_regions(void)
{
    regions of = {.n = between(2, 6), .B = between(4, 4000)};
    int64_t wide_by = between(0, 3) ? 500 : between(0, 3); /* regions of one size, too */
    of.R = between(1, between(0, 3) ? 9 : SLUICE_TREE_MAX_REGIONS);
    of.low = doubles(of.R), of.high = doubles(of.R);
    of.g = doubles(of.R * of.n), of.G = doubles(of.R * of.n);
    double at = 1.0;
    for (int64_t q = 0; q < of.R; q++) {
        of.low[q] = at, of.high[q] = at + (double)between(0, wide_by);
        at = of.high[q] + 1.0;
    }
    if (of.high[of.R - 1] < (double)of.B) of.high[of.R - 1] = (double)of.B;
    for (int64_t c = 0; c < of.R * of.n; c++) {
        of.g[c] = between(0, 5) ? wide(1e-3, 1e3) : 0.0;
        of.G[c] = between(0, 5) ? wide(1e-6, 1.0) : 0.0;
    }
    return of;
}

static double latency_of_regions(const regions *of, int64_t count, const double *size)
{
    double *exits = doubles(of->n), last;
    for (int64_t i = 0; i < count; i++) {
        double before = 0.0;
        int64_t q = 0;
        while (size[i] > of->high[q]) q++;
        expect(size[i] >= of->low[q], "a size is in a region");
        for (int64_t j = 0; j < of->n; j++) {
            before = fmax(before, exits[j]) + of->g[q * of->n + j] + of->G[q * of->n + j] * size[i];
            exits[j] = before;
        }
    }
    last = exits[of->n - 1];
    free(exits);
    return last;
}

/* No cut is below the bound of nodes of many counts; what they offer keeps message and units. */
static void many_counts(const regions *of, sluice_tree_problem problem, int64_t k, double least)
{
    problem.fewest = between(2, k), problem.fragments = k + between(0, bits() % 4 ? 9 : 5000);
    int64_t counts = problem.fragments - problem.fewest + 1, there;
    double *known = doubles(counts), *open = doubles(counts), *closed = doubles(counts);
    double *best = doubles(4096), unit = problem.unit_bytes, message = 0.0, reached = INFINITY;
    sluice_groups *groups = least > 0.0 ? sluice_groups_new(&problem, least * (1.0 + uniform())) : NULL;
    for (int turn = 0; groups && turn < 3; turn++) {
        double target = least * (between(0, 3) ? 1.001 : wide(0.5, 3.0));
        reached = fmin(reached, target); /* nodes are dropped there */
        for (int64_t i = 0; i < counts; i++) known[i] = between(0, 4) ? 0.0 : least * uniform();
        sluice_groups_advance(groups, target, known, wide(1e3, bits() % 4 ? 1e6 : 3e7));
        sluice_groups_bounds(groups, open, closed);
        double bound = fmin(open[k - problem.fewest], closed[k - problem.fewest]);
        expect(fmin(bound, reached) <= least * (1.0 + 1e-9), "a known cut is not below");
        double found = sluice_groups_best(groups, best, bits() % 4 ? 4096 : 3, &there);
        for (int64_t i = 0; i < there; i++) message += best[i];
        if (there) {
            expect(there >= problem.fewest && there <= problem.fragments, "one of its counts");
            expect(message == problem.message_bytes, "every byte of the message");
            for (int64_t i = 0; i < there - 1; i++)
                expect(fmod(best[i], unit) == 0.0, "a cut in whole units");
            expect(fabs(latency_of_regions(of, there, best) - found) <= 1e-9 * found, "its latency");
        }
        message = 0.0;
    }
    sluice_groups_free(groups);
    free(known), free(open), free(closed), free(best);
}

/* No cut is below the bound of its counts' tree; random moves keep the message and gain. */
static void searches(void)
{
    regions of = some_regions();
    int64_t k = between(2, of.B < 9 ? of.B : 9), after = k, most = k + between(0, 3);
    int64_t unit = between(0, 1) ? 1 : between(1, (of.B - 1) / (k - 1)), left = of.B;
    double *size = doubles(most), total = 0.0;
    for (int64_t i = 0; i < k; i++) {
        int64_t units = between(1, i == k - 1 ? 1 : (left - 1) / unit - (k - 2 - i));
        size[i] = (double)(i == k - 1 ? left : unit * units);
        left -= unit * units;
    }
    double known = latency_of_regions(&of, k, size), least = known;
    int64_t fewest = between(2, k), fragments = most, there = 0;
    sluice_tree_problem problem = {of.n,   fewest, fragments, of.R,         of.low,
                                   of.high, of.g,   of.G,      (double)of.B, (double)unit};
    many_counts(&of, problem, k, known);
    if (bits() % 2 && known > 0.0) { /* the cut's message is one of a span */
        double above = (double)between(0, 9), slope = known * uniform() / problem.message_bytes;
        problem.message_bytes += above, problem.span_bytes = above + (double)between(0, 9);
        problem.slope_us = slope, least += slope * above;
    }
    sluice_tree *tree = known > 0.0 ? sluice_tree_new(&problem, least * (1.0 + uniform())) : NULL;
    if (tree) {
        double *best = doubles(fragments);
        for (int turn = 0; turn < 3; turn++) {
            sluice_tree_advance(tree, least * 1.001, wide(1e3, 1e7));
            expect(sluice_tree_bound_us(tree) <= least * (1.0 + 1e-9), "a known cut is not below");
        }
        sluice_tree_real(tree, best);
        double found = sluice_tree_best(tree, best);
        if (found < INFINITY) {
            for (int64_t i = 0; i < fragments; i++)
                if (best[i] > 0.0) best[there++] = best[i];
            double own = latency_of_regions(&of, there, best), message = 0.0;
            for (int64_t i = 0; i < there; i++) message += best[i];
            expect(there >= fewest, "a tree's cut has one of its counts");
            for (int64_t i = 0; i < there - 1; i++)
                expect(fmod(best[i], (double)unit) == 0.0, "a tree's cut in whole units");
            own += problem.slope_us * (problem.message_bytes - message);
            expect(fabs(own - found) <= 1e-9 * found, "a tree's best cut"); /* 0 where costs are 0 */
            expect(found >= sluice_tree_bound_us(tree) * (1.0 - 1e-9), "it is not below the bound");
        }
        sluice_tree_free(tree);
        free(best);
    }
    sluice_anneal_problem moves = {of.n, of.R, of.low, of.high, of.g, of.G, between(1, k), most,
                                   (double)unit, 0.1 * uniform(), between(1, 20000), bits()};
    double latency = sluice_anneal(&moves, size, &after);
    expect(after >= moves.min_count && after <= most, "a number of fragments");
    for (int64_t i = 0; i < after; i++) total += size[i];
    expect(total == (double)of.B, "every byte of the message");
    expect(latency <= known * (1.0 + 1e-12), "no worse than the start");
    expect(fabs(latency_of_regions(&of, after, size) - latency) <= 1e-9 * latency, "its latency");
    free(size), free(of.low), free(of.high), free(of.g), free(of.G);
}

/* ---- items ------------------------------------------------------------------------------------- */

typedef struct {
    sluice_items of;
    double *ready, *spent, *overhead, *head, *rest, *ready_rest, *left, *floor, *room, *mean;
    int64_t *bytes, *ranges, *first, *earliest;
    int64_t window_first[2], window_last[2], places[2], window_bytes[2];
    double back[2];
    double end[2], range_overhead[2], range_cost[2];
} some_items;

static void items_made(some_items *some, int64_t m, int64_t n)
{
    const int64_t row = m + 1, is_ranged = between(0, 2) == 0 && n > 1;
    some->ready = doubles(row), some->spent = doubles(n * row), some->overhead = doubles(n);
    some->head = doubles(n * row), some->rest = doubles(n * row), some->left = doubles(n * row);
    some->ready_rest = doubles(row);
    some->floor = doubles(n), some->room = doubles(2 * m), some->mean = doubles(2 * row);
    some->bytes = must((size_t)row, sizeof(int64_t));
    some->earliest = must((size_t)row, sizeof(int64_t));
    some->ranges = must((size_t)n, sizeof(int64_t));
    some->first = must((size_t)n, sizeof(int64_t));
    const int64_t most = between(1, m);
    for (int64_t u = 1; u <= m; u++) {
        some->bytes[u] = some->bytes[u - 1] + between(1, 9);
        some->ready[u] = some->ready[u - 1] + wide(1e-2, 10);
        some->earliest[u] = u > most ? u - most : 0;
    }
    for (int64_t s = 0; s < n; s++) {
        double cost = wide(1e-2, 10);
        some->overhead[s] = wide(1e-2, 10);
        some->ranges[s] = is_ranged && s == n - 1 ? 2 : 1;
        for (int64_t u = 1; u <= m && some->ranges[s] == 1; u++)
            some->spent[s * row + u] = cost * (double)some->bytes[u];
    }
    for (int64_t r = 0; r < 2; r++) {
        some->end[r] = r ? INFINITY : (double)between(1, some->bytes[m]);
        some->range_overhead[r] = wide(1e-2, 10), some->range_cost[r] = wide(1, 1e4);
    }
    some->of = (sluice_items){m, n, some->ready, some->bytes, some->spent, some->overhead,
                              some->ranges, some->first, some->end, some->range_overhead,
                              some->range_cost, some->earliest, m, between(0, 2),
                              some->window_first, some->window_last, some->places,
                              some->window_bytes, some->back, some->room};
    for (int64_t w = 0; w < 2; w++) {
        some->window_first[w] = between(0, n - 1);
        some->window_last[w] = between(some->window_first[w], n - 1);
        some->places[w] = between(1, 5), some->window_bytes[w] = 0;
        some->back[w] = wide(1e-2, 10);
        for (int64_t j = 0; j <= m; j++)
            some->mean[w * row + j] = between(0, 1) ? 0.0 : -INFINITY;
    }
}

static void items_freed(some_items *some)
{
    free(some->ready), free(some->spent), free(some->overhead), free(some->head);
    free(some->rest), free(some->left), free(some->ready_rest);
    free(some->floor), free(some->room), free(some->mean);
    free(some->bytes), free(some->earliest), free(some->ranges), free(some->first);
}

static void ends_hold(const some_items *some, int64_t count, const int64_t *ends)
{
    expect(count >= 1 && ends[count - 1] == some->of.items, "a cut of all items");
    for (int64_t q = 0, i = 0; q < count; i = ends[q++])
        expect(ends[q] > i && some->earliest[ends[q]] <= i, "an admitted fragment of items");
}

/* All layouts listed, laid out again, and priced in one draw. */
static void items_in_draws(const some_items *some, int64_t layouts, int64_t is_before,
                           int64_t first_bytes)
{
    const int64_t m = some->of.items, n = some->of.stages, draws = between(1, 40);
    sluice_item_caps walk = {.is_before = is_before, .first_bytes = first_bytes, .next_cap = 1,
                             .last_cap = some->bytes[m], .latency_us = INFINITY};
    sluice_item_layouts listed = {between(1, layouts + 9), 0, NULL, NULL, NULL};
    listed.from_bytes = must((size_t)listed.room, sizeof(int64_t));
    listed.fragments = must((size_t)listed.room, sizeof(int64_t));
    listed.latency_us = doubles(listed.room);
    expect(sluice_items_caps(&some->of, &walk, INT64_MAX, &listed) == 0, "a list of layouts");
    expect(listed.count >= 1 && listed.count <= listed.room, "as many as there is room for");
    int64_t all = 0;
    for (int64_t c = 0; c < listed.count; c++)
        all += listed.fragments[c];
    int64_t *ends = must((size_t)all, sizeof *ends);
    expect(sluice_items_laid_out(&some->of, is_before, first_bytes, listed.count, listed.from_bytes,
                                 ends) == 0, "layouts of caps");
    double *overhead = doubles(2 * n * draws), *cost = doubles(2 * n * draws);
    double *end = doubles(n * draws), *factor = doubles(draws), *own = doubles(n * (m + 1));
    for (int64_t i = 0; i < 2 * n * draws; i++)
        overhead[i] = wide(1e-2, 10), cost[i] = wide(1, 1e4);
    for (int64_t i = 0; i < n * draws; i++)
        end[i] = bits() % 2 ? INFINITY : (double)between(1, some->bytes[m]);
    for (int64_t i = 0; i < draws; i++)
        factor[i] = wide(0.5, 2);
    sluice_draws costs = {n, 2, draws, draws, overhead, cost, end, 0.0};
    sluice_item_draws priced = {&costs, m, some->ready, factor, some->bytes, own, between(0, 1)};
    double *latency = doubles(listed.count * draws);
    expect(sluice_items_in_draws(&priced, listed.count, listed.fragments, ends, latency) == 0,
           "layouts in draws");
    for (int64_t i = 0; i < listed.count * draws; i++)
        expect(latency[i] >= some->ready[m] * factor[i % draws], "no sooner than items are ready");
    free(listed.from_bytes), free(listed.fragments), free(listed.latency_us), free(ends);
    free(overhead), free(cost), free(end), free(factor), free(own), free(latency);
}

static void items(void)
{
    some_items some = {0};
    const int64_t m = between(1, 40), n = between(1, 9), width = between(1, 20);
    items_made(&some, m, n);
    int64_t *ends = must((size_t)m, sizeof *ends), count, work;
    double bound;
    if (n == 1) {
        count = sluice_items_one_stage(&some.of, ends);
        ends_hold(&some, count, ends);
        double best = sluice_items_latency(&some.of, count, ends, INFINITY);
        int64_t few = sluice_items_few(&some.of, between(1, m), ends);
        if (few > 0) {
            ends_hold(&some, few, ends);
            double latency = sluice_items_latency(&some.of, few, ends, INFINITY);
            expect(latency >= best * (1.0 - 1e-9), "fewer fragments of items are no better");
        }
    }
    if (n >= 2 && some.ranges[1] == 1) {
        count = sluice_items_two_stages(&some.of, between(1, m), ends);
        if (count != -2)
            ends_hold(&some, count, ends);
        double *rest = doubles(m + 1), *none = doubles(m + 1);
        sluice_item_pair pair = {m, {some.overhead[0], 0.0, some.overhead[1]},
                                 {some.spent, none, some.spent + m + 1}, between(1, m)};
        expect(sluice_items_pair(&pair, rest) == 0 && rest[m] == 0.0, "a pair of stages");
        free(rest), free(none);
    }
    for (int64_t w = 0; w < some.of.windows; w++) { /* in bytes as well */
        some.window_bytes[w] = between(0, 1) ? between(1, some.bytes[m]) : 0;
        some.places[w] = some.window_bytes[w] && between(0, 1) ? 0 : some.places[w];
    }
    sluice_item_caps walk = {.is_before = between(0, 1), .first_bytes = between(0, 20),
                             .next_cap = between(1, 9), .last_cap = some.bytes[m],
                             .latency_us = INFINITY};
    while (walk.next_cap)
        expect(sluice_items_caps(&some.of, &walk, between(1, 50), NULL) == 0, "a walk over caps");
    expect(walk.layouts <= m * (m + 1) / 2 + 1, "each layout once");
    items_in_draws(&some, walk.layouts, walk.is_before, walk.first_bytes);
    for (int64_t w = 0; w < some.of.windows; w++)
        some.window_bytes[w] = 0, some.places[w] = some.places[w] ? some.places[w] : 1;
    sluice_label_problem problem = {&some.of, some.head, some.rest, some.ready_rest, some.left,
                                    between(0, 1) && some.ranges[n - 1] == 1, 0, width, INFINITY,
                                    some.floor, some.mean};
    if (bits() % 3 == 0)
        some.of.max_fragments = between(1, m), problem.is_counted = 1;
    sluice_item_labels *labels = sluice_item_labels_new(&problem);
    expect(labels != NULL, "memory for labels");
    for (int64_t turn = between(0, 40); turn > 0; turn--)
        if (sluice_item_labels_advance(labels, between(1, 200)))
            break;
    double latency = sluice_item_labels_best(labels, ends, &count, &bound, &work);
    if (latency < INFINITY) {
        ends_hold(&some, count, ends);
        double plain = sluice_items_latency(&some.of, count, ends, INFINITY);
        double off = some.of.windows ? 1e-12 * plain : 0.0; /* raised by sums in another order */
        expect(fabs(latency - plain) <= off, "a label's latency");
    }
    sluice_item_labels_free(labels);
    free(ends);
    items_freed(&some);
}

int main(int count, char **words)
{
    int64_t cases = count > 2 ? atoll(words[2]) : 0;
    state = count > 1 ? (uint64_t)atoll(words[1]) : 0;
    for (int64_t i = 0; i < cases; i++) {
        recurrence();
        blocks();
        interior_point();
        whole_bytes();
        real_sizes();
        many_draws();
        machines();
        searches();
        items();
    }
    refusals();
    printf("%lld cases\n", (long long)cases);
    return 0;
}
