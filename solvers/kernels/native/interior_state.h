/* What the parts of the interior-point method share: see interior_point.h for the method. */
#ifndef SLUICE_INTERIOR_STATE_H
#define SLUICE_INTERIOR_STATE_H

#include "interior_point.h"
#include "portable.h"

/* Notation  k fragments, n stages, S = k-1 steps; step t leads from fragment t to fragment t+1.
   y (k)       bytes above the least size, in units of B'/k
   p, s (n, S) distribution of step t over the stages, and the slack of its row in the primal
   w (k)       slack of the byte rows; v, u (k) room below the cap and its multiplier
   r, o (q, k) waits at the boundaries, and the slack of their order rows; r of step pair
               (t-1, t) stands at block t, blocks 0 and k-1 have none
   Block t of the Newton system holds y_t and r_.t. Cells are stored in chunks of steps, each chunk
   stage by stage: inner loops run over steps, so that the compiler can vectorise them, and what is
   worked on together lies together. The last chunk is filled up with zeros. */

#define CHUNK 64
#define MAX_Q 63
#define MAX_F (MAX_Q + 2)
#define START_MU 0.03

INLINE double larger(double a, double b) { return a > b ? a : b; }

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
    double *p, *s, *goal, *recip;  /* cells; goal: the product wanted of each; 1/s */
    double *D;                     /* n x CHUNK */
    double *mean;                  /* of each function, a first and a second one */
    double *sum_D;                 /* S */
    double *T, *cf;                /* S; F x S: sums of the right side */
    double *y, *w, *goal_w;        /* k */
    double *v, *u, *goal_u;        /* k, where capped */
    double *rest_w, *rest_o;       /* k; q x k: what rounding has left of the rows */
    double *r, *o, *goal_o;        /* q x k, 0 where a fragment may not wait */
    const sluice_ip_span *spans;   /* where it may */
    int64_t span_count;
    unsigned char *waits;          /* k: whether a fragment may wait behind some boundary */
    unsigned char *near;           /* a chunk of steps: whether one beside them may */
    double *cov;                   /* F x F x CHUNK */
    double *diagonal, *upper, *inverse, *ones, *side, *border, *bordered;
    direction first, second;
} state;

/* Where a chunk's row of a stage begins (`from` is a multiple of CHUNK), and a single cell. */
INLINE int64_t row_of(const state *z, int64_t c, int64_t from) { return from * z->n + c * CHUNK; }

INLINE int64_t cell_of(const state *z, int64_t c, int64_t t)
{
    return row_of(z, c, t - t % CHUNK) + t % CHUNK;
}

INLINE int64_t cells_of(const state *z)
{
    return (z->S + CHUNK - 1) / CHUNK * CHUNK * z->n;
}

/* How many boundaries count in a chunk: where no fragment may wait the waits are all 0. */
INLINE int64_t boundaries_of(const state *z, int64_t from)
{
    return z->near[from / CHUNK] ? z->q : 0;
}

/* The first wait of a span among all, and how many it has. */
INLINE int64_t at_span(const state *z, int64_t a)
{
    return z->spans[a].boundary * z->k + z->spans[a].first;
}

INLINE int64_t length_of(const state *z, int64_t a)
{
    return z->spans[a].last - z->spans[a].first + 1;
}

/* The first mean of a function in a chunk; the second one follows it. */
INLINE double *mean_of(const state *z, int64_t f, int64_t from)
{
    return z->mean + 2 * (from * z->F + f * CHUNK);
}

INLINE int64_t count_of(const state *z, int64_t from)
{
    return z->S - from < CHUNK ? z->S - from : CHUNK;
}

/* interior_start.c: arrays laid out one after another (with a null pool it only counts), the scaled
   problem, the first iterate, and the rows that it must satisfy. */
int64_t sluice_ip_carve(state *z, double *first);
void sluice_ip_scale(state *z, const sluice_ip_problem *problem, double size, double unit);
void sluice_ip_start(state *z);
void sluice_ip_rows_of(const state *z, double *w, double *o);
double sluice_ip_mean_cost(const state *z);

/* interior_system.c: the Newton system at the iterate, factored; lambda's column as it is. */
void sluice_ip_build(state *z);

/* interior_steps.c: one iteration, and the two figures that say how far it is. */
double sluice_ip_complementarity(const state *z);
double sluice_ip_dual_objective(const state *z);
void sluice_ip_iterate(state *z, double sum, double pairs);

#endif
