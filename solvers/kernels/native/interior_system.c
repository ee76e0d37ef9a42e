#include "interior_state.h"

#include <string.h>

#include "blocks.h"

#define REGULAR 1e-12 /* share added to the diagonal of the Newton system */

/* D, its sum and the centred means of a chunk of steps. Centring twice keeps the covariances
   accurate where one cell outweighs the others by more digits than a double has. */
CLONES static void weigh(state *z, int64_t from, int64_t count)
{
    int64_t n = z->n, F = 2 + boundaries_of(z, from);
    double *restrict sum = z->sum_D + from;
    for (int64_t t = 0; t < count; t++)
        sum[t] = 0.0;
    for (int64_t c = 0; c < n; c++) {
        int64_t row = row_of(z, c, from);
        const double *p = z->p + row, *s = z->s + row;
        double *restrict D = z->D + c * CHUNK, *restrict recip = z->recip + row;
        for (int64_t t = 0; t < count; t++) {
            recip[t] = 1.0 / s[t];
            D[t] = p[t] * recip[t];
            sum[t] += D[t];
        }
    }
    for (int64_t f = 0; f < F; f++) {
        double *one = mean_of(z, f, from), *two = one + CHUNK;
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
    int64_t n = z->n, S = z->S, F = 2 + boundaries_of(z, from);
    double centred[MAX_F][CHUNK];
    memset(z->cov, 0, (size_t)(F * F * CHUNK) * sizeof(double));
    for (int64_t f = 0; f < F; f++)
        for (int64_t t = 0; t < count; t++)
            z->cf[f * S + from + t] = 0.0;
    for (int64_t c = 0; c < n; c++) {
        const double *p = z->p + row_of(z, c, from), *D = z->D + c * CHUNK;
        for (int64_t f = 0; f < F; f++) {
            const double *one = mean_of(z, f, from), *two = one + CHUNK;
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
    int64_t m = z->m, q = boundaries_of(z, from), F = 2 + q;
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

/* The waits that do not exist in a wide block, those without a multiplier: rows of the identity. */
static void pin_waits(state *z)
{
    int64_t m = z->m;
    for (int64_t t = 1; t < z->k - 1; t++)
        for (int64_t d = 1; z->waits[t] && d < m; d++) {
            if (z->o[(d - 1) * z->k + t] > 0.0)
                continue;
            double *here = z->diagonal + t * m * m, *before = z->upper + (t - 1) * m * m;
            double *behind = z->upper + t * m * m;
            for (int64_t e = 0; e < m; e++)
                here[d * m + e] = here[e * m + d] = before[e * m + d] = behind[d * m + e] = 0.0;
            here[d * m + d] = 1.0;
        }
}

/* What the repeated fragments add: one column beside the blocks, with its own corner. */
static void build_border(state *z)
{
    int64_t m = z->m, at = z->at, q = boundaries_of(z, at), F = 2 + q;
    double sum = z->sum_D[at], one = 0.0, two = 0.0, cov[MAX_F] = {0};
    double *here = z->border + at * m, *next = here + m;
    memset(z->border, 0, (size_t)(z->k * m) * sizeof(double));
    for (int64_t c = 0; c < z->n; c++)
        one += z->G[c] * z->p[cell_of(z, c, at)] * z->recip[cell_of(z, c, at)];
    one /= sum;
    for (int64_t c = 0; c < z->n; c++)
        two += (z->G[c] - one) * z->p[cell_of(z, c, at)] * z->recip[cell_of(z, c, at)];
    two /= sum;
    z->G_mean[0] = one;
    z->G_mean[1] = two;
    z->G_cov = 0.0;
    for (int64_t c = 0; c < z->n; c++) {
        double D = z->p[cell_of(z, c, at)] * z->recip[cell_of(z, c, at)], G = (z->G[c] - one) - two;
        z->G_cov += D * G * G;
        for (int64_t f = 0; f < F; f++) {
            const double *mean = mean_of(z, f, at - at % CHUNK) + at % CHUNK;
            cov[f] += D * G * ((z->E[f][c] - mean[0]) - mean[CHUNK]);
        }
    }
    here[0] = cov[0];
    next[0] = -cov[1];
    for (int64_t d = 0; d < q; d++) {
        here[1 + d] = z->o[d * z->k + at] > 0.0 ? -cov[2 + d] : 0.0;
        next[1 + d] = z->o[d * z->k + at + 1] > 0.0 ? cov[2 + d] : 0.0;
    }
    memcpy(z->bordered, z->border, (size_t)(z->k * m) * sizeof(double));
    sluice_blocks_solve(z->k, m, z->waits, z->diagonal, z->upper, z->inverse, z->bordered);
    z->rest_W = sluice_ip_mean_cost(z) + (z->capped ? z->U : 0.0) - z->lambda - z->W;
    z->G_cov += z->W / z->Y + (z->capped ? z->U / z->V : 0.0);
}

void sluice_ip_build(state *z)
{
    int64_t k = z->k, m = z->m;
    memset(z->diagonal, 0, (size_t)(k * m * m) * sizeof(double));
    for (int64_t from = 0; from < z->S; from += CHUNK) {
        int64_t count = count_of(z, from);
        weigh(z, from, count);
        covary(z, from, count);
        assemble(z, from, count);
    }
    sluice_ip_rows_of(z, z->rest_w, z->rest_o);
    for (int64_t t = 0; t < k; t++)
        z->rest_w[t] += (z->capped ? z->u[t] : 0.0) - z->lambda - z->w[t];
    if (z->q > 0)
        pin_waits(z);
    for (int64_t t = 0; t < k; t++)
        z->diagonal[t * m * m] += z->w[t] / z->y[t] + (z->capped ? z->u[t] / z->v[t] : 0.0);
    for (int64_t a = 0; a < z->span_count; a++) {
        int64_t d = z->spans[a].boundary;
        for (int64_t t = z->spans[a].first; t <= z->spans[a].last; t++) {
            int64_t i = d * k + t;
            z->rest_o[i] -= z->o[i];
            z->diagonal[t * m * m + (1 + d) * (m + 1)] += z->o[i] / z->r[i];
        }
    }
    for (int64_t t = 0; t < k; t++)
        for (int64_t d = 0; d < (z->waits[t] ? m : 1); d++)
            z->diagonal[t * m * m + d * (m + 1)] *= 1.0 + REGULAR;
    sluice_blocks_factor(k, m, z->waits, z->diagonal, z->upper, z->inverse);
    memset(z->ones, 0, (size_t)(k * m) * sizeof(double));
    for (int64_t t = 0; t < k; t++)
        z->ones[t * m] = 1.0;
    if (z->inner > 0.0)
        build_border(z);
}
