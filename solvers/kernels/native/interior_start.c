#include "interior_state.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define NEAR_LEVEL 1e-3 /* of the weights' sum, before they are made to sum to 1 */
#define ARCH 1.0

void sluice_ip_scale(state *z, const sluice_ip_problem *problem, double size, double unit)
{
    double Q = 0.0;
    for (int64_t c = 0; c < z->n; c++) {
        z->g[c] = problem->overhead_us[c] / unit;
        z->G[c] = problem->us_per_byte[c] * size / unit;
        z->E[1][c] = z->Qm[c] = Q;
        Q += z->G[c];
        z->E[0][c] = z->Q[c] = Q;
        for (int64_t d = 0; d < z->q; d++)
            z->E[2 + d][c] = c <= problem->boundaries[d] ? 1.0 : 0.0;
    }
    z->cap = problem->spread_bytes / size;
    z->capped = problem->spread_bytes < problem->free_bytes;
}

typedef struct {
    double *first; /* null: only counted */
    int64_t used;
} pool_of_doubles;

static double *take(pool_of_doubles *pool, int64_t count)
{
    double *out = pool->first == NULL ? NULL : pool->first + pool->used;
    pool->used += (count + 7) & ~(int64_t)7;
    return out;
}

static void carve_direction(direction *go, const state *z, pool_of_doubles *pool)
{
    go->s = take(pool, cells_of(z));
    go->p = take(pool, cells_of(z));
    go->y = take(pool, z->k);
    go->w = take(pool, z->k);
    go->u = take(pool, z->k);
    go->r = take(pool, z->q * z->k);
    go->o = take(pool, z->q * z->k);
}

/* Lays the arrays out one after another; with a null pool it only counts. */
int64_t sluice_ip_carve(state *z, double *first)
{
    pool_of_doubles pool = {first, 0};
    int64_t cells = cells_of(z), S = z->S, k = z->k;
    double **of_cells[] = {&z->p, &z->s, &z->goal, &z->recip};
    double **of_sizes[] = {&z->y, &z->w, &z->v, &z->u, &z->goal_w, &z->goal_u, &z->rest_w};
    double **of_waits[] = {&z->r, &z->o, &z->goal_o, &z->rest_o};
    double **of_blocks[] = {&z->inverse, &z->ones, &z->side, &z->border, &z->bordered};
    for (size_t i = 0; i < sizeof of_cells / sizeof *of_cells; i++)
        *of_cells[i] = take(&pool, cells);
    for (size_t i = 0; i < sizeof of_sizes / sizeof *of_sizes; i++)
        *of_sizes[i] = take(&pool, k);
    for (size_t i = 0; i < sizeof of_waits / sizeof *of_waits; i++)
        *of_waits[i] = take(&pool, z->q * k);
    for (size_t i = 0; i < sizeof of_blocks / sizeof *of_blocks; i++)
        *of_blocks[i] = take(&pool, k * z->m);
    z->waits = (unsigned char *)take(&pool, k / 8 + 1);
    z->near = (unsigned char *)take(&pool, S / CHUNK / 8 + 1);
    z->D = take(&pool, z->n * CHUNK);
    z->cov = take(&pool, z->F * z->F * CHUNK);
    z->mean = take(&pool, 2 * z->F * (S + CHUNK));
    z->sum_D = take(&pool, S);
    z->T = take(&pool, S);
    z->cf = take(&pool, z->F * S);
    z->diagonal = take(&pool, k * z->m * z->m);
    z->upper = take(&pool, k * z->m * z->m);
    carve_direction(&z->first, z, &pool);
    carve_direction(&z->second, z, &pool);
    return pool.used;
}

/* ---- the start: equal sizes, waits in an arch, p on the central path of each step ------------ */

static void start_steps(state *z)
{
    int64_t n = z->n, S = z->S, k = z->k;
    double a[64];
    for (int64_t t = 0; t < S; t++) {
        double top = -DBL_MAX;
        int is_own = t == 0 || z->waits[t] || z->waits[t + 1] || z->waits[t - 1];
        if (is_own || (z->inner > 0.0 && (t == z->at || t == z->at + 1))) {
            double times = t == z->at ? (double)z->repeats : 1.0;
            for (int64_t c = 0; c < n; c++) {
                a[c] = times * (z->g[c] + z->G[c]);
                for (int64_t d = 0; d < z->q; d++)
                    a[c] += z->E[2 + d][c] *
                            (z->r[d * k + t + 1] - z->r[d * k + t]);
                top = a[c] > top ? a[c] : top;
            }
            double level = top + START_MU;
            double value = 1.0;
            for (int turn = 0; turn < 12 && fabs(value) > NEAR_LEVEL; turn++) {
                double slope = 0.0;
                value = -1.0;
                for (int64_t c = 0; c < n; c++) {
                    double x = 1.0 / (level - a[c]);
                    value += START_MU * x;
                    slope += START_MU * x * x;
                }
                level += value / slope;
            }
            double total = 0.0;
            for (int64_t c = 0; c < n; c++) {
                z->s[cell_of(z, c, t)] = level - a[c];
                total += 1.0 / (level - a[c]);
            }
            for (int64_t c = 0; c < n; c++)
                z->p[cell_of(z, c, t)] = 1.0 / ((level - a[c]) * total);
        } else {
            for (int64_t c = 0; c < n; c++) {
                z->s[cell_of(z, c, t)] = z->s[cell_of(z, c, t - 1)];
                z->p[cell_of(z, c, t)] = z->p[cell_of(z, c, t - 1)];
            }
        }
    }
}

/* E'p: the byte rows without lambda into w, the order rows into o. */
CLONES static void order_rows(const state *z, double *restrict o, int64_t c, int64_t from)
{
    const double *p = z->p + row_of(z, c, from);
    int64_t count = count_of(z, from);
    if (from > 0)
        o[from] += p[CHUNK - 1 - z->n * CHUNK] - p[0];
    for (int64_t t = 1; t < count; t++)
        o[from + t] += p[t - 1] - p[t];
}

CLONES void sluice_ip_rows_of(const state *z, double *restrict w, double *restrict o)
{
    int64_t n = z->n, S = z->S, k = z->k;
    memset(w, 0, (size_t)k * sizeof(double));
    memset(o, 0, (size_t)(z->q * k) * sizeof(double));
    for (int64_t from = 0; from < S; from += CHUNK) {
        int64_t count = count_of(z, from);
        for (int64_t c = 0; c < n; c++) {
            const double *p = z->p + row_of(z, c, from);
            for (int64_t t = 0; t < count; t++)
                w[from + t] += z->Q[c] * p[t];
            for (int64_t t = 0; t < count; t++)
                w[from + t + 1] -= z->Qm[c] * p[t];
            for (int64_t d = 0; d < boundaries_of(z, from); d++)
                if (z->E[2 + d][c] > 0.0)
                    order_rows(z, o + d * k, c, from);
        }
    }
    w[k - 1] += z->Q[n - 1];
}

/* G.p at the repeated step. */
double sluice_ip_mean_cost(const state *z)
{
    double sum = 0.0;
    for (int64_t c = 0; c < z->n; c++)
        sum += z->G[c] * z->p[cell_of(z, c, z->at)];
    return sum;
}

void sluice_ip_start(state *z)
{
    int64_t k = z->k;
    for (int64_t a = 0; a < z->span_count; a++) {
        int64_t from = z->spans[a].first - 1, to = z->spans[a].last + 1;
        double scale = ARCH / (double)(to - from);
        for (int64_t t = from + 1; t < to; t++) {
            z->r[z->spans[a].boundary * k + t] = (double)(t - from) * (double)(to - t) * scale;
            z->waits[t] = z->near[(t - 1) / CHUNK] = z->near[t / CHUNK] = 1;
        }
    }
    for (int64_t t = 0; t < k; t++)
        z->y[t] = 1.0;
    start_steps(z);
    sluice_ip_rows_of(z, z->w, z->o);
    for (int64_t i = 0; i < z->q * k; i++)
        z->o[i] = z->r[i] > 0.0 ? larger(z->o[i], START_MU / z->r[i]) : 0.0;
    if (z->capped)
        for (int64_t t = 0; t < k; t++) {
            z->v[t] = z->cap - 1.0;
            z->u[t] = START_MU / z->v[t];
            z->w[t] += z->u[t];
        }
    double minimum = DBL_MAX;
    z->Y = z->inner;
    z->W = sluice_ip_mean_cost(z);
    if (z->inner > 0.0) {
        z->V = z->inner * (z->cap - 1.0);
        z->U = z->capped ? START_MU / z->V : 0.0;
        z->W += z->U;
        minimum = z->W;
    }
    for (int64_t t = 0; t < k; t++)
        minimum = z->w[t] < minimum ? z->w[t] : minimum;
    z->lambda = minimum - START_MU;
    for (int64_t t = 0; t < k; t++)
        z->w[t] -= z->lambda;
    z->W -= z->lambda;
}
