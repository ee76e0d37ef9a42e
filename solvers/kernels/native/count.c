#include "count.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "busy.h"
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
#define FINAL 1e-8 /* complementarity from which on what is out of order is so at the optimum */
#define DISORDER 1e-9
#define ALIKE 0.2
#define MINOR 0.1 /* of the greatest violation: lesser ones of long chains wait for the next round */
#define LOCATES 1e-4 /* complementarity from which on an iterate shows where waits are missing, */
#define BESIDE 8     /* up to so many fragments away, */
#define ROUGH_BESIDE 10.0 /* and this share of all times its root; */
#define CONVERGED 1e-9 /* complementarity from which on only the digits of p are missing */
#define NEAR 1e-8      /* bounds this close lack no waits, whatever is out of order */
#define ROUNDED 1e-6   /* bounds farther apart lack more than digits */

#define LACKS_DIGITS 2 /* how a search may end: the caller brings them back */

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
    unsigned char *waits;    /* (n-1, k): whether a fragment may wait behind a stage */
    sluice_ip_span *spans;   /* the runs of them, to work in */
    double *x, *p, *raw;     /* of the iterate in hand; raw: as the method left it, of the chain */
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

static void keep_sizes(solve *s)
{
    double upper = latency_of(s->lines, s->k, s->x);
    if (upper < s->bounds->upper_us) {
        s->bounds->upper_us = upper;
        memcpy(s->best_x, s->x, (size_t)s->k * sizeof *s->x);
    }
}

static void keep_dual(solve *s, double lower)
{
    if (lower > s->bounds->lower_us) {
        s->bounds->lower_us = lower;
        memcpy(s->best_p, s->p, (size_t)((s->k - 1) * s->lines->n) * sizeof *s->p);
    }
}

/* Keep the better of each side. */
static void keep(solve *s)
{
    keep_sizes(s);
    keep_dual(s, sluice_dual_value(s->lines, s->k, s->p));
}

static int is_within(const solve *s, double share)
{
    return s->bounds->lower_us > -INFINITY && s->bounds->upper_us - s->bounds->lower_us <= share * s->bounds->upper_us;
}

/* What p proves of cuts that are better than the known one: these have no greater fragments than
   some size. */
static double capped_value(const solve *s)
{
    sluice_lines narrowed = *s->lines;
    double upper = s->bounds->upper_us, largest = sluice_dual_largest(s->lines, s->k, upper);
    double mean = s->lines->message_bytes / (double)s->k;
    narrowed.max_bytes = largest > mean ? largest : mean;
    double value = sluice_dual_value(&narrowed, s->k, s->p);
    return value < upper ? value : upper;
}

/* The fragments of the chain: those of the ends, or all. */
static int64_t chain_of(const solve *s)
{
    return s->first > 0 ? s->first + s->last : s->k;
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
    keep(s);
}

/* Whether equal sizes may be the optimum, but for rounding. Without a least size and a cap they take
   the slowest stage's bound and what one fragment's bytes take in the other stages. */
static int may_be_equal(const solve *s)
{
    const sluice_lines *lines = s->lines;
    double size = lines->message_bytes / (double)s->k, slowest = 0.0, path = 0.0;
    double bytes = 0.0, own = 0.0;
    for (int64_t j = 0; j < lines->n; j++) {
        double t = lines->overhead_us[j] + lines->us_per_byte[j] * size;
        path += t;
        bytes += lines->us_per_byte[j] * size;
        own = t > slowest ? lines->us_per_byte[j] * size : own;
        slowest = t > slowest ? t : slowest;
    }
    path += (double)(s->k - 1) * slowest;
    return s->k < 3 || lines->min_bytes > 0.0 || s->spread < s->free_bytes ||
           bytes - own <= 2.0 * s->close * path;
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

/* Let fragments first .. last wait behind a stage; returns how many of them are new. */
static int64_t let_wait(solve *s, int64_t d, int64_t first, int64_t last)
{
    unsigned char *waits = s->waits + d * s->k;
    int64_t added = 0, end = chain_of(s) - 2;
    for (int64_t t = first > 1 ? first : 1; t <= (last < end ? last : end); t++) {
        added += !waits[t];
        waits[t] = 1;
    }
    return added;
}

static int has_waits(const solve *s, int64_t d)
{
    return memchr(s->waits + d * s->k, 1, (size_t)chain_of(s)) != NULL;
}

/* Let more fragments wait behind the boundaries out of order, at each step behind the one that is so by
   the most, the first of those alike: the others follow from it. The first time only near those
   steps, where the iterate tells; then all, for these are not independent of each other. Of short
   ends all may, whose errors count as often as their repeated step. Returns how many are new. */
static int64_t grow(solve *s, double complementarity)
{
    int64_t n = s->lines->n, count = chain_of(s), added = 0;
    double rough = complementarity > 0.0 ? complementarity : 0.0, worst = 0.0;
    double minimum = rough > FINAL ? fmax(3.0 * sqrt(rough), DISORDER) : DISORDER;
    for (int64_t d = 0; d < n - 1; d++)
        worst = fmax(worst, s->violation[d]);
    if (count > SLUICE_IP_LONG)
        minimum = fmax(minimum, MINOR * worst);
    if (!(worst > minimum))
        return 0;
    int is_located = s->first == 0 && rough <= LOCATES && rough > FINAL && count <= SLUICE_IP_LONG;
    int64_t reach = BESIDE + (int64_t)(ROUGH_BESIDE * (double)count * sqrt(rough));
    double before[SPAN], rise[SPAN];
    unsigned char everywhere[SPAN] = {0}, had[SPAN];
    for (int64_t d = 0; d < n - 1; d++) {
        had[d] = !is_located || has_waits(s, d);
        before[d] = 1.0;
    }
    for (int64_t t = 0; t < count - 1; t++) {
        double running = 0.0, most = 0.0;
        for (int64_t d = 0; d < n - 1; d++) {
            running += s->p[t * n + d];
            rise[d] = running - before[d];
            most = rise[d] > most ? rise[d] : most;
            before[d] = running;
        }
        if (t == 0 || !(most > minimum))
            continue;
        int64_t d = 0;
        while (rise[d] < (1.0 - ALIKE) * most)
            d++;
        everywhere[d] |= had[d];
        added += had[d] ? 0 : let_wait(s, d, t - reach, t + reach);
    }
    for (int64_t d = 0; d < n - 1; d++)
        added += everywhere[d] ? let_wait(s, d, 1, count) : 0;
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

/* Sizes of the fragments between the ends, in place. */
static void lay_out_sizes(solve *s)
{
    int64_t first = s->first, last = s->last, inner = s->k - first - last;
    if (first == 0)
        return;
    double repeated = s->x[first + last];
    memmove(s->x + first + inner, s->x + first, (size_t)last * sizeof *s->x);
    for (int64_t i = first; i < first + inner; i++)
        s->x[i] = repeated;
}

/* p of the fragments between the ends, in place. */
static void lay_out_steps(solve *s)
{
    int64_t n = s->lines->n, first = s->first, last = s->last, inner = s->k - first - last;
    if (first == 0)
        return;
    memmove(s->p + (first + inner) * n, s->p + first * n, (size_t)((last - 1) * n) * sizeof *s->p);
    for (int64_t i = first; i < first + inner; i++)
        memcpy(s->p + i * n, s->p + (first - 1) * n, (size_t)n * sizeof *s->p);
}

/* The iterate in hand made feasible on both sides. Of steps alike the rows stay alike. Where the
   repaired rows prove too little, they are restored. */
static void certify(solve *s, const sluice_ip_outcome *outcome)
{
    int64_t k = s->k, n = s->lines->n, steps = chain_of(s) - 1;
    size_t size = (size_t)(steps * n) * sizeof *s->p;
    double cuts[] = {sqrt(fmax(outcome->complementarity, 0.0)), 0.0};
    lay_out_sizes(s);
    for (int64_t i = 0; i < k; i++)
        s->x[i] = s->x[i] > 0.0 && s->x[i] < INFINITY ? s->x[i] : 0.0;
    spread_shares(k, s->x, s->free_bytes, s->spread);
    for (int64_t i = 0; i < k; i++)
        s->x[i] += s->lines->min_bytes;
    keep_sizes(s);
    memcpy(s->raw, s->p, size);
    sluice_dual_repair(steps, n, s->p);
    lay_out_steps(s);
    keep_dual(s, sluice_dual_value(s->lines, k, s->p));
    int attempts = outcome->apart <= ROUNDED ? 2 : 0;
    for (int i = 0; i < attempts && !is_within(s, s->aim); i++) {
        memcpy(s->p, s->raw, size);
        sluice_dual_restore(s->lines, k, steps, cuts[i], s->p);
        lay_out_steps(s);
        keep_dual(s, capped_value(s));
    }
}

/* The boundaries that are waited behind, and the runs of fragments that do. */
static void name_waits(solve *s, sluice_ip_problem *asked, int64_t *chosen)
{
    int64_t end = asked->k - 1;
    for (int64_t d = 0; d < s->lines->n - 1; d++) {
        const unsigned char *waits = s->waits + d * s->k;
        if (!has_waits(s, d))
            continue;
        for (int64_t t = 1; t < end; t++) {
            if (waits[t] && !waits[t - 1])
                s->spans[asked->span_count++] = (sluice_ip_span){asked->q, t, t};
            if (waits[t])
                s->spans[asked->span_count - 1].last = t;
        }
        chosen[asked->q++] = d;
    }
}

/* One run of the interior point with the waits chosen so far. */
static int iterate(solve *s, int is_last, double time_limit_s, sluice_ip_outcome *outcome)
{
    int64_t chosen[SPAN];
    int is_short = s->first > 0;
    sluice_ip_problem asked = {
        .k = chain_of(s),
        .n = s->lines->n,
        .overhead_us = s->overhead,
        .us_per_byte = s->lines->us_per_byte,
        .free_bytes = s->free_bytes,
        .spread_bytes = s->spread,
        .repeat_step = is_short ? s->first - 1 : 0,
        .repeats = is_short ? s->k - s->first - s->last + 1 : 1,
        .boundaries = chosen,
        .spans = s->spans,
        .close = s->aim,
        .max_iterations = MAX_ITERATIONS,
        .time_limit_s = time_limit_s,
        .check_order_at = is_last ? 0.0 : CHECK_ORDER_AT,
    };
    name_waits(s, &asked, chosen);
    return sluice_ip_solve(&asked, s->x, s->p, s->violation, outcome);
}

/* An iterate that was stopped because waits are missing is certified only where it is the last
   one. */
static int search(solve *s, double time_limit_s)
{
    int64_t left = (s->lines->n - 1) * (chain_of(s) - 2);
    for (int round = 1; round <= MAX_ROUNDS; round++) {
        sluice_ip_outcome outcome = {0.0, 1.0, 0};
        memset(s->violation, 0, sizeof s->violation);
        int status = iterate(s, left == 0, time_limit_s, &outcome);
        if (status == SLUICE_IP_MEMORY)
            return SLUICE_COUNT_MEMORY;
        int is_whole = left == 0;
        int64_t added = grow(s, outcome.complementarity);
        int is_last = status == SLUICE_IP_TIME || round == MAX_ROUNDS || is_whole ||
                      is_unsettled(s, outcome.complementarity) || (s->first > 0 && !added);
        if (is_last || !added || outcome.apart <= NEAR) {
            certify(s, &outcome);
            if (is_within(s, s->close))
                return SLUICE_COUNT_CLOSE;
            if (outcome.complementarity <= CONVERGED && is_within(s, ROUNDED))
                return LACKS_DIGITS;
        }
        if (is_last)
            break;
        for (int64_t d = 0; !added && d < s->lines->n - 1; d++)
            left -= let_wait(s, d, 1, s->k);
        left -= added;
    }
    return SLUICE_COUNT_APART;
}

/* Solve with so many fragments of each end that may differ in size, those between of one size; both
   0: all may differ. */
static int solve_ends(solve *s, int64_t first, int64_t last, double time_limit_s)
{
    int64_t k = s->k, n = s->lines->n;
    s->first = first > 1 && last > 1 && first + last < k ? first : 0;
    s->last = s->first > 0 ? last : 0;
    memset(s->waits, 0, (size_t)(n * k));
    return search(s, time_limit_s);
}

/* ---- how many fragments of each end are let differ: ends_to_try in solvers/exact/chain_ends.py --- */

#define MIN_SHORTENED 40
#define SETTLED 1e-13
#define LOST 1e-11 /* of the latency, by what long ends leave in the middle */
#define WORTH_SHORTENING 0.6
#define WORTH_GUESSING 0.7
#define MARGIN 8
#define OTHER_END 48
#define MAX_ENDS 4

typedef struct {
    int64_t first, last;
} two_ends;

/* Steps until a geometric sequence has died away; where that is long, until what is left costs nothing:
   of a weight left, the middle loses this share. */
static int64_t settling(double factor, double lost)
{
    if (factor >= 1.0 - 1e-9)
        return (int64_t)1 << 40;
    double slow = log(fmax(factor, 1e-3));
    int64_t steps = 8 + (int64_t)(log(SETTLED) / slow);
    return steps <= SLUICE_IP_LONG ? steps : 8 + (int64_t)(log(fmin(LOST / fmax(lost, LOST), 1.0)) / slow);
}

/* The ends that stages of greater overheads than `above` need beside the slowest stage b. */
static two_ends settled(const sluice_lines *lines, int64_t b, double above)
{
    const double *G = lines->us_per_byte;
    double inner = 0.0, outer;
    two_ends ends = {settling(0.0, 0.0), settling(0.0, 0.0)};
    for (int64_t s = b - 1; s >= 0; s--) { /* G_s..b-1 over G_s+1..b */
        outer = inner + G[s];
        int64_t steps = settling(outer / fmax(inner + G[b], 1e-300), 1.0 - G[s] / G[b]);
        ends.first = lines->overhead_us[s] > above && steps > ends.first ? steps : ends.first;
        inner = outer;
    }
    inner = 0.0;
    for (int64_t s = b + 1; s < lines->n; s++) { /* G_b+1..s over G_b..s-1 */
        outer = inner + G[s];
        int64_t steps = settling(outer / fmax(inner + G[b], 1e-300), 1.0 - G[s] / G[b]);
        ends.last = lines->overhead_us[s] > above && steps > ends.last ? steps : ends.last;
        inner = outer;
    }
    return ends;
}

static void add_ends(const solve *s, int64_t first, int64_t last, two_ends *ends, int *count)
{
    int at = *count;
    if ((double)(first + last) > WORTH_SHORTENING * (double)s->k)
        return;
    for (; at > 0 && ends[at - 1].first + ends[at - 1].last > first + last; at--)
        ends[at] = ends[at - 1];
    ends[at] = (two_ends){first, last};
    ++*count;
}

/* In order of trial; returns how many. */
static int ends_to_try(const solve *s, two_ends *ends)
{
    const sluice_lines *lines = s->lines;
    const double *g = lines->overhead_us, *G = lines->us_per_byte;
    double size = lines->message_bytes / (double)s->k;
    int64_t b = 0, dearest = 0, costliest = 0;
    int count = 0;
    for (int64_t c = 1; c < lines->n; c++) {
        b = g[c] + G[c] * size > g[b] + G[b] * size ? c : b;
        dearest = g[c] > g[dearest] ? c : dearest;
        costliest = G[c] > G[costliest] ? c : costliest;
    }
    two_ends certain = settled(lines, b, -1.0);
    if (g[b] == g[dearest] && G[b] == G[costliest]) {
        for (int64_t length = 64; length <= 4096; length *= 8)
            add_ends(s, length, length, ends, &count);
    } else {
        two_ends guess = settled(lines, b, g[b]);
        int64_t longest = guess.first > guess.last ? guess.first : guess.last;
        int64_t shortest = longest / 4 < OTHER_END ? longest / 4 : OTHER_END;
        guess.first = (guess.first > shortest ? guess.first : shortest) + MARGIN;
        guess.last = (guess.last > shortest ? guess.last : shortest) + MARGIN;
        guess.last += guess.first == guess.last;
        if ((double)(guess.first + guess.last) <
            WORTH_GUESSING * (double)(certain.first + certain.last))
            add_ends(s, guess.first, guess.last, ends, &count);
    }
    add_ends(s, certain.first, certain.last, ends, &count);
    return count;
}

/* Equal sizes, proven by the drift from the first stage to the last: where these are the slowest. */
static int drift(solve *s)
{
    const sluice_lines *lines = s->lines;
    int64_t k = s->k, n = lines->n;
    double size = lines->message_bytes / (double)k, slowest = 0.0;
    for (int64_t c = 0; c < n; c++)
        slowest = fmax(slowest, lines->overhead_us[c] + lines->us_per_byte[c] * size);
    for (int64_t c = 0; c < n; c += n - 1)
        if (n < 2 || lines->overhead_us[c] + lines->us_per_byte[c] * size < slowest * (1.0 - 1e-9))
            return 0;
    memset(s->p, 0, (size_t)((k - 1) * n) * sizeof *s->p);
    for (int64_t i = 0; i < k - 1; i++) {
        s->p[i * n + n - 1] = (double)(i + 1) / (double)k;
        s->p[i * n] = 1.0 - s->p[i * n + n - 1];
    }
    for (int64_t i = 0; i < k; i++)
        s->x[i] = size;
    keep(s);
    return is_within(s, s->aim);
}

/* Sizes with which the slowest stage is never idle: where they are enough, they and it are optimal. */
static int busy(solve *s)
{
    const sluice_lines *lines = s->lines;
    int64_t k = s->k, n = lines->n, b = sluice_busy_sizes(lines, k, s->best_x);
    if (b < 0)
        return 0;
    memset(s->best_p, 0, (size_t)((k - 1) * n) * sizeof *s->best_p);
    for (int64_t i = 0; i < k - 1; i++)
        s->best_p[i * n + b] = 1.0;
    /* Where the two meet, either may be the greater by rounding. */
    s->bounds->upper_us = latency_of(lines, k, s->best_x);
    s->bounds->lower_us = fmin(sluice_dual_value(lines, k, s->best_p), s->bounds->upper_us);
    return is_within(s, s->aim);
}

int sluice_count_solve(const sluice_lines *lines, int64_t k, int whole, double close, double aim,
                       double time_limit_s, double *x, double *p, sluice_bounds *bounds)
{
    int64_t n = lines->n;
    solve s = {.lines = lines, .k = k, .close = close, .aim = aim, .bounds = bounds};
    double left = lines->message_bytes - (double)k * lines->min_bytes;
    s.free_bytes = left > 0.0 ? left : 0.0;
    s.spread = lines->max_bytes - lines->min_bytes;
    for (int64_t j = 0; j < n; j++)
        s.overhead[j] = lines->overhead_us[j] + lines->min_bytes * lines->us_per_byte[j];
    s.best_x = x;
    s.best_p = p;
    *bounds = (sluice_bounds){-INFINITY, INFINITY};
    if (!whole && n > 1 && k >= MIN_SHORTENED && busy(&s))
        return SLUICE_COUNT_CLOSE;
    /* The interior point writes one more size than there are fragments. A run of waits and the gap
       behind it take two fragments at least. */
    int64_t sizes = k + 1 + 2 * (k - 1) * n, runs = (n - 1) * (k / 2 + 1);
    s.x = malloc((size_t)sizes * sizeof *s.x + (size_t)runs * sizeof *s.spans + (size_t)(n * k));
    if (s.x == NULL)
        return SLUICE_COUNT_MEMORY;
    s.p = s.x + k + 1;
    s.raw = s.p + (k - 1) * n;
    s.spans = (sluice_ip_span *)(s.x + sizes);
    s.waits = (unsigned char *)(s.spans + runs);
    int is_equal = may_be_equal(&s);
    if (is_equal)
        equal_sizes(&s);
    int status = SLUICE_COUNT_CLOSE;
    if (!is_within(&s, s.close) && n > 1 && !(k >= MIN_SHORTENED && drift(&s))) {
        two_ends ends[MAX_ENDS];
        int count = whole || k < MIN_SHORTENED ? 0 : ends_to_try(&s, ends);
        status = SLUICE_COUNT_APART;
        for (int i = 0; s.free_bytes > 0.0 && i <= count && status == SLUICE_COUNT_APART; i++) {
            two_ends here = i < count ? ends[i] : (two_ends){0, 0};
            status = solve_ends(&s, here.first, here.last, time_limit_s);
        }
    }
    if (!is_equal && status != SLUICE_COUNT_CLOSE)
        equal_sizes(&s);
    free(s.x);
    return status == LACKS_DIGITS ? SLUICE_COUNT_APART : status;
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
        if (sluice_count_solve(&changed, k, 1, close, close, INFINITY, x, x + k, bounds + c) ==
            SLUICE_COUNT_MEMORY)
            status = SLUICE_COUNT_MEMORY;
    }
    free(x);
    return status;
}
