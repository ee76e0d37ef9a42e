#include "interior_state.h"

#include <math.h>
#include <string.h>

#include "blocks.h"

#define BACK_OFF 0.995
#define GOOD_STEP 0.5 /* of the shorter of the two, below which a centrality corrector is tried */
#define STRETCH 1.3
#define ADDED 0.2

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

/* Solves for the step in y and the waits, side holding the right side; sets that of lambda. The first
   time lambda's own column is solved for, too. */
static void step_sizes(state *z, direction *go, int is_first)
{
    int64_t k = z->k, m = z->m;
    double total = 0.0, against = 0.0;
    if (is_first)
        sluice_blocks_solve_two(k, m, z->waits, z->diagonal, z->upper, z->inverse, z->side,
                                z->ones);
    else
        sluice_blocks_solve(k, m, z->waits, z->diagonal, z->upper, z->inverse, z->side);
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
    for (int64_t t = 0; t < k; t++)
        go->y[t] = z->side[t * m] + go->lambda * z->ones[t * m];
    for (int64_t a = 0; a < z->span_count; a++) {
        int64_t d = z->spans[a].boundary;
        for (int64_t t = z->spans[a].first; t <= z->spans[a].last; t++)
            go->r[d * k + t] = z->side[t * m + 1 + d] + go->lambda * z->ones[t * m + 1 + d];
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
        for (int64_t d = 0; z->waits[t] && d < z->q; d++)
            z->side[t * m + 1 + d] = 0.0;
    }
    for (int64_t a = 0; a < z->span_count; a++) {
        int64_t d = z->spans[a].boundary;
        const double *sums = z->cf + (2 + d) * S;
        for (int64_t t = z->spans[a].first; t <= z->spans[a].last; t++) {
            int64_t i = d * k + t;
            z->side[t * m + 1 + d] =
                sums[t] - sums[t - 1] + z->goal_o[i] / z->r[i] - z->o[i] - z->rest_o[i];
        }
    }
}

/* Minus the centred change of the rows' left sides for a chunk: what ds is, but for T / sum D. */
INLINE void row_change(const state *z, const direction *go, int64_t c, int64_t from, int64_t count,
                       double *out)
{
    int64_t k = z->k;
    const double *one = mean_of(z, 0, from), *two = one + CHUNK;
    const double *one_m = two + CHUNK, *two_m = one_m + CHUNK;
    const double *dy = go->y + from;
    double Q = z->E[0][c], Qm = z->E[1][c];
    for (int64_t t = 0; t < count; t++)
        out[t] = ((Qm - one_m[t]) - two_m[t]) * dy[t + 1] - ((Q - one[t]) - two[t]) * dy[t];
    for (int64_t d = 0; d < boundaries_of(z, from); d++) {
        const double *dr = go->r + d * k + from;
        double here = z->E[2 + d][c];
        one = mean_of(z, 2 + d, from);
        two = one + CHUNK;
        for (int64_t t = 0; t < count; t++)
            out[t] -= ((here - one[t]) - two[t]) * (dr[t + 1] - dr[t]);
    }
    if (z->inner > 0.0 && z->at >= from && z->at < from + count)
        out[z->at - from] -= ((z->G[c] - z->G_mean[0]) - z->G_mean[1]) * go->Y;
}

/* The affine direction: its products go into `goal`; its sums and longest steps are returned. */
CLONES static void affine_cells(state *z, const direction *go, steps *out)
{
    int64_t S = z->S;
    double ds[CHUNK];
    double worst_s[CHUNK] = {0}, worst_p[CHUNK] = {0}, a[CHUNK] = {0}, b[CHUNK] = {0},
           e[CHUNK] = {0};
    for (int64_t from = 0; from < S; from += CHUNK) {
        int64_t count = count_of(z, from);
        const double *sum_D = z->sum_D + from;
        for (int64_t c = 0; c < z->n; c++) {
            int64_t row = row_of(z, c, from);
            const double *p = z->p + row, *s = z->s + row, *recip = z->recip + row;
            double *restrict goal = z->goal + row;
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
        int64_t count = count_of(z, from), F = 2 + boundaries_of(z, from);
        double *T = z->T + from;
        for (int64_t t = 0; t < count; t++)
            T[t] = -1.0; /* the weights of a step sum to 1, whatever rounding has made of them */
        for (int64_t f = 0; f < F; f++)
            for (int64_t t = 0; t < count; t++)
                z->cf[f * S + from + t] = 0.0;
        for (int64_t c = 0; c < z->n; c++) {
            int64_t row = row_of(z, c, from);
            const double *p = z->p + row, *recip = z->recip + row, *goal = z->goal + row;
            for (int64_t t = 0; t < count; t++) {
                tp[t] = goal[t] * recip[t];
                T[t] += tp[t];
                tp[t] -= p[t];
            }
            for (int64_t f = 0; f < F; f++) {
                const double *one = mean_of(z, f, from), *two = one + CHUNK;
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
        int64_t count = count_of(z, from);
        const double *T = z->T + from, *sum_D = z->sum_D + from;
        for (int64_t t = 0; t < count; t++)
            mean_ds[t] = T[t] / sum_D[t];
        for (int64_t c = 0; c < z->n; c++) {
            int64_t row = row_of(z, c, from);
            const double *p = z->p + row, *recip = z->recip + row, *goal = z->goal + row;
            double *restrict ds = go->s + row, *restrict dp = go->p + row;
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
    for (int64_t a = 0; a < z->span_count; a++) {
        int64_t i = at_span(z, a);
        pair_steps(length_of(z, a), z->goal_o + i, z->r + i, go->r + i, 1.0, z->o + i, go->o + i,
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
        int64_t i = cell_of(z, c, z->at);
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
    step_sizes(z, go, 0);
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
    memset(z->goal, 0, (size_t)cells_of(z) * sizeof(double));
    repeated_sum(z);
    right_side(z);
    step_sizes(z, go, 1);
    go->size = (steps){1.0, 1.0, 0.0, 0.0, 0.0};
    affine_cells(z, go, &go->size);
    other_pairs(z, go);
    double primal = 1.0 / go->size.primal, dual = 1.0 / go->size.dual;
    double after = sum + primal * go->size.p_ds + dual * go->size.s_dp +
                   primal * dual * go->size.ds_dp;
    double share = larger(after, 0.0) / sum;
    double centre = share * share * share * sum / pairs;
    int64_t cells = cells_of(z);
    for (int64_t i = 0; i < cells; i++)
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
    int64_t cells = cells_of(z);
    for (int64_t i = 0; i < cells; i++) {
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
    for (int64_t a = 0; a < z->span_count; a++)
        for (int64_t i = at_span(z, a); i < at_span(z, a) + length_of(z, a); i++)
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

double sluice_ip_complementarity(const state *z)
{
    double sum = product(z->p, z->s, cells_of(z)) + product(z->y, z->w, z->k);
    if (z->capped)
        sum += product(z->u, z->v, z->k);
    for (int64_t a = 0; a < z->span_count; a++)
        sum += product(z->r + at_span(z, a), z->o + at_span(z, a), length_of(z, a));
    if (z->inner > 0.0)
        sum += z->Y * z->W + (z->capped ? z->U * z->V : 0.0);
    return sum;
}

/* lambda B' + overheads of the mixture of paths - cap times the multipliers. */
CLONES double sluice_ip_dual_objective(const state *z)
{
    double value = z->lambda * ((double)z->k + z->inner);
    for (int64_t c = 0; c < z->n; c++) {
        double sum = (double)(z->repeats - 1) * z->p[cell_of(z, c, z->at)], lanes[8] = {0};
        for (int64_t from = 0; from < z->S; from += CHUNK) { /* zeros fill the last one */
            const double *p = z->p + row_of(z, c, from);
            for (int64_t t = 0; t < CHUNK; t += 8)
                for (int64_t l = 0; l < 8; l++)
                    lanes[l] += p[t + l];
        }
        for (int64_t l = 0; l < 8; l++)
            sum += lanes[l];
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
    int64_t cells = cells_of(z), k = z->k;
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
    for (int64_t a = 0; a < z->span_count; a++) {
        int64_t i = at_span(z, a), count = length_of(z, a);
        move(z->r + i, go->r + i, count, primal);
        move(z->o + i, go->o + i, count, dual);
    }
}

void sluice_ip_iterate(state *z, double sum, double pairs)
{
    direction *go = &z->first, *other = &z->second;
    sluice_ip_build(z);
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
