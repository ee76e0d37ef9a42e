#include "dual.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Source    docs/theory.md sec. 4 and 5; solvers/exact/dual.py.
   Notation  n stages, k fragments; p (k-1, n) row i the distribution of the stage in which a path
             steps from fragment i to fragment i+1; w (k) the weight of each fragment's bytes;
             price: the marginal weight, that of the fragment that takes the last byte.
   Cost      O(k n), and a sort of k weights where a greatest size binds.
   Exact     any p, repaired, is a feasible dual; what rounding may add is deducted.
   Traps     long sums are compensated, so that the deduction need not grow with k. */

#define SPAN SLUICE_LINES_MAX_STAGES

/* A compensated sum. */
typedef struct {
    double value, lost;
} total;

static void add(total *sum, double term)
{
    double reduced = term - sum->lost, next = sum->value + reduced;
    sum->lost = (next - sum->value) - reduced;
    sum->value = next;
}

static double dot(int64_t n, const double *a, const double *b)
{
    double sum = 0.0;
    for (int64_t c = 0; c < n; c++)
        sum += a[c] * b[c];
    return sum;
}

static double sum_of(int64_t n, const double *a)
{
    double sum = 0.0;
    for (int64_t c = 0; c < n; c++)
        sum += a[c];
    return sum;
}

void sluice_dual_repair(int64_t steps, int64_t n, double *p)
{
    double before[SPAN];
    for (int64_t c = 0; c < n; c++)
        before[c] = 1.0;
    for (int64_t i = 0; i < steps; i++) {
        double *row = p + i * n, whole = 0.0, running = 0.0, last = 0.0;
        for (int64_t c = 0; c < n; c++) {
            row[c] = row[c] > 0.0 ? (row[c] < DBL_MAX ? row[c] : DBL_MAX) : 0.0;
            whole += row[c];
        }
        for (int64_t c = 0; c < n; c++) {
            running += whole > 0.0 ? row[c] / whole : 1.0 / (double)n;
            before[c] = running < before[c] ? running : before[c];
            if (c == n - 1)
                before[c] = 1.0;
            row[c] = before[c] - last;
            last = before[c];
        }
    }
}

/* The stage that is slowest at the mean size. */
static int64_t slowest_of(const sluice_lines *lines, int64_t k)
{
    int64_t slowest = 0;
    double size = lines->message_bytes / (double)k, longest = -1.0;
    for (int64_t c = 0; c < lines->n; c++) {
        double time = lines->overhead_us[c] + lines->us_per_byte[c] * size;
        slowest = time > longest ? c : slowest;
        longest = time > longest ? time : longest;
    }
    return slowest;
}

/* now (count) := the lesser of itself and next to it, all less by one factor so that now.cost is at
   most the limit, which next.ahead sets; next follows. */
static void follow(int64_t count, double *now, double *next, const double *cost,
                   const double *ahead, double lacking)
{
    double limit = dot(count, next, ahead) - lacking, sum = 0.0;
    for (int64_t d = 0; d < count; d++) {
        now[d] = now[d] < next[d] ? now[d] : next[d];
        sum += now[d] * cost[d];
    }
    double share = sum > limit ? (limit > 0.0 ? limit / sum : 0.0) : 1.0;
    for (int64_t d = 0; d < count; d++)
        next[d] = now[d] *= share;
}

/* Running sums of a row without the weights below the cut, and with all of them. */
static void sums_of(int64_t n, const double *row, double cut, double *kept, double *all)
{
    double whole = 0.0, total = 0.0;
    for (int64_t c = 0; c < n; c++) {
        double weight = row[c] > 0.0 ? row[c] : 0.0;
        all[c] = total += weight;
        kept[c] = whole += weight < cut ? 0.0 : weight;
    }
    for (int64_t c = 0; c < n; c++) {
        all[c] = total > 0.0 ? all[c] / total : 1.0;
        kept[c] = whole > 0.0 ? kept[c] / whole : all[c];
    }
}

void sluice_dual_restore(const sluice_lines *lines, int64_t k, int64_t steps, double cut, double *p)
{
    const double *G = lines->us_per_byte;
    int64_t n = lines->n, b = slowest_of(lines, k), behind = n - 1 - b;
    double kept[SPAN], all[SPAN], before[SPAN], next[SPAN];
    /* Forwards: sums of the stages before b; what byte rows have of those from b on is noted in the
       last place of the step before them, whose own sum is 1. */
    for (int64_t c = 0; c < n; c++)
        before[c] = next[c] = 1.0;
    for (int64_t t = 0; t < steps; t++) {
        double *row = p + t * n;
        sums_of(n, row, cut, kept, all);
        double left = dot(b, before, G) - dot(b, all, G + 1), right = 0.0;
        for (int64_t d = b; d < n - 1; d++) {
            right += G[d + 1] * (1.0 - all[d]) - G[d] * (1.0 - before[d]);
            row[d] = 1.0 - (kept[d] > all[d] ? kept[d] : all[d]);
        }
        for (int64_t d = 0; d < b; d++)
            row[d] = kept[d] < all[d] ? kept[d] : all[d];
        follow(b, row, next, G + 1, G, left);
        if (t > 0)
            row[-1] = right;
        memcpy(before, all, (size_t)n * sizeof *before);
    }
    /* Backwards: what is not yet at the stages from b on. */
    for (int64_t d = 0; d < behind; d++)
        next[d] = 1.0;
    double right = 0.0;
    for (int64_t d = b; d < n - 1; d++)
        right += G[d + 1] - G[d] * (1.0 - before[d]);
    for (int64_t t = steps - 1; t >= 0; t--) {
        double *row = p + t * n, last = 0.0, lacking = t == steps - 1 ? right : row[n - 1];
        follow(behind, row + b, next, G + b, G + b + 1, lacking);
        for (int64_t c = 0; c < n; c++) {
            double value = c == n - 1 ? 1.0 : c < b ? row[c] : 1.0 - row[c];
            value = value > last ? value : last;
            row[c] = value - last;
            last = value;
        }
    }
    sluice_dual_repair(steps, n, p);
}

/* Whether two rows have the same bits: those of a repeated step do. */
static int is_alike(int64_t n, const double *one, const double *other)
{
    return memcmp(one, other, (size_t)n * sizeof *one) == 0;
}

/* w (k): the lead of the step behind a fragment less the trail of the step before it. */
static void weights(const sluice_lines *lines, int64_t k, const double *p, double *w)
{
    double lead[SPAN], trail[SPAN], sum = 0.0, behind = 0.0;
    int64_t n = lines->n;
    for (int64_t c = 0; c < n; c++) {
        sum += lines->us_per_byte[c];
        lead[c] = sum;
        trail[c] = sum - lines->us_per_byte[c];
    }
    double ahead = 0.0, passed = 0.0;
    for (int64_t i = 0; i < k - 1; i++) {
        const double *row = p + i * n;
        if (i == 0 || !is_alike(n, row - n, row)) {
            ahead = dot(n, row, lead);
            passed = dot(n, row, trail);
        }
        w[i] = ahead - behind;
        behind = passed;
    }
    w[k - 1] = sum - behind;
}

static int ascending(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static double min_of(int64_t k, const double *w)
{
    double minimum = w[0];
    for (int64_t i = 1; i < k; i++)
        minimum = w[i] < minimum ? w[i] : minimum;
    return minimum;
}

static double free_bytes(const sluice_lines *lines, int64_t k)
{
    double left = lines->message_bytes - (double)k * lines->min_bytes;
    return left > 0.0 ? left : 0.0;
}

/* Fragments of one weight besides those of a list. */
typedef struct {
    double weight, count;
} alike;

/* The least value of w y over amounts y in [0, spread] that sum to the free bytes; sorts w. */
static double knapsack(int64_t k, double *w, alike more, double amount, double spread)
{
    if (amount <= spread) {
        double minimum = min_of(k, w);
        return (more.count > 0.0 && more.weight < minimum ? more.weight : minimum) * amount;
    }
    qsort(w, (size_t)k, sizeof *w, ascending);
    total sum = {0.0, 0.0};
    double filled = 0.0, taken = 0.0;
    for (int64_t i = 0; i < k && filled < amount;) {
        int is_next = more.count > 0.0 && more.weight <= w[i];
        double here = is_next ? more.weight : w[i];
        taken += is_next ? more.count : 1.0;
        i += !is_next;
        more.count = is_next ? 0.0 : more.count;
        double next = spread * taken;
        next = next < amount ? next : amount;
        add(&sum, (next - filled) * here);
        filled = next;
    }
    add(&sum, (amount - filled) * more.weight);
    return sum.value;
}

/* The bound, w (k) given to work in. */
static double value_of(const sluice_lines *lines, int64_t k, const double *p, double *w)
{
    int64_t n = lines->n;
    total overheads = {0.0, 0.0}, minimum = {0.0, 0.0};
    add(&overheads, sum_of(n, lines->overhead_us));
    double overhead = 0.0;
    for (int64_t i = 0; i < k - 1; i++) {
        const double *row = p + i * n;
        overhead = i > 0 && is_alike(n, row - n, row) ? overhead : dot(n, row, lines->overhead_us);
        add(&overheads, overhead);
    }
    weights(lines, k, p, w);
    for (int64_t i = 0; i < k; i++)
        add(&minimum, w[i]);
    double spread = lines->max_bytes - lines->min_bytes;
    double rest = knapsack(k, w, (alike){0.0, 0.0}, free_bytes(lines, k), spread);
    double bytes = lines->message_bytes * sum_of(n, lines->us_per_byte);
    /* A row is a sum of n products one after the other: n + 2 roundings of DBL_EPSILON / 2 each,
       and as many again in what the row's own entries carry. */
    double error = (24.0 + 2.0 * (double)n) * DBL_EPSILON * (overheads.value + bytes);
    return overheads.value + lines->min_bytes * minimum.value + rest - error;
}

double sluice_dual_value(const sluice_lines *lines, int64_t k, const double *p)
{
    double *w = malloc((size_t)k * sizeof *w);
    if (w == NULL)
        return NAN;
    double value = value_of(lines, k, p, w);
    free(w);
    return value;
}

double sluice_dual_repeated(const sluice_lines *lines, int64_t steps, const double *p, int64_t at,
                            double inner, double *w)
{
    int64_t n = lines->n;
    total overheads = {0.0, 0.0};
    add(&overheads, sum_of(n, lines->overhead_us));
    for (int64_t i = 0; i < steps; i++)
        add(&overheads, (i == at ? inner + 1.0 : 1.0) * dot(n, p + i * n, lines->overhead_us));
    weights(lines, steps + 1, p, w);
    alike more = {dot(n, p + at * n, lines->us_per_byte), inner};
    return overheads.value +
           knapsack(steps + 1, w, more, lines->message_bytes, lines->max_bytes);
}

double sluice_dual_largest(const sluice_lines *lines, int64_t k, double known_us)
{
    const double *g = lines->overhead_us, *G = lines->us_per_byte;
    double maximum = lines->max_bytes, limit = known_us * (1.0 + 1e-9), steps = (double)(k - 1);
    double outside = 0.0, costs = sum_of(lines->n, G);
    for (int64_t c = 0; c < lines->n; c++)
        outside += g[c] + G[c] * lines->min_bytes;
    for (int64_t a = 0; a < lines->n; a++) {
        double path = outside, cost = 0.0;
        for (int64_t c = a; c < lines->n; c++) {
            cost += G[c];
            path -= G[c] * lines->min_bytes;
            double rest = G[a] < G[c] ? G[a] : G[c], step = g[a] < g[c] ? g[a] : g[c];
            double known = path + steps * step + rest * lines->message_bytes;
            double largest = (limit - known) / (cost - rest);
            if (cost - rest > 1e-12 * costs && largest < maximum)
                maximum = largest;
        }
    }
    return maximum > 0.0 ? maximum : 0.0;
}

/* The weight of the fragment that takes the last byte; w (k) to work in. */
static double price_of(const sluice_lines *lines, int64_t k, const double *p, double *w)
{
    double spread = lines->max_bytes - lines->min_bytes, free = free_bytes(lines, k);
    weights(lines, k, p, w);
    if (spread <= 0.0 || free <= spread)
        return min_of(k, w);
    qsort(w, (size_t)k, sizeof *w, ascending);
    double at = ceil(free / spread) - 1.0;
    return w[at < (double)(k - 1) ? (int64_t)at : k - 1];
}

/* alpha (k-1), in proportion to the inverse of price - G p_i and of sum 1; -1, or where some step
   costs as much as the price: that one among them whose p g is greatest (towards 1) or least. */
static int64_t step_weights(const sluice_lines *lines, int64_t k, const double *p, double price,
                            int towards, double *alpha)
{
    int64_t n = lines->n, chosen = -1;
    double best = 0.0, tightest = INFINITY, sum = 0.0;
    for (int64_t i = 0; i < k - 1; i++) {
        double slack = price - dot(n, p + i * n, lines->us_per_byte);
        alpha[i] = slack;
        tightest = slack < tightest ? slack : tightest;
        if (slack > 0.0)
            continue;
        double overhead = dot(n, p + i * n, lines->overhead_us);
        if (chosen < 0 || (towards > 0 ? overhead > best : overhead < best)) {
            chosen = i;
            best = overhead;
        }
    }
    if (chosen >= 0)
        return chosen;
    for (int64_t i = 0; i < k - 1; i++) {
        alpha[i] = tightest / alpha[i];
        sum += alpha[i];
    }
    for (int64_t i = 0; i < k - 1; i++)
        alpha[i] /= sum;
    return -1;
}

/* out = share * one + (1 - share) * other. */
static void blend(int64_t n, double share, const double *one, const double *other, double *out)
{
    for (int64_t c = 0; c < n; c++)
        out[c] = share * one[c] + (1.0 - share) * other[c];
}

/* q (k, n) for k + 1 fragments: row i between p_{i-1} and p_i, or one step taken twice. */
static void stretched(int64_t n, int64_t k, const double *p, const double *alpha, int64_t twice,
                      double *q)
{
    double share = 0.0;
    size_t row = (size_t)n * sizeof *q;
    for (int64_t i = 0; i < k; i++) {
        const double *before = p + (i > 0 ? i - 1 : 0) * n;
        const double *after = p + (i < k - 1 ? i : k - 2) * n;
        if (twice >= 0)
            memcpy(q + i * n, p + (i <= twice ? i : i - 1) * n, row);
        else
            blend(n, i == k - 1 ? 1.0 : share, before, after, q + i * n);
        share += i < k - 1 ? alpha[i] : 0.0;
    }
}

/* q (k-2, n) for k - 1 fragments: row i between p_i and p_{i+1}, or one step left out. */
static void squeezed(int64_t n, int64_t k, const double *p, const double *alpha, int64_t without,
                     double *q)
{
    double share = 0.0;
    size_t row = (size_t)n * sizeof *q;
    for (int64_t i = 0; i < k - 2; i++) {
        share += alpha[i];
        if (without >= 0)
            memcpy(q + i * n, p + (i < without ? i : i + 1) * n, row);
        else
            blend(n, share, p + (i + 1) * n, p + i * n, q + i * n);
    }
}

static double neighbour(const sluice_lines *lines, int64_t k, const double *p, int towards)
{
    int64_t n = lines->n, to = k + towards;
    double *w = malloc((size_t)(2 * (k + 1) + k * n) * sizeof *w);
    if (w == NULL)
        return NAN;
    double *alpha = w + k + 1, *q = alpha + k + 1;
    double price = price_of(lines, k, p, w);
    int64_t step = step_weights(lines, k, p, price, towards, alpha);
    if (towards > 0)
        stretched(n, k, p, alpha, step, q);
    else
        squeezed(n, k, p, alpha, step, q);
    sluice_dual_repair(to - 1, n, q);
    double value = value_of(lines, to, q, w);
    free(w);
    return value;
}

double sluice_dual_above(const sluice_lines *lines, int64_t k, const double *p)
{
    return neighbour(lines, k, p, 1);
}

double sluice_dual_below(const sluice_lines *lines, int64_t k, const double *p)
{
    return neighbour(lines, k, p, -1);
}

/* A fragment is in the stages from where its path came to where it goes on to the next: of the step
   before it those at and behind the stage, of the step behind it those at and before. */
int sluice_dual_gradient(const sluice_lines *lines, int64_t k, const double *p, const double *x,
                         double *by_overhead, double *by_cost, double *by_byte)
{
    const int64_t n = lines->n;
    double *w = malloc((size_t)k * sizeof *w);
    if (w == NULL)
        return -1;
    for (int64_t c = 0; c < n; c++) {
        by_overhead[c] = 1.0;
        by_cost[c] = x[0];
    }
    for (int64_t i = 0; i < k - 1; i++) {
        double left = 0.0;
        for (int64_t c = 0; c < n; c++) {
            const double step = p[i * n + c];
            left += step;
            by_overhead[c] += step;
            by_cost[c] += (x[i + 1] - x[i]) * left + x[i] * step;
        }
    }
    *by_byte = price_of(lines, k, p, w);
    free(w);
    return 0;
}
