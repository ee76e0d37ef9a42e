#include "interior_point.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "blocks.h"
#include "portable.h"

/* Notation  k fragments, n stages, S = k-1 steps; step t leads from fragment t to fragment t+1.
   y (k)       bytes above the least size, in units of B'/k
   p, s (n, S) distribution of step t over the stages, and the slack of its row in the primal
   w (k)       slack of the byte rows; v, u (k) room below the cap and its multiplier
   r, o (q, k) waits at the boundaries, and the slack of their order rows; r of step pair
               (t-1, t) stands at block t, blocks 0 and k-1 have none
   Block t of the Newton system holds y_t and r_.t. Cells are stored stage by stage, so that every
   inner loop runs over steps and the compiler can vectorise it. */

#define CHUNK 64
#define MAX_Q 63
#define MAX_F (MAX_Q + 2)
#define START_MU 0.03
#define ARCH 1.0
#define BACK_OFF 0.995
#define CERTIFY_FACTOR 2.0
#define MOST_STALLS 12 /* iterations in which the complementarity is not halved */
#define GOOD_STEP 0.5 /* of the shorter of the two, below which a centrality corrector is tried */
#define STRETCH 1.3
#define ADDED 0.2
#define REGULAR 1e-12 /* share added to the diagonal of the Newton system */

static double larger(double a, double b) { return a > b ? a : b; }

typedef struct {
    double primal, dual;      /* 1 / longest step, each at least 1 */
    double p_ds, s_dp, ds_dp; /* sums for the complementarity after the step */
} steps;

typedef struct {
    double *s, *p, *y, *w, *u, *r, *o;
    double lambda, Y, W, U;
    steps size;
} direction;

typedef struct {
    int64_t k, n, q, S, m, F, capped;
    double g[64], G[64], Q[64], Qm[64]; /* scaled */
    double E[MAX_F][64];                /* functions of the stage: Q, Qm, indicator c <= d */
    double cap, lambda;
    /* The repeated step: taken `repeats` times, with `inner` fragments between that share Y. */
    int64_t at, repeats;
    double inner, Y, W, V, U, goal_W, goal_U, rest_W;
    double G_mean[2], G_cov, G_sum; /* of the per-byte cost under D at this step */
    double *p, *s, *goal, *recip;  /* n x S; goal: the product wanted of each cell; 1/s */
    double *D;                     /* n x CHUNK */
    double *mean;                  /* 2F x S: first and second mean of each function */
    double *sum_D;                 /* S */
    double *T, *cf;                /* S; F x S: sums of the right side */
    double *y, *w, *goal_w;        /* k */
    double *v, *u, *goal_u;        /* k, where capped */
    double *rest_w, *rest_o;       /* k; q x k: what rounding has left of the rows */
    double *r, *o, *goal_o;        /* q x k */
    double *cov;                   /* F x F x CHUNK */
    double *diagonal, *upper, *inverse, *ones, *side, *border, *bordered;
    direction first, second;
} state;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
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
    go->s = take(pool, z->n * z->S);
    go->p = take(pool, z->n * z->S);
    go->y = take(pool, z->k);
    go->w = take(pool, z->k);
    go->u = take(pool, z->k);
    go->r = take(pool, z->q * z->k);
    go->o = take(pool, z->q * z->k);
}

/* Lays the arrays out one after another; with a null pool it only counts. */
static int64_t carve(state *z, double *first)
{
    pool_of_doubles pool = {first, 0};
    int64_t cells = z->n * z->S, S = z->S, k = z->k;
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
    z->D = take(&pool, z->n * CHUNK);
    z->cov = take(&pool, z->F * z->F * CHUNK);
    z->mean = take(&pool, 2 * z->F * S);
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
        if (t == 0 || z->q > 0 || (z->inner > 0.0 && (t == z->at || t == z->at + 1))) {
            double times = t == z->at ? (double)z->repeats : 1.0;
            for (int64_t c = 0; c < n; c++) {
                a[c] = times * (z->g[c] + z->G[c]);
                for (int64_t d = 0; d < z->q; d++)
                    a[c] += z->E[2 + d][c] *
                            ((t + 1 < k ? z->r[d * k + t + 1] : 0.0) - z->r[d * k + t]);
                top = a[c] > top ? a[c] : top;
            }
            double level = top + START_MU;
            for (int turn = 0; turn < 12; turn++) {
                double value = -1.0, slope = 0.0;
                for (int64_t c = 0; c < n; c++) {
                    double x = 1.0 / (level - a[c]);
                    value += START_MU * x;
                    slope += START_MU * x * x;
                }
                level += value / slope;
            }
            double total = 0.0;
            for (int64_t c = 0; c < n; c++) {
                z->s[c * S + t] = level - a[c];
                total += 1.0 / (level - a[c]);
            }
            for (int64_t c = 0; c < n; c++)
                z->p[c * S + t] = 1.0 / ((level - a[c]) * total);
        } else {
            for (int64_t c = 0; c < n; c++) {
                z->s[c * S + t] = z->s[c * S + t - 1];
                z->p[c * S + t] = z->p[c * S + t - 1];
            }
        }
    }
}

/* E'p: the byte rows without lambda into w, the order rows into o. */
CLONES static void rows_of(const state *z, double *w, double *o)
{
    int64_t n = z->n, S = z->S, k = z->k;
    memset(w, 0, (size_t)k * sizeof(double));
    for (int64_t c = 0; c < n; c++)
        for (int64_t t = 0; t < S; t++)
            w[t] += z->Q[c] * z->p[c * S + t];
    w[k - 1] = z->Q[n - 1];
    for (int64_t c = 1; c < n; c++)
        for (int64_t t = 0; t < S; t++)
            w[t + 1] -= z->Qm[c] * z->p[c * S + t];
    for (int64_t d = 0; d < z->q; d++) {
        memset(o + d * k, 0, (size_t)k * sizeof(double));
        for (int64_t c = 0; c < n; c++)
            if (z->E[2 + d][c] > 0.0)
                for (int64_t t = 1; t < S; t++)
                    o[d * k + t] += z->p[c * S + t - 1] - z->p[c * S + t];
    }
}

/* G.p at the repeated step. */
static double mean_cost(const state *z)
{
    double sum = 0.0;
    for (int64_t c = 0; c < z->n; c++)
        sum += z->G[c] * z->p[c * z->S + z->at];
    return sum;
}

static void start(state *z)
{
    int64_t k = z->k;
    double scale = ARCH / (double)(k - 1);
    for (int64_t d = 0; d < z->q; d++)
        for (int64_t t = 0; t < k; t++)
            z->r[d * k + t] = (double)t * (double)(k - 1 - t) * scale;
    for (int64_t t = 0; t < k; t++)
        z->y[t] = 1.0;
    start_steps(z);
    rows_of(z, z->w, z->o);
    for (int64_t i = 0; i < z->q * k; i++)
        z->o[i] = z->r[i] > 0.0 ? larger(z->o[i], START_MU / z->r[i]) : 1.0;
    if (z->capped)
        for (int64_t t = 0; t < k; t++) {
            z->v[t] = z->cap - 1.0;
            z->u[t] = START_MU / z->v[t];
            z->w[t] += z->u[t];
        }
    double least = DBL_MAX;
    z->Y = z->inner;
    z->W = mean_cost(z);
    if (z->inner > 0.0) {
        z->V = z->inner * (z->cap - 1.0);
        z->U = z->capped ? START_MU / z->V : 0.0;
        z->W += z->U;
        least = z->W;
    }
    for (int64_t t = 0; t < k; t++)
        least = z->w[t] < least ? z->w[t] : least;
    z->lambda = least - START_MU;
    for (int64_t t = 0; t < k; t++)
        z->w[t] -= z->lambda;
    z->W -= z->lambda;
}

/* ---- one iteration --------------------------------------------------------------------------- */

/* D, its sum and the centred means of a chunk of steps. Centring twice keeps the covariances
   accurate where one cell outweighs the others by more digits than a double has. */
CLONES static void weigh(state *z, int64_t from, int64_t count)
{
    int64_t n = z->n, S = z->S, F = z->F;
    double *restrict sum = z->sum_D + from;
    for (int64_t t = 0; t < count; t++)
        sum[t] = 0.0;
    for (int64_t c = 0; c < n; c++) {
        const double *p = z->p + c * S + from, *s = z->s + c * S + from;
        double *restrict D = z->D + c * CHUNK, *restrict recip = z->recip + c * S + from;
        for (int64_t t = 0; t < count; t++) {
            recip[t] = 1.0 / s[t];
            D[t] = p[t] * recip[t];
            sum[t] += D[t];
        }
    }
    for (int64_t f = 0; f < F; f++) {
        double *one = z->mean + 2 * f * S + from, *two = one + S;
        for (int64_t t = 0; t < count; t++)
            one[t] = two[t] = 0.0;
        for (int64_t c = 0; c < n; c++)
            for (int64_t t = 0; t < count; t++)
                one[t] += z->E[f][c] * z->D[c * CHUNK + t];
        for (int64_t t = 0; t < count; t++)
            one[t] /= sum[t];
        for (int64_t c = 0; c < n; c++)
            for (int64_t t = 0; t < count; t++)
                two[t] += (z->E[f][c] - one[t]) * z->D[c * CHUNK + t];
        for (int64_t t = 0; t < count; t++)
            two[t] /= sum[t];
    }
}

/* Covariances of the functions under D, and the sums of the affine right side. */
CLONES static void covary(state *z, int64_t from, int64_t count)
{
    int64_t n = z->n, S = z->S, F = z->F;
    double centred[MAX_F][CHUNK];
    memset(z->cov, 0, (size_t)(F * F * CHUNK) * sizeof(double));
    for (int64_t f = 0; f < F; f++)
        for (int64_t t = 0; t < count; t++)
            z->cf[f * S + from + t] = 0.0;
    for (int64_t c = 0; c < n; c++) {
        const double *p = z->p + c * S + from, *D = z->D + c * CHUNK;
        for (int64_t f = 0; f < F; f++) {
            const double *one = z->mean + 2 * f * S + from, *two = one + S;
            double *sums = z->cf + f * S + from;
            for (int64_t t = 0; t < count; t++) {
                centred[f][t] = (z->E[f][c] - one[t]) - two[t];
                sums[t] -= centred[f][t] * p[t];
            }
        }
        for (int64_t f = 0; f < F; f++)
            for (int64_t e = 0; e <= f; e++) {
                double *cov = z->cov + (f * F + e) * CHUNK;
                for (int64_t t = 0; t < count; t++)
                    cov[t] += D[t] * centred[f][t] * centred[e][t];
            }
    }
}

/* Adds the steps of a chunk to the blocks of the Newton system. */
static void assemble(state *z, int64_t from, int64_t count)
{
    int64_t m = z->m, F = z->F, q = z->q;
    for (int64_t i = 0; i < count; i++) {
        int64_t t = from + i;
        double *here = z->diagonal + t * m * m, *next = here + m * m;
        double *across = z->upper + t * m * m;
        const double *cov = z->cov + i;
#define COV(f, e) cov[((f) * F + (e)) * CHUNK]
        here[0] += COV(0, 0);
        next[0] += COV(1, 1);
        across[0] = -COV(1, 0);
        for (int64_t d = 0; d < q; d++) {
            double with_Q = COV(2 + d, 0), with_Qm = COV(2 + d, 1);
            here[(1 + d) * m] -= with_Q;
            next[(1 + d) * m] -= with_Qm;
            across[1 + d] = with_Q;
            across[(1 + d) * m] = with_Qm;
            for (int64_t e = 0; e <= d; e++) {
                double value = COV(2 + d, 2 + e);
                here[(1 + d) * m + 1 + e] += value;
                next[(1 + d) * m + 1 + e] += value;
                across[(1 + d) * m + 1 + e] = -value;
                across[(1 + e) * m + 1 + d] = -value;
            }
        }
#undef COV
    }
}

/* The waits of the first and last block do not exist: rows of the identity. */
static void pin_ends(state *z)
{
    int64_t m = z->m, last = z->k - 1;
    for (int64_t d = 1; d < m; d++)
        for (int64_t e = 0; e < m; e++) {
            z->diagonal[d * m + e] = z->diagonal[last * m * m + d * m + e] = d == e ? 1.0 : 0.0;
            z->upper[d * m + e] = 0.0;
            z->upper[(last - 1) * m * m + e * m + d] = 0.0;
        }
}

/* What the repeated fragments add: one column beside the blocks, with its own corner. */
static void build_border(state *z)
{
    int64_t m = z->m, at = z->at, F = z->F, S = z->S;
    double sum = z->sum_D[at], one = 0.0, two = 0.0, cov[MAX_F] = {0};
    double *here = z->border + at * m, *next = here + m;
    memset(z->border, 0, (size_t)(z->k * m) * sizeof(double));
    for (int64_t c = 0; c < z->n; c++)
        one += z->G[c] * z->p[c * S + at] * z->recip[c * S + at];
    one /= sum;
    for (int64_t c = 0; c < z->n; c++)
        two += (z->G[c] - one) * z->p[c * S + at] * z->recip[c * S + at];
    two /= sum;
    z->G_mean[0] = one;
    z->G_mean[1] = two;
    z->G_cov = 0.0;
    for (int64_t c = 0; c < z->n; c++) {
        double D = z->p[c * S + at] * z->recip[c * S + at], G = (z->G[c] - one) - two;
        z->G_cov += D * G * G;
        for (int64_t f = 0; f < F; f++) {
            const double *mean = z->mean + 2 * f * S + at;
            cov[f] += D * G * ((z->E[f][c] - mean[0]) - mean[S]);
        }
    }
    here[0] = cov[0];
    next[0] = -cov[1];
    for (int64_t d = 0; d < z->q; d++) {
        here[1 + d] = at > 0 ? -cov[2 + d] : 0.0;
        next[1 + d] = at + 1 < z->k - 1 ? cov[2 + d] : 0.0;
    }
    memcpy(z->bordered, z->border, (size_t)(z->k * m) * sizeof(double));
    sluice_blocks_solve(z->k, m, z->diagonal, z->upper, z->inverse, z->bordered);
    z->rest_W = mean_cost(z) + (z->capped ? z->U : 0.0) - z->lambda - z->W;
    z->G_cov += z->W / z->Y + (z->capped ? z->U / z->V : 0.0);
}

static void build(state *z)
{
    int64_t k = z->k, m = z->m, q = z->q;
    memset(z->diagonal, 0, (size_t)(k * m * m) * sizeof(double));
    for (int64_t from = 0; from < z->S; from += CHUNK) {
        int64_t count = z->S - from < CHUNK ? z->S - from : CHUNK;
        weigh(z, from, count);
        covary(z, from, count);
        assemble(z, from, count);
    }
    rows_of(z, z->rest_w, z->rest_o);
    for (int64_t t = 0; t < k; t++)
        z->rest_w[t] += (z->capped ? z->u[t] : 0.0) - z->lambda - z->w[t];
    for (int64_t i = 0; i < q * k; i++)
        z->rest_o[i] -= z->o[i];
    if (q > 0)
        pin_ends(z);
    for (int64_t t = 0; t < k; t++) {
        z->diagonal[t * m * m] += z->w[t] / z->y[t] + (z->capped ? z->u[t] / z->v[t] : 0.0);
        if (t > 0 && t < k - 1)
            for (int64_t d = 0; d < q; d++)
                z->diagonal[t * m * m + (1 + d) * (m + 1)] += z->o[d * k + t] / z->r[d * k + t];
    }
    for (int64_t i = 0; i < k * m; i++)
        z->diagonal[i / m * m * m + i % m * (m + 1)] *= 1.0 + REGULAR;
    sluice_blocks_factor(k, m, z->diagonal, z->upper, z->inverse);
    memset(z->ones, 0, (size_t)(k * m) * sizeof(double));
    for (int64_t t = 0; t < k; t++)
        z->ones[t * m] = 1.0;
    sluice_blocks_solve(k, m, z->diagonal, z->upper, z->inverse, z->ones);
    if (z->inner > 0.0)
        build_border(z);
}

/* ---- directions ------------------------------------------------------------------------------ */

/* The step of the repeated fragments and of lambda, from the solutions for each side:
   H v + border Y - ones lambda = side, border.v + corner Y - lambda = side_Y, sum v + Y = rest. */
static void step_border(state *z, direction *go, double total, double against)
{
    double corner = z->G_cov, across = -1.0, side = 0.0;
    int64_t m = z->m, from = z->at * m;
    for (int64_t i = from; i < from + 2 * m; i++) {
        corner -= z->border[i] * z->bordered[i];
        across += z->border[i] * z->ones[i];
        side -= z->border[i] * z->side[i];
    }
    side += z->goal_W / z->Y - z->W - z->rest_W - z->G_sum;
    if (z->capped)
        side -= z->goal_U / z->V - z->U;
    corner = corner > 1e-15 * z->G_cov ? corner : 1e-15 * z->G_cov;
    total -= z->inner - z->Y;
    double scale = corner * against + across * across;
    go->Y = (side * against + total * across) / scale;
    go->lambda = (across * side - corner * total) / scale;
}

/* Solves for the step in y and the waits, side holding the right side; sets that of lambda. */
static void step_sizes(state *z, direction *go)
{
    int64_t k = z->k, m = z->m;
    double total = 0.0, against = 0.0;
    sluice_blocks_solve(k, m, z->diagonal, z->upper, z->inverse, z->side);
    for (int64_t t = 0; t < k; t++) {
        total += z->side[t * m] - (1.0 - z->y[t]);
        against += z->ones[t * m];
    }
    go->lambda = -total / against;
    go->Y = 0.0;
    if (z->inner > 0.0) {
        step_border(z, go, total, against);
        for (int64_t i = 0; i < k * m; i++)
            z->side[i] -= go->Y * z->bordered[i];
    }
    for (int64_t t = 0; t < k; t++) {
        go->y[t] = z->side[t * m] + go->lambda * z->ones[t * m];
        for (int64_t d = 0; d < z->q; d++)
            go->r[d * k + t] = t > 0 && t < k - 1
                                   ? z->side[t * m + 1 + d] + go->lambda * z->ones[t * m + 1 + d]
                                   : 0.0;
    }
}

/* side := the sums of the cells over the blocks of their steps, and what the other pairs add. */
static void right_side(state *z)
{
    int64_t k = z->k, m = z->m, S = z->S;
    for (int64_t t = 0; t < k; t++) {
        z->side[t * m] = (t > 0 ? z->cf[S + t - 1] : 0.0) - (t < S ? z->cf[t] : 0.0) +
                         z->goal_w[t] / z->y[t] - z->w[t] - z->rest_w[t];
        if (z->capped)
            z->side[t * m] -= z->goal_u[t] / z->v[t] - z->u[t];
        for (int64_t d = 0; d < z->q; d++) {
            const double *sums = z->cf + (2 + d) * S;
            int64_t i = d * k + t;
            z->side[t * m + 1 + d] = t > 0 && t < k - 1 ? sums[t] - sums[t - 1] +
                                                              z->goal_o[i] / z->r[i] - z->o[i] -
                                                              z->rest_o[i]
                                                        : 0.0;
        }
    }
}

/* Minus the centred change of the rows' left sides for a chunk: what ds is, but for T / sum D. */
INLINE void row_change(const state *z, const direction *go, int64_t c, int64_t from, int64_t count,
                       double *out)
{
    int64_t S = z->S, k = z->k;
    const double *one = z->mean + from, *two = one + S;
    const double *one_m = two + S, *two_m = one_m + S;
    const double *dy = go->y + from;
    double Q = z->E[0][c], Qm = z->E[1][c];
    for (int64_t t = 0; t < count; t++)
        out[t] = ((Qm - one_m[t]) - two_m[t]) * dy[t + 1] - ((Q - one[t]) - two[t]) * dy[t];
    for (int64_t d = 0; d < z->q; d++) {
        const double *dr = go->r + d * k + from;
        double here = z->E[2 + d][c];
        one = two_m + (2 * d + 1) * S;
        two = one + S;
        for (int64_t t = 0; t < count; t++)
            out[t] -= ((here - one[t]) - two[t]) * (dr[t + 1] - dr[t]);
    }
    if (z->inner > 0.0 && z->at >= from && z->at < from + count)
        out[z->at - from] -= ((z->G[c] - z->G_mean[0]) - z->G_mean[1]) * go->Y;
}

/* The affine direction: its products go into `goal`, and its sums and longest steps are told. */
CLONES static void affine_cells(state *z, const direction *go, steps *out)
{
    int64_t S = z->S;
    double ds[CHUNK];
    double worst_s[CHUNK] = {0}, worst_p[CHUNK] = {0}, a[CHUNK] = {0}, b[CHUNK] = {0},
           e[CHUNK] = {0};
    for (int64_t from = 0; from < S; from += CHUNK) {
        int64_t count = S - from < CHUNK ? S - from : CHUNK;
        const double *sum_D = z->sum_D + from;
        for (int64_t c = 0; c < z->n; c++) {
            const double *p = z->p + c * S + from, *s = z->s + c * S + from;
            const double *recip = z->recip + c * S + from;
            double *restrict goal = z->goal + c * S + from;
            row_change(z, go, c, from, count, ds);
            for (int64_t t = 0; t < count; t++) {
                double change = ds[t] - 1.0 / sum_D[t];
                double share = -change * recip[t]; /* of s; of p it is 1 - share */
                double dp = p[t] * (share - 1.0);
                worst_s[t] = share > worst_s[t] ? share : worst_s[t];
                worst_p[t] = 1.0 - share > worst_p[t] ? 1.0 - share : worst_p[t];
                goal[t] = dp * change;
                a[t] += p[t] * change;
                b[t] += s[t] * dp;
                e[t] += goal[t];
            }
        }
    }
    for (int64_t t = 0; t < CHUNK; t++) {
        out->primal = larger(out->primal, worst_s[t]);
        out->dual = larger(out->dual, worst_p[t]);
        out->p_ds += a[t];
        out->s_dp += b[t];
        out->ds_dp += e[t];
    }
}

/* The cells' sums for the right side: tp = goal / s - p. */
CLONES static void cell_sums(state *z)
{
    int64_t S = z->S;
    double tp[CHUNK];
    for (int64_t from = 0; from < S; from += CHUNK) {
        int64_t count = S - from < CHUNK ? S - from : CHUNK;
        double *T = z->T + from;
        for (int64_t t = 0; t < count; t++)
            T[t] = 0.0;
        for (int64_t f = 0; f < z->F; f++)
            for (int64_t t = 0; t < count; t++)
                z->cf[f * S + from + t] = 0.0;
        for (int64_t c = 0; c < z->n; c++) {
            const double *p = z->p + c * S + from, *recip = z->recip + c * S + from;
            const double *goal = z->goal + c * S + from;
            for (int64_t t = 0; t < count; t++) {
                tp[t] = goal[t] * recip[t] - p[t];
                T[t] += tp[t];
            }
            for (int64_t f = 0; f < z->F; f++) {
                const double *one = z->mean + 2 * f * S + from, *two = one + S;
                double *restrict sums = z->cf + f * S + from, here = z->E[f][c];
                for (int64_t t = 0; t < count; t++)
                    sums[t] += ((here - one[t]) - two[t]) * tp[t];
            }
        }
    }
}

CLONES static void cell_steps(const state *z, direction *go)
{
    int64_t S = z->S;
    double worst_s[CHUNK] = {0}, worst_p[CHUNK] = {0}, mean_ds[CHUNK];
    for (int64_t from = 0; from < S; from += CHUNK) {
        int64_t count = S - from < CHUNK ? S - from : CHUNK;
        const double *T = z->T + from, *sum_D = z->sum_D + from;
        for (int64_t t = 0; t < count; t++)
            mean_ds[t] = T[t] / sum_D[t];
        for (int64_t c = 0; c < z->n; c++) {
            const double *p = z->p + c * S + from, *recip = z->recip + c * S + from;
            const double *goal = z->goal + c * S + from;
            double *restrict ds = go->s + c * S + from, *restrict dp = go->p + c * S + from;
            row_change(z, go, c, from, count, ds);
            for (int64_t t = 0; t < count; t++) {
                ds[t] += mean_ds[t];
                dp[t] = (goal[t] - p[t] * ds[t]) * recip[t] - p[t];
                double share = -ds[t] * recip[t], other = -dp[t] / p[t];
                worst_s[t] = share > worst_s[t] ? share : worst_s[t];
                worst_p[t] = other > worst_p[t] ? other : worst_p[t];
            }
        }
    }
    for (int64_t t = 0; t < CHUNK; t++) {
        go->size.primal = larger(go->size.primal, worst_s[t]);
        go->size.dual = larger(go->size.dual, worst_p[t]);
    }
}

/* The other pairs: x > 0 with multiplier m > 0 and the product wanted of them; sign of dx. */
CLONES static void pair_steps(int64_t count, const double *goal, const double *x,
                              const double *dx, double sign, const double *m,
                              double *restrict dm, steps *out)
{
    double worst[2][8] = {{0}}, sums[3][8] = {{0}};
    for (int64_t from = 0; from < count; from += 8) {
        int64_t lanes = count - from < 8 ? count - from : 8;
        for (int64_t l = 0; l < lanes; l++) {
            int64_t i = from + l;
            double change = sign * dx[i], recip = 1.0 / x[i];
            double other = (goal[i] - m[i] * change) * recip - m[i];
            double first = -change * recip, second = -other / m[i];
            worst[0][l] = first > worst[0][l] ? first : worst[0][l];
            worst[1][l] = second > worst[1][l] ? second : worst[1][l];
            sums[0][l] += m[i] * change;
            sums[1][l] += x[i] * other;
            sums[2][l] += change * other;
            dm[i] = other;
        }
    }
    for (int64_t l = 0; l < 8; l++) {
        out->primal = larger(out->primal, worst[0][l]);
        out->dual = larger(out->dual, worst[1][l]);
        out->p_ds += sums[0][l];
        out->s_dp += sums[1][l];
        out->ds_dp += sums[2][l];
    }
}

static void other_pairs(const state *z, direction *go)
{
    int64_t k = z->k;
    pair_steps(k, z->goal_w, z->y, go->y, 1.0, z->w, go->w, &go->size);
    if (z->capped)
        pair_steps(k, z->goal_u, z->v, go->y, -1.0, z->u, go->u, &go->size);
    for (int64_t d = 0; d < z->q; d++) {
        int64_t i = d * k + 1;
        pair_steps(k - 2, z->goal_o + i, z->r + i, go->r + i, 1.0, z->o + i, go->o + i,
                   &go->size);
    }
    go->W = go->U = 0.0;
    if (z->inner > 0.0)
        pair_steps(1, &z->goal_W, &z->Y, &go->Y, 1.0, &z->W, &go->W, &go->size);
    if (z->inner > 0.0 && z->capped)
        pair_steps(1, &z->goal_U, &z->V, &go->Y, -1.0, &z->U, &go->U, &go->size);
}

/* The repeated step's sum for the right side of its fragments. */
static void repeated_sum(state *z)
{
    z->G_sum = 0.0;
    for (int64_t c = 0; z->inner > 0.0 && c < z->n; c++) {
        int64_t i = c * z->S + z->at;
        double tp = z->goal[i] * z->recip[i] - z->p[i];
        z->G_sum += ((z->G[c] - z->G_mean[0]) - z->G_mean[1]) * tp;
    }
}

/* A direction towards the goals, with its longest steps. */
static void direct(state *z, direction *go)
{
    cell_sums(z);
    repeated_sum(z);
    right_side(z);
    step_sizes(z, go);
    go->size = (steps){1.0, 1.0, 0.0, 0.0, 0.0};
    cell_steps(z, go);
    other_pairs(z, go);
}

/* The affine direction, the second-order goals that follow from it; returns the centre. */
static double predict(state *z, direction *go, double sum, double pairs)
{
    int64_t k = z->k;
    memset(z->goal_w, 0, (size_t)k * sizeof(double));
    memset(z->goal_u, 0, (size_t)k * sizeof(double));
    memset(z->goal_o, 0, (size_t)(z->q * k) * sizeof(double));
    z->goal_W = z->goal_U = 0.0;
    memset(z->goal, 0, (size_t)(z->n * z->S) * sizeof(double));
    repeated_sum(z);
    right_side(z);
    step_sizes(z, go);
    go->size = (steps){1.0, 1.0, 0.0, 0.0, 0.0};
    affine_cells(z, go, &go->size);
    other_pairs(z, go);
    double primal = 1.0 / go->size.primal, dual = 1.0 / go->size.dual;
    double after = sum + primal * go->size.p_ds + dual * go->size.s_dp +
                   primal * dual * go->size.ds_dp;
    double share = larger(after, 0.0) / sum;
    double centre = share * share * share * sum / pairs;
    for (int64_t i = 0; i < z->n * z->S; i++)
        z->goal[i] = centre - z->goal[i];
    for (int64_t t = 0; t < k; t++) {
        z->goal_w[t] = centre - go->w[t] * go->y[t];
        z->goal_u[t] = z->capped ? centre + go->u[t] * go->y[t] : 0.0;
    }
    for (int64_t i = 0; i < z->q * k; i++)
        z->goal_o[i] = centre - go->o[i] * go->r[i];
    z->goal_W = centre - go->W * go->Y;
    z->goal_U = centre + go->U * go->Y;
    return centre;
}

/* Gondzio's corrector: what brings a product after the longer step back to near the centre. */
INLINE double correction(double product, double low, double high)
{
    double out = product < low ? low - product : product > high ? high - product : 0.0;
    return out < -high ? -high : out;
}

CLONES static void correct(state *z, const direction *go, double primal, double dual,
                           double centre)
{
    int64_t k = z->k;
    double low = 0.1 * centre, high = 10.0 * centre;
    for (int64_t i = 0; i < z->n * z->S; i++) {
        double product = (z->s[i] + primal * go->s[i]) * (z->p[i] + dual * go->p[i]);
        z->goal[i] += correction(product, low, high);
    }
    for (int64_t t = 0; t < k; t++)
        z->goal_w[t] += correction((z->y[t] + primal * go->y[t]) * (z->w[t] + dual * go->w[t]),
                                   low, high);
    if (z->capped)
        for (int64_t t = 0; t < k; t++)
            z->goal_u[t] += correction(
                (z->v[t] - primal * go->y[t]) * (z->u[t] + dual * go->u[t]), low, high);
    for (int64_t d = 0; d < z->q; d++)
        for (int64_t i = d * k + 1; i < d * k + k - 1; i++)
            z->goal_o[i] += correction(
                (z->r[i] + primal * go->r[i]) * (z->o[i] + dual * go->o[i]), low, high);
    z->goal_W += correction((z->Y + primal * go->Y) * (z->W + dual * go->W), low, high);
    z->goal_U += correction((z->V - primal * go->Y) * (z->U + dual * go->U), low, high);
}

CLONES static void move(double *restrict x, const double *restrict dx, int64_t count, double by)
{
    for (int64_t i = 0; i < count; i++)
        x[i] += by * dx[i];
}

CLONES static double product(const double *a, const double *b, int64_t count)
{
    double lanes[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        for (int64_t l = 0; l < 8; l++)
            lanes[l] += a[i + l] * b[i + l];
    double sum = 0.0;
    for (; i < count; i++)
        sum += a[i] * b[i];
    for (int64_t l = 0; l < 8; l++)
        sum += lanes[l];
    return sum;
}

static double complementarity(const state *z)
{
    double sum = product(z->p, z->s, z->n * z->S) + product(z->y, z->w, z->k);
    if (z->capped)
        sum += product(z->u, z->v, z->k);
    for (int64_t d = 0; d < z->q; d++)
        sum += product(z->r + d * z->k + 1, z->o + d * z->k + 1, z->k - 2);
    if (z->inner > 0.0)
        sum += z->Y * z->W + (z->capped ? z->U * z->V : 0.0);
    return sum;
}

/* lambda B' + overheads of the mixture of paths - cap times the multipliers. */
CLONES static double dual_objective(const state *z)
{
    double value = z->lambda * ((double)z->k + z->inner);
    for (int64_t c = 0; c < z->n; c++) {
        double sum = 0.0, lanes[8] = {0};
        const double *p = z->p + c * z->S;
        int64_t t = 0;
        for (; t + 8 <= z->S; t += 8)
            for (int64_t l = 0; l < 8; l++)
                lanes[l] += p[t + l];
        for (; t < z->S; t++)
            sum += p[t];
        for (int64_t l = 0; l < 8; l++)
            sum += lanes[l];
        sum += (double)(z->repeats - 1) * p[z->at];
        value += z->g[c] * (1.0 + sum);
    }
    if (z->capped)
        for (int64_t t = 0; t < z->k; t++)
            value -= z->cap * z->u[t];
    if (z->capped && z->inner > 0.0)
        value -= z->cap * z->inner * z->U;
    return value;
}

static void advance(state *z, const direction *go)
{
    int64_t cells = z->n * z->S, k = z->k;
    double primal = go->size.primal > BACK_OFF ? BACK_OFF / go->size.primal : 1.0;
    double dual = go->size.dual > BACK_OFF ? BACK_OFF / go->size.dual : 1.0;
    move(z->s, go->s, cells, primal);
    move(z->p, go->p, cells, dual);
    move(z->y, go->y, k, primal);
    move(z->w, go->w, k, dual);
    z->lambda += dual * go->lambda;
    z->Y += primal * go->Y;
    z->W += dual * go->W;
    z->V -= primal * go->Y;
    z->U += dual * go->U;
    if (z->capped) {
        move(z->v, go->y, k, -primal);
        move(z->u, go->u, k, dual);
    }
    for (int64_t d = 0; d < z->q; d++) {
        move(z->r + d * k + 1, go->r + d * k + 1, k - 2, primal);
        move(z->o + d * k + 1, go->o + d * k + 1, k - 2, dual);
    }
}

static void iterate(state *z, double sum, double pairs)
{
    direction *go = &z->first, *other = &z->second;
    build(z);
    double centre = predict(z, go, sum, pairs);
    direct(z, go);
    double primal = 1.0 / go->size.primal, dual = 1.0 / go->size.dual;
    if (fmin(primal, dual) < GOOD_STEP) {
        correct(z, go, fmin(1.0, STRETCH * primal + ADDED), fmin(1.0, STRETCH * dual + ADDED),
                centre);
        direct(z, other);
        if (1.0 / other->size.primal + 1.0 / other->size.dual > primal + dual)
            go = other;
    }
    advance(z, go);
}

/* ---- outside --------------------------------------------------------------------------------- */

/* Greatest violation of the stochastic order at each boundary, (n-1); returns the greatest. */
static double disorder(const state *z, double *violation)
{
    double worst = 0.0;
    double *running = z->goal; /* free between iterations */
    memset(running, 0, (size_t)z->S * sizeof(double));
    for (int64_t c = 0; c + 1 < z->n; c++) {
        double here = 0.0;
        for (int64_t t = 0; t < z->S; t++)
            running[t] += z->p[c * z->S + t];
        for (int64_t t = 1; t < z->S; t++)
            here = larger(here, running[t] - running[t - 1]);
        violation[c] = here;
        worst = larger(worst, here);
    }
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

/* Latency of the sizes, brought to their exact sum; the recurrence of the judge. */
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
    double before[64], trail = 0.0, least = DBL_MAX, overheads = 0.0;
    for (int64_t c = 0; c < z->n; c++) {
        before[c] = 1.0;
        overheads += z->g[c];
    }
    for (int64_t t = 0; t < z->S; t++) {
        double total = 0.0, running = 0.0, last = 0.0, lead = 0.0, next = 0.0, cost = 0.0;
        for (int64_t c = 0; c < z->n; c++)
            total += z->p[c * z->S + t];
        for (int64_t c = 0; c < z->n; c++) {
            running += z->p[c * z->S + t] / total;
            double value = running < before[c] ? running : before[c], here;
            value = c == z->n - 1 ? 1.0 : value;
            here = value - last;
            before[c] = last = value;
            lead += z->Q[c] * here;
            next += z->Qm[c] * here;
            cost += z->g[c] * here;
        }
        least = lead - trail < least ? lead - trail : least;
        if (t == z->at && z->inner > 0.0) {
            least = lead - next < least ? lead - next : least;
            cost *= (double)z->repeats;
        }
        overheads += cost;
        trail = next;
    }
    least = z->Q[z->n - 1] - trail < least ? z->Q[z->n - 1] - trail : least;
    return overheads + least * ((double)z->k + z->inner);
}

/* Under a cap the repaired p is not priced here: what it is out of order counts in full. */
static double apart(const state *z, double *violation)
{
    double upper = latency_of(z), lower = z->capped ? dual_objective(z) : value_of(z);
    return (upper - lower) / upper + (z->capped ? disorder(z, violation) : 0.0);
}

static int run(state *z, const sluice_ip_problem *problem, double *violation,
               sluice_ip_outcome *outcome)
{
    double end = now_s() + problem->time_limit_s, best = DBL_MAX, closest = DBL_MAX;
    double pairs = (double)(z->n * z->S + z->k * (z->capped ? 2 : 1) + z->q * (z->k - 2) +
                            (z->inner > 0.0 ? 1 + z->capped : 0));
    int stalls = 0;
    outcome->apart = 1.0;
    for (int64_t turn = 0;; turn++) {
        double sum = complementarity(z), objective = dual_objective(z) + sum;
        double share = outcome->complementarity = sum / objective;
        outcome->iterations = turn;
        if (!(sum == sum) || !(objective > 0.0))
            return SLUICE_IP_STALLED;
        stalls++;
        if (share < 0.5 * best) {
            best = share;
            stalls = 0;
        }
        if (share <= CERTIFY_FACTOR * problem->close) {
            outcome->apart = apart(z, violation);
            if (outcome->apart <= problem->close)
                return SLUICE_IP_CLOSE;
            if (share < 1e-14 || (share < 1e-3 * problem->close && outcome->apart > 0.5 * closest))
                return SLUICE_IP_STALLED;
            closest = outcome->apart < closest ? outcome->apart : closest;
        }
        if (stalls > MOST_STALLS || turn >= problem->max_iterations)
            return SLUICE_IP_STALLED;
        if (share < problem->check_order_at && disorder(z, violation) > 10.0 * sqrt(share))
            return SLUICE_IP_CLOSE;
        if (now_s() > end)
            return SLUICE_IP_TIME;
        iterate(z, sum, pairs);
    }
}

static void scale(state *z, const sluice_ip_problem *problem, double size, double unit)
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
    double *pool = malloc((size_t)carve(&z, NULL) * sizeof(double) + 64);
    if (pool == NULL)
        return SLUICE_IP_MEMORY;
    (void)carve(&z, (double *)(((uintptr_t)pool + 63) & ~(uintptr_t)63));
    double size = problem->free_bytes / ((double)z.k + z.inner), unit = 0.0;
    for (int64_t c = 0; c < z.n; c++)
        unit = larger(unit, problem->overhead_us[c] + problem->us_per_byte[c] * size);
    scale(&z, problem, size, unit);
    start(&z);
    int status = run(&z, problem, violation, outcome);
    (void)disorder(&z, violation);
    for (int64_t t = 0; t < z.k; t++)
        sizes[t] = z.y[t] * size;
    sizes[z.k] = z.inner > 0.0 ? z.Y / z.inner * size : 0.0;
    for (int64_t t = 0; t < z.S; t++)
        for (int64_t c = 0; c < z.n; c++)
            p[t * z.n + c] = z.p[c * z.S + t];
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

double sluice_ip_value(int64_t k, int64_t n, const double *overhead_us, const double *us_per_byte,
                       double least_bytes, double message_bytes, const double *p)
{
    double Q[64], Qm[64], G = 0.0, g = 0.0, carry = 0.0, lost = 0.0;
    for (int64_t c = 0; c < n; c++) {
        Qm[c] = G;
        G += us_per_byte[c];
        Q[c] = G;
        g += overhead_us[c];
    }
    double trail = 0.0, least = DBL_MAX, total = 0.0, total_lost = 0.0;
    for (int64_t t = 0; t < k; t++) {
        double lead = 0.0, next = 0.0, overhead = 0.0;
        if (t < k - 1) {
            const double *row = p + t * n;
            for (int64_t c = 0; c < n; c++) {
                lead += Q[c] * row[c];
                next += Qm[c] * row[c];
                overhead += overhead_us[c] * row[c];
            }
        } else {
            lead = G;
        }
        double weight = lead - trail;
        trail = next;
        least = weight < least ? weight : least;
        /* Compensated: k terms may be many. */
        double term = overhead - lost, sum = carry + term;
        lost = (sum - carry) - term;
        carry = sum;
        term = weight - total_lost;
        sum = total + term;
        total_lost = (sum - total) - term;
        total = sum;
    }
    double overheads = g + carry;
    double free_bytes = message_bytes - (double)k * least_bytes;
    double error = 64.0 * DBL_EPSILON * (overheads + message_bytes * G);
    return overheads + least_bytes * total + least * (free_bytes > 0.0 ? free_bytes : 0.0) - error;
}
