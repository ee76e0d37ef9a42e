#if defined(__linux__)
#define _DEFAULT_SOURCE /* madvise */
#include <sys/mman.h>
#endif

#include "dual.h"
#include "interior_state.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CERTIFY_FACTOR 2.0
#define LONG_FACTOR 2.5 /* of long chains: their rows are restored from this on, */
#define AT_REST 0.01    /* of those of others: what is left apart is p's order */
#define DISORDERED 10.0 /* times the root of the complementarity: p is out of order, */
#define LONG_DISORDERED 1000.0 /* of long chains: it takes that much to tell behind which stages */
#define MAX_STALLS 12 /* iterations in which the complementarity is not halved */

#define LARGE_PAGES ((size_t)1 << 21)
#define LARGE_POOL (4 * LARGE_PAGES)

/* Memory of zeros. Pages of 2 MB where there are some: first touches of small ones would take a
   third of the time of 10^6 cells. */
static double *new_pool(int64_t count)
{
    size_t size = (size_t)count * sizeof(double);
    double *pool = calloc((size_t)count, sizeof *pool);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (pool != NULL && size >= LARGE_POOL) {
        uintptr_t first = ((uintptr_t)pool + LARGE_PAGES - 1) & ~(uintptr_t)(LARGE_PAGES - 1);
        (void)madvise((void *)first, size - LARGE_PAGES, MADV_HUGEPAGE);
    }
#endif
    return size > 0 ? pool : NULL;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Greatest violation of the stochastic order at each boundary, (n-1); returns the greatest. */
static double disorder(const state *z, double *violation)
{
    double last[64], running[CHUNK], worst = 0.0;
    for (int64_t c = 0; c + 1 < z->n; c++)
        violation[c] = 0.0;
    for (int64_t from = 0; from < z->S; from += CHUNK) {
        int64_t count = count_of(z, from);
        memset(running, 0, sizeof running);
        for (int64_t c = 0; c + 1 < z->n; c++) {
            const double *p = z->p + row_of(z, c, from);
            for (int64_t t = 0; t < count; t++)
                running[t] += p[t];
            double here = from > 0 ? running[0] - last[c] : 0.0;
            for (int64_t t = 1; t < count; t++)
                here = larger(here, running[t] - running[t - 1]);
            violation[c] = larger(violation[c], here);
            last[c] = running[count - 1];
        }
    }
    for (int64_t c = 0; c + 1 < z->n; c++)
        worst = larger(worst, violation[c]);
    return worst;
}

/* ---- both bounds of an iterate, in scaled units ---------------------------------------------- */

static void pass_stages(const state *z, double size, double *leaves)
{
    double entry = 0.0;
    for (int64_t c = 0; c < z->n; c++) {
        entry = larger(entry, leaves[c]) + (z->g[c] + z->G[c] * size);
        leaves[c] = entry;
    }
}

/* Latency of the sizes, brought to their exact sum; the recurrence of the evaluator. */
static double latency_of(const state *z)
{
    double leaves[64] = {0}, sum = z->inner > 0.0 ? z->Y : 0.0;
    for (int64_t t = 0; t < z->k; t++)
        sum += z->y[t];
    double by = ((double)z->k + z->inner) / sum;
    for (int64_t t = 0; t < z->k; t++) {
        pass_stages(z, z->y[t] * by, leaves);
        for (int64_t i = 0; t == z->at && i < z->repeats - 1; i++)
            pass_stages(z, z->Y / z->inner * by, leaves);
    }
    return leaves[z->n - 1];
}

/* Value of the repaired p where no cap binds: what the dual of the sizes proves. */
static double value_of(const state *z)
{
    double before[64], trail = 0.0, minimum = DBL_MAX, overheads = 0.0;
    for (int64_t c = 0; c < z->n; c++) {
        before[c] = 1.0;
        overheads += z->g[c];
    }
    for (int64_t t = 0; t < z->S; t++) {
        double total = 0.0, running = 0.0, last = 0.0, lead = 0.0, next = 0.0, cost = 0.0;
        for (int64_t c = 0; c < z->n; c++)
            total += z->p[cell_of(z, c, t)];
        for (int64_t c = 0; c < z->n; c++) {
            running += z->p[cell_of(z, c, t)] / total;
            double value = running < before[c] ? running : before[c], here;
            value = c == z->n - 1 ? 1.0 : value;
            here = value - last;
            before[c] = last = value;
            lead += z->Q[c] * here;
            next += z->Qm[c] * here;
            cost += z->g[c] * here;
        }
        minimum = lead - trail < minimum ? lead - trail : minimum;
        if (t == z->at && z->inner > 0.0) {
            minimum = lead - next < minimum ? lead - next : minimum;
            cost *= (double)z->repeats;
        }
        overheads += cost;
        trail = next;
    }
    minimum = z->Q[z->n - 1] - trail < minimum ? z->Q[z->n - 1] - trail : minimum;
    return overheads + minimum * ((double)z->k + z->inner);
}

/* What the restored p proves, weights below a cut left out, of cuts that are not above the latency:
   these have no fragments above some size. */
static double restored_value(state *z, double latency, double cut)
{
    double *rows = z->goal, *w = z->side; /* written anew in every iteration */
    double k = (double)z->k + z->inner;
    sluice_lines lines = {z->n, z->g, z->G, k, 0.0, z->capped ? z->cap : k};
    for (int64_t t = 0; t < z->S; t++)
        for (int64_t c = 0; c < z->n; c++)
            rows[t * z->n + c] = z->p[cell_of(z, c, t)];
    sluice_dual_restore(&lines, (int64_t)k, z->S, cut, rows);
    double largest = sluice_dual_largest(&lines, (int64_t)k, latency);
    lines.max_bytes = largest > 1.0 ? largest : 1.0;
    return sluice_dual_repeated(&lines, z->S, rows, z->at, z->inner, w);
}

static double apart(state *z, double share, double close)
{
    double upper = latency_of(z), lower = z->capped ? -INFINITY : value_of(z);
    double cuts[] = {sqrt(larger(share, 0.0)), 0.0};
    int attempts = z->capped || z->k > SLUICE_IP_LONG || share <= AT_REST * close ? 2 : 0;
    for (int i = 0; i < attempts && upper - lower > close * upper; i++)
        lower = larger(lower, restored_value(z, upper, cuts[i]));
    return (upper - lower) / upper;
}

static int run(state *z, const sluice_ip_problem *problem, double *violation,
               sluice_ip_outcome *outcome)
{
    double end = now_s() + problem->time_limit_s, best = DBL_MAX, closest = DBL_MAX;
    double pairs = (double)(z->n * z->S + z->k * (z->capped ? 2 : 1) +
                            (z->inner > 0.0 ? 1 + z->capped : 0));
    double certify = z->k > SLUICE_IP_LONG ? LONG_FACTOR : CERTIFY_FACTOR;
    double disordered = z->k > SLUICE_IP_LONG ? LONG_DISORDERED : DISORDERED;
    int stalls = 0;
    for (int64_t a = 0; a < z->span_count; a++)
        pairs += (double)length_of(z, a);
    outcome->apart = 1.0;
    for (int64_t turn = 0;; turn++) {
        double sum = sluice_ip_complementarity(z), objective = sluice_ip_dual_objective(z) + sum;
        double share = outcome->complementarity = sum / objective;
        outcome->iterations = turn;
        if (!(sum == sum) || !(objective > 0.0))
            return SLUICE_IP_STALLED;
        stalls++;
        if (share < 0.5 * best) {
            best = share;
            stalls = 0;
        }
        if (share <= certify * problem->close) {
            outcome->apart = apart(z, share, problem->close);
            if (outcome->apart <= problem->close)
                return SLUICE_IP_CLOSE;
            if (share < 1e-14 || (share < 1e-3 * problem->close && outcome->apart > 0.5 * closest))
                return SLUICE_IP_STALLED;
            closest = outcome->apart < closest ? outcome->apart : closest;
        }
        if (stalls > MAX_STALLS || turn >= problem->max_iterations)
            return SLUICE_IP_STALLED;
        if (share < problem->check_order_at && disorder(z, violation) > disordered * sqrt(share))
            return SLUICE_IP_CLOSE;
        if (now_s() > end)
            return SLUICE_IP_TIME;
        sluice_ip_iterate(z, sum, pairs);
    }
}

int sluice_ip_solve(const sluice_ip_problem *problem, double *sizes, double *p,
                    double *violation, sluice_ip_outcome *outcome)
{
    state z;
    memset(&z, 0, sizeof z);
    z.k = problem->k;
    z.n = problem->n;
    z.S = z.k - 1;
    z.q = z.k > 2 ? problem->q : 0;
    z.m = 1 + z.q;
    z.F = 2 + z.q;
    z.at = problem->repeat_step;
    z.repeats = problem->repeats;
    z.inner = (double)(problem->repeats - 1);
    if (z.k < 2 || z.n < 2 || z.n > 64 || z.q > MAX_Q)
        return SLUICE_IP_MEMORY;
    sluice_ip_span all[MAX_Q];
    for (int64_t d = 0; d < z.q; d++)
        all[d] = (sluice_ip_span){d, 1, z.k - 2};
    z.spans = problem->spans == NULL ? all : problem->spans;
    z.span_count = problem->spans == NULL ? z.q : z.q > 0 ? problem->span_count : 0;
    double *pool = new_pool(sluice_ip_carve(&z, NULL) + 8);
    if (pool == NULL)
        return SLUICE_IP_MEMORY;
    (void)sluice_ip_carve(&z, (double *)(((uintptr_t)pool + 63) & ~(uintptr_t)63));
    double size = problem->free_bytes / ((double)z.k + z.inner), unit = 0.0;
    for (int64_t c = 0; c < z.n; c++)
        unit = larger(unit, problem->overhead_us[c] + problem->us_per_byte[c] * size);
    sluice_ip_scale(&z, problem, size, unit);
    sluice_ip_start(&z);
    int status = run(&z, problem, violation, outcome);
    (void)disorder(&z, violation);
    for (int64_t t = 0; t < z.k; t++)
        sizes[t] = z.y[t] * size;
    sizes[z.k] = z.inner > 0.0 ? z.Y / z.inner * size : 0.0;
    for (int64_t t = 0; t < z.S; t++)
        for (int64_t c = 0; c < z.n; c++)
            p[t * z.n + c] = z.p[cell_of(&z, c, t)];
    free(pool);
    return status;
}

/* ---- the certificate ------------------------------------------------------------------------- */

void sluice_ip_repair(int64_t steps_, int64_t n, double *p)
{
    double before[64];
    for (int64_t c = 0; c < n; c++)
        before[c] = 1.0;
    for (int64_t t = 0; t < steps_; t++) {
        double *row = p + t * n, total = 0.0, running = 0.0, last = 0.0;
        for (int64_t c = 0; c < n; c++) {
            row[c] = row[c] > 0.0 ? row[c] : 0.0;
            total += row[c];
        }
        for (int64_t c = 0; c < n; c++) {
            running += total > 0.0 ? row[c] / total : 1.0 / (double)n;
            double value = running < before[c] ? running : before[c];
            if (c == n - 1)
                value = 1.0;
            before[c] = value;
            row[c] = value - last;
            last = value;
        }
    }
}
