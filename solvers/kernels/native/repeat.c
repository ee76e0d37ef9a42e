#include "repeat.h"

#include <math.h>

#include "bounds.h"
#include "equal.h"

/* Source    docs/theory.md sec. 2; solvers/heuristics/repeat.py.
   Notation  full fragments of s = unit z bytes, and a remainder of r = B - full s < s bytes.
   Cost      O(n) for each evaluation; for each number of full fragments that could win, at most
             2 log2(B) evaluations, and mostly two.
   Exact     over every admitted s: for one number of full fragments the latency is convex in z.
   Traps     without a remainder the latency jumps by what one costs: those s are tried apart. */

#define SPAN SLUICE_LINES_MAX_STAGES
#define ROUNDING (1.0 + 1e-9) /* what bounds and latencies are compared with */

/* A latency and its right derivative in the size; of equal latencies the steeper leads. */
typedef struct {
    double value, slope;
} line;

static line longer(line one, line other)
{
    int take = other.value > one.value || (other.value == one.value && other.slope > one.slope);
    return take ? other : one;
}

/* What one search knows. */
typedef struct {
    const sluice_whole *q;
    double cost[SPAN]; /* us a byte */
    sluice_repeated *best;
} search;

/* Of equals the fewest fragments. */
static void offer(search *s, double latency, int64_t full, int64_t size)
{
    sluice_repeated *best = s->best;
    int64_t whole = s->q->message_bytes;
    int64_t count = full + (full * size < whole);
    int64_t known = best->full + (best->full * best->size_bytes < whole);
    if (latency < best->latency_us || (latency == best->latency_us && count < known))
        *best = (sluice_repeated){latency, full, size};
}

static void costs_of(const sluice_whole *q, double *cost)
{
    for (int64_t j = 0; j < q->n; j++)
        cost[j] = q->ns_per_byte[j] / 1000.0;
}

/* The latency of a message in `full` fragments of a size and a remainder, and its slope in it. */
static line latency_of(const sluice_whole *q, const double *cost, int64_t message, int64_t full,
                       int64_t size)
{
    double bytes = (double)size, rest = (double)(message - full * size);
    double again = (double)full - 1.0;
    line sum = {0.0, 0.0}, longest = {0.0, 0.0}, last = {0.0, 0.0};
    for (int64_t j = 0; j < q->n; j++) {
        line t = {q->overhead_us[j] + cost[j] * bytes, cost[j]};
        sum = (line){sum.value + t.value, sum.slope + t.slope};
        longest = longer(longest, t);
        line through = {sum.value + again * longest.value, sum.slope + again * longest.slope};
        last = longer(last, through);
        last.value += q->overhead_us[j] + cost[j] * rest;
        last.slope -= (double)full * cost[j];
    }
    return last;
}

/* The latency at z with a remainder, and its slope in z. */
static line at(search *s, int64_t full, int64_t z)
{
    const sluice_whole *q = s->q;
    line last = latency_of(q, s->cost, q->message_bytes, full, z * q->unit_bytes);
    offer(s, last.value, full, z * q->unit_bytes);
    last.slope *= (double)q->unit_bytes;
    return last;
}

/* All z of one number of full fragments: lines at both ends meet below what lies between. */
static void with_remainder(search *s, int64_t full)
{
    const sluice_whole *q = s->q;
    int64_t unit = q->unit_bytes, low = q->message_bytes / (full + 1) / unit + 1;
    int64_t high = (q->message_bytes - q->min_bytes) / full;
    high = (high < q->max_aligned ? high : q->max_aligned) / unit;
    low = low > q->min_aligned / unit ? low : q->min_aligned / unit;
    if (low > high)
        return;
    line first = at(s, full, low), last = at(s, full, high);
    for (int halve = 0; high - low > 1 && first.slope < 0.0 && last.slope > 0.0; halve = !halve) {
        double width = (double)(high - low);
        double step = (first.value - last.value + last.slope * width) / (last.slope - first.slope);
        if (!(first.value + first.slope * step < s->best->latency_us))
            return;
        double to = step > 1.0 ? step : 1.0;
        int64_t z = halve ? low + (high - low) / 2
                          : low + (to < width - 1.0 ? (int64_t)to : high - low - 1);
        line here = at(s, full, z);
        if (here.slope < 0.0) {
            low = z;
            first = here;
        } else {
            high = z;
            last = here;
        }
    }
}

/* Fragments of one size alone. */
static void without_remainder(search *s, int64_t full)
{
    const sluice_whole *q = s->q;
    int64_t size = q->message_bytes / full;
    int fits = size % q->unit_bytes == 0 && size >= q->min_aligned && size <= q->max_aligned;
    if (q->message_bytes % full == 0 && (fits || full == 1))
        offer(s, sluice_equal_us(q, full), full, size);
}

/* Whatever has this many fragments, where that could win. */
static void with_count(search *s, int64_t k)
{
    const sluice_whole *q = s->q;
    if (k < q->k_min || k > q->k_max)
        return;
    if (sluice_bound(q, k) > (s->best->latency_us + q->delay_us) * ROUNDING)
        return;
    without_remainder(s, k);
    if (k > 1)
        with_remainder(s, k - 1);
}

void sluice_repeat(const sluice_whole *q, int64_t near, sluice_repeated *best)
{
    search s = {.q = q, .best = best};
    int64_t first, last;
    costs_of(q, s.cost);
    *best = (sluice_repeated){INFINITY, 0, 0};
    with_count(&s, near);
    with_count(&s, near + 1);
    with_count(&s, q->k_min);
    sluice_bounds_within(q, near, (best->latency_us + q->delay_us) * ROUNDING, &first, &last);
    for (int64_t k = first; k <= last; k++)
        if (k != near && k != near + 1)
            with_count(&s, k);
}

/* ---- many messages ------------------------------------------------------------------------------ */

void sluice_repeat_each(const sluice_whole *q, int64_t k, int64_t first, int64_t messages,
                        int64_t *sizes, double *latency_us)
{
    double cost[SPAN];
    int64_t full = k - 1, unit = q->unit_bytes, z = 0;
    costs_of(q, cost);
    for (int64_t m = 0; m < messages; m++) {
        int64_t message = first + m, low = ((message + full) / k + unit - 1) / unit;
        int64_t high = (message - q->min_bytes) / full;
        high = (high < q->max_aligned ? high : q->max_aligned) / unit;
        low = low > q->min_aligned / unit ? low : q->min_aligned / unit;
        sizes[m] = 0;
        latency_us[m] = INFINITY;
        if (message <= q->min_bytes || low > high)
            continue;
        if (z < low || z > high) { /* the first from which on the latency rises, by halves */
            int64_t end = high;
            for (z = low; z < end;) {
                int64_t middle = z + (end - z) / 2;
                if (latency_of(q, cost, message, full, middle * unit).slope < 0.0)
                    z = middle + 1;
                else
                    end = middle;
            }
        }
        line here = latency_of(q, cost, message, full, z * unit);
        while (z < high && here.slope < 0.0)
            here = latency_of(q, cost, message, full, ++z * unit);
        sizes[m] = z * unit;
        latency_us[m] = here.value;
        for (; z > low; z--) {
            line before = latency_of(q, cost, message, full, (z - 1) * unit);
            if (before.slope < 0.0 && before.value >= here.value)
                break;
            sizes[m] = (z - 1) * unit;
            latency_us[m] = before.value;
            if (before.slope < 0.0)
                break;
        }
    }
}

/* The least whole number that is not below `number` / 2^32. */
static int64_t ceiling(int64_t number)
{
    return (number + INT64_C(0xffffffff)) >> 32;
}

void sluice_repeat_read(const sluice_whole *q, int64_t first, int64_t messages, int64_t first_size,
                        int64_t last_size, double *latency_us)
{
    double cost[SPAN];
    int64_t units = (last_size - first_size) / q->unit_bytes;
    costs_of(q, cost);
    for (int64_t m = 0; m < messages; m++) {
        int64_t message = first + m;
        int64_t share = ((m << 32) + messages - 1) / messages;
        int64_t size = first_size + q->unit_bytes * ceiling(units * share);
        if (size < message) {
            latency_us[m] = latency_of(q, cost, message, (message - 1) / size, size).value;
            continue;
        }
        latency_us[m] = 0.0;
        for (int64_t j = 0; j < q->n; j++)
            latency_us[m] += q->overhead_us[j] + cost[j] * (double)message;
    }
}
