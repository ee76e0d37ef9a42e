/* A node is a row of slots: fragments told apart, and groups of any number of others. Its program
   is a tableau in weights of the ends of regions; sets of regions that shrink go on from the optimum
   before, another row of slots begins anew. */
#include "groups.h"

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "simplex.h"

static const double ERROR = 16.0 * DBL_EPSILON;
static const double WHOLE = 1e-7;  /* weight that a solver may miss a whole one by */
static const double LITTLE = 1e-9; /* of the way to the target, where no exchange gains anything */
static const double STEEP = 4.0;   /* of how much is left, over the whole way to the target */
static const double DEEPER = 0.3;  /* of the way to the target, up to which a part is gone into */
static const double FEW = 8.0;     /* fragments that a node is divided by the number of */
static const uint64_t GROUP = UINT64_C(1) << 63; /* of a slot's mask: it is a group */
enum {
    MAX_SLOTS = 100,
    MAX_ENTRIES = 400000, /* numbers of a program; larger nodes keep the bound that they have */
    MAX_ROWS = 1200,
    MAX_COLUMNS = 10000,
    MAX_SIZES = 4096, /* of a cut near a node's optimum */
    MAX_NODES = 200000,
    BY_FRAGMENT = 4, /* divisions of each kind that are tried */
    BY_GROUP = 2,
    BY_COUNT = 4,
    FEW_EXCHANGES = 40,
    MANY_EXCHANGES = 4000
};

typedef struct {
    int64_t slots;
    int64_t min[SLUICE_TREE_MAX_REGIONS], max[SLUICE_TREE_MAX_REGIONS]; /* how many fragments have
                                region r or one above; r = 0: all of a cut */
    uint64_t mask[MAX_SLOTS]; /* regions, bit by bit; a row that begins and ends with fragments,
                                two groups never side by side */
} shape;

typedef struct {
    double bound;
    int64_t min, max; /* of a cut's fragments */
    shape *of;        /* as many slots as there are */
} node;

struct ends {
    double *low, *high;    /* (R) */
    double *at, *t, *tails; /* (V), (V, n), (V, n) sizes and costs of all ends */
};

struct sluice_groups {
    int64_t n, R, V, fewest, counts;
    double B, unit_bytes, unit_us, target, work;
    double *g, *G;
    struct ends inner, last;
    int64_t *region;
    const double *known; /* (counts) during a turn, µs */
    sluice_tableau own, part[2], kept[2];
    unsigned char *banned;
    double p[(MAX_SLOTS + 1) * 64], F[(MAX_SLOTS + 1) * 64];
    double *A, *weight; /* (slots, R) */
    double least[MAX_SLOTS], x[MAX_SLOTS], mu[SLUICE_TREE_MAX_REGIONS], nu;
    double *number; /* (slots, V) of groups */
    double exits[64];
    node *heap;
    int64_t nodes, room;
    double *closed; /* (counts) */
    double best_us, *best, *sizes;
    int64_t best_count;
};

static const struct ends *ends_of(const sluice_groups *w, const shape *a, int64_t slot)
{
    return slot == a->slots - 1 ? &w->last : &w->inner;
}

static int is_group(const shape *a, int64_t slot) { return (a->mask[slot] & GROUP) != 0; }

static int64_t singles_of(const shape *a)
{
    int64_t singles = 0;
    for (int64_t c = 0; c < a->slots; c++) singles += !is_group(a, c);
    return singles;
}

/* Variables: weights of a slot's ends, a group's twice; order, slack, fragments, bytes, counts. */
static int64_t weight_variable(const sluice_groups *w, int64_t slot, int64_t side)
{
    return (2 * slot + side) * w->V;
}

static int64_t order_variable(const sluice_groups *w, const shape *a, int64_t s, int64_t d)
{
    return 2 * a->slots * w->V + (s - 1) * (w->n - 1) + d; /* s = 1 .. slots - 2 */
}

static int64_t slack_variable(const sluice_groups *w, const shape *a, int64_t s, int64_t j)
{
    return 2 * a->slots * w->V + (a->slots - 2) * (w->n - 1) + (s - 1) * w->n + j;
}

static int64_t conv_variable(const sluice_groups *w, const shape *a, int64_t slot)
{
    return slack_variable(w, a, a->slots, 0) + slot; /* slots: that of the bytes */
}

/* What a count has above its least, or below its greatest. */
static int64_t count_variable(const sluice_groups *w, const shape *a, int64_t r, int is_max)
{
    return conv_variable(w, a, a->slots) + 1 + 2 * r + is_max;
}

/* Whether a least or greatest count says more than the sets of regions do. */
static int is_tied(const shape *a, int64_t r, int is_max)
{
    int64_t most = 0, fewest = 0;
    int is_open = 0;
    for (int64_t c = 0; c < a->slots; c++) {
        uint64_t mask = a->mask[c] & ~GROUP;
        if (is_group(a, c)) {
            is_open |= (mask >> r) != 0;
            continue;
        }
        most += (mask >> r) != 0, fewest += !(mask & ((UINT64_C(1) << r) - 1));
    }
    return is_max ? is_open || a->max[r] < most : a->min[r] > fewest;
}

/* ---- the program ---------------------------------------------------------------------------- */

static int new_tableau(sluice_tableau *t)
{
    t->A = malloc((size_t)MAX_ENTRIES * sizeof *t->A);
    t->b = malloc((size_t)MAX_ROWS * sizeof *t->b);
    t->basis = malloc((size_t)MAX_ROWS * sizeof *t->basis);
    t->outside = malloc((size_t)MAX_COLUMNS * sizeof *t->outside);
    return t->A && t->b && t->basis && t->outside;
}

static void free_tableau(sluice_tableau *t)
{
    free(t->A), free(t->b), free(t->basis), free(t->outside);
    *t = (sluice_tableau){0};
}

static void swap(sluice_tableau *one, sluice_tableau *other)
{
    sluice_tableau kept = *one;
    *one = *other, *other = kept;
}

/* The stage with the most to do at the hull of its own costs: where all steps begin. */
static int64_t slowest(const sluice_groups *w)
{
    int64_t stage = 0;
    double most = -1.0;
    for (int64_t j = 0; j < w->n; j++) {
        double rate = INFINITY;
        for (int64_t v = 0; v < w->V; v++)
            if (w->last.at[v] > 0.0) rate = fmin(rate, w->last.t[v * w->n + j] / w->last.at[v]);
        if (rate > most) most = rate, stage = j;
    }
    return stage;
}

static int64_t columns_of(const sluice_groups *w, const shape *a)
{
    int64_t columns = (a->slots - 2) * (w->n - 1) + a->slots - 1;
    for (int64_t c = 0; c < a->slots; c++)
        columns += (is_group(a, c) ? 4 : 2) * __builtin_popcountll(a->mask[c] & ~GROUP);
    return columns;
}

static int64_t rows_of(const sluice_groups *w, const shape *a)
{
    int64_t counts = 0;
    for (int64_t r = 0; r < w->R; r++) counts += is_tied(a, r, 0) + is_tied(a, r, 1);
    return (a->slots - 1) * (w->n - 1) + singles_of(a) + 1 + counts;
}

static int is_too_large(const sluice_groups *w, const shape *a)
{
    int64_t rows = rows_of(w, a), columns = columns_of(w, a) + 1;
    return rows >= MAX_ROWS || columns >= MAX_COLUMNS || (rows + 1) * columns > MAX_ENTRIES;
}

/* What an end's flow through a slot costs: `before` for the step ahead of it, `behind` for the one
   after it, to be added; of a group the side says which of its two rows. */
static void costs_of(const sluice_groups *w, const struct ends *of, int64_t v, int side,
                     double share, int64_t j, double *before, double *behind)
{
    double own = of->t[v * w->n + j], rest = of->tails[v * w->n + j] - own;
    if (side < 0) *before = own + rest, *behind = -rest;
    else if (side == 0) *before = own + rest * share, *behind = -rest * share;
    else *before = rest * share, *behind = own - rest * share;
}

/* Rows: slack of step s and stage j != ref, s by s; fragments; bytes; counts. All steps are in stage
   ref. A group's rows have the share that one of so many fragments has of what passes it. */
static void fill_tableau(sluice_groups *w, const shape *a, sluice_tableau *t)
{
    int64_t n = w->n, K = a->slots, ref = slowest(w), column = 0, singles = singles_of(a);
    int64_t first = (K - 1) * (n - 1), bytes = first + singles, own = 0;
    int64_t row_of[2 * SLUICE_TREE_MAX_REGIONS], counts = bytes + 1;
    for (int64_t r = 0; r < 2 * w->R; r++)
        row_of[r] = is_tied(a, r / 2, (int)(r % 2)) ? counts++ : -1;
    double share = 1.0 / (double)(a->max[0] > singles ? a->max[0] - singles : 1);
    t->rows = rows_of(w, a), t->columns = t->width = columns_of(w, a);
    double *A = t->A, *d = A + t->rows * t->width;
    memset(A, 0, (size_t)((t->rows + 1) * t->width) * sizeof *A);
    memset(t->b, 0, (size_t)(t->rows + 1) * sizeof *t->b);
    for (int64_t c = 0; c < K; c++) {
        const struct ends *of = ends_of(w, a, c);
        int grouped = is_group(a, c);
        for (int side = 0; side < 1 + grouped; side++)
            for (int64_t v = 0; v < w->V; v++) {
                double before, behind, ref_before, ref_behind;
                int kind = grouped ? side : -1;
                if (!(a->mask[c] >> w->region[v] & 1)) continue;
                t->outside[column] = weight_variable(w, c, side) + v;
                costs_of(w, of, v, kind, share, ref, &ref_before, &ref_behind);
                for (int64_t j = 0, r = 0; j < n; j++) {
                    if (j == ref) continue;
                    costs_of(w, of, v, kind, share, j, &before, &behind);
                    if (c >= 1)
                        A[((c - 1) * (n - 1) + r) * t->width + column] = before - ref_before;
                    if (c <= K - 2)
                        A[(c * (n - 1) + r) * t->width + column] = behind - ref_behind;
                    r++;
                }
                if (!grouped) A[(first + own) * t->width + column] = 1.0;
                for (int64_t r = 0; r < 2 * (w->region[v] + 1); r++)
                    if (row_of[r] >= 0) A[row_of[r] * t->width + column] = r % 2 ? 1.0 : -1.0;
                A[bytes * t->width + column] = of->at[v] / w->B;
                d[column] = (c == 0 ? of->tails[v * n] : ref_before) +
                            (c <= K - 2 ? ref_behind : 0.0);
                column++;
            }
        if (!grouped) {
            t->basis[first + own] = conv_variable(w, a, c);
            t->b[first + own++] = 1.0;
        }
    }
    for (int64_t s = 1; s <= K - 2; s++) {
        for (int64_t c = 0; c < n - 1; c++, column++) {
            t->outside[column] = order_variable(w, a, s, c);
            for (int64_t j = 0, r = 0; j < n; j++) {
                if (j == ref) continue;
                double value = (double)(c >= j) - (double)(c >= ref);
                A[((s - 1) * (n - 1) + r) * t->width + column] = value;
                A[(s * (n - 1) + r) * t->width + column] = -value;
                r++;
            }
        }
    }
    for (int64_t s = 1; s <= K - 1; s++, column++) {
        t->outside[column] = slack_variable(w, a, s, ref);
        d[column] = 1.0;
        for (int64_t r = 0; r < n - 1; r++)
            A[((s - 1) * (n - 1) + r) * t->width + column] = -1.0;
    }
    t->columns = column; /* regions of one size have one end */
    for (int64_t s = 1; s <= K - 1; s++)
        for (int64_t j = 0, r = 0; j < n; j++)
            if (j != ref) t->basis[(s - 1) * (n - 1) + r++] = slack_variable(w, a, s, j);
    t->basis[bytes] = conv_variable(w, a, K), t->b[bytes] = 1.0;
    for (int64_t r = 0; r < 2 * w->R; r++) {
        if (row_of[r] < 0) continue;
        t->basis[row_of[r]] = count_variable(w, a, r / 2, (int)(r % 2));
        t->b[row_of[r]] = r % 2 ? (double)a->max[r / 2] : -(double)a->min[r / 2];
    }
}

/* One more count that the tableau must keep to, or another end of it. */
static int hold_count(const sluice_groups *w, const shape *a, sluice_tableau *t, int64_t r,
                      int is_max, int64_t before)
{
    int64_t variable = count_variable(w, a, r, is_max), weights = 2 * a->slots * w->V;
    double sign = is_max ? 1.0 : -1.0, by = sign * (double)((is_max ? a->max : a->min)[r] - before);
    for (int64_t i = 0; i < t->rows; i++) {
        if (t->basis[i] != variable) continue;
        t->b[i] += by;
        return 1;
    }
    for (int64_t c = 0; c < t->columns; c++) {
        if (t->outside[c] != variable) continue;
        for (int64_t i = 0; i < t->rows; i++) t->b[i] += t->A[i * t->width + c] * by;
        t->b[t->rows] -= t->A[t->rows * t->width + c] * by;
        return 1;
    }
    if (t->rows + 2 >= MAX_ROWS || (t->rows + 2) * t->width > MAX_ENTRIES) return 0;
    int64_t added = t->rows++;
    double *own = t->A + added * t->width;
    memcpy(own + t->width, own, (size_t)t->width * sizeof *own); /* the reduced costs are last */
    t->b[added + 1] = t->b[added];
    t->b[added] = sign * (double)(is_max ? a->max : a->min)[r], t->basis[added] = variable;
    for (int64_t c = 0; c < t->columns; c++) {
        int64_t of = t->outside[c];
        own[c] = of < weights && w->region[of % w->V] >= r ? sign : 0.0;
    }
    for (int64_t i = 0; i < added; i++) {
        int64_t of = t->basis[i];
        if (of >= weights || w->region[of % w->V] < r) continue;
        for (int64_t c = 0; c < t->columns; c++) own[c] -= sign * t->A[i * t->width + c];
        t->b[added] -= sign * t->b[i];
    }
    return 1;
}

/* The price of a byte at which some group's cheapest size costs nothing, or some fragment has two
   sizes alike, and the variable that the row of bytes has for it; -1 where there is none. */
static int64_t first_price(const sluice_groups *w, const shape *a, const sluice_tableau *t,
                           double *price)
{
    const double *d = t->A + t->rows * t->width;
    int64_t found = -1, weights = 2 * a->slots * w->V;
    *price = INFINITY;
    for (int64_t c = 0; c < t->columns; c++) {
        int64_t variable = t->outside[c], slot = variable / (2 * w->V), v = variable % w->V;
        if (variable >= weights || !is_group(a, slot)) continue;
        double here = d[c] / w->inner.at[v];
        if (here < *price) *price = here, found = variable;
    }
    if (found >= 0) return found;
    for (int64_t slot = 0; slot < a->slots && found < 0; slot++) {
        const double *at = ends_of(w, a, slot)->at;
        int64_t from = -1, base = weight_variable(w, slot, 0);
        for (int64_t c = 0; c < t->columns; c++) { /* columns of a slot ascend with its sizes */
            int64_t v = t->outside[c] - base;
            if (v < 0 || v >= w->V) continue;
            if (from < 0) from = c;
            int64_t first = t->outside[from] - base;
            if (at[v] <= at[first]) continue;
            double here = (d[c] - d[from]) / (at[v] - at[first]);
            if (here < *price) *price = here, found = t->outside[c];
        }
    }
    return found;
}

/* Every fragment at the size that is cheapest at this price. */
static void first_basis(sluice_groups *w, const shape *a, sluice_tableau *t)
{
    double price;
    int64_t K = a->slots, row = (K - 1) * (w->n - 1), more = first_price(w, a, t, &price);
    if (more < 0) price = 0.0;
    for (int64_t slot = 0; slot < K; slot++) {
        const double *at = ends_of(w, a, slot)->at, *d = t->A + t->rows * t->width;
        int64_t base = weight_variable(w, slot, 0), found = -1;
        double least = INFINITY;
        if (is_group(a, slot)) continue;
        for (int64_t c = 0; c < t->columns; c++) {
            int64_t v = t->outside[c] - base;
            if (v < 0 || v >= w->V || t->outside[c] == more) continue;
            double value = d[c] - price * at[v];
            if (value < least) least = value, found = c;
        }
        sluice_exchange(t, row++, found);
        sluice_drop_column(t, found);
    }
    if (more >= 0) sluice_exchange(t, row, sluice_column_of(t, more));
}

static void ban(sluice_groups *w, const shape *a)
{
    int64_t variables = count_variable(w, a, w->R, 0);
    memset(w->banned, 0, (size_t)variables);
    for (int64_t c = 0; c < a->slots; c++)
        for (int64_t v = 0; v < w->V; v++) {
            unsigned char out = !(a->mask[c] >> w->region[v] & 1);
            w->banned[weight_variable(w, c, 0) + v] = w->banned[weight_variable(w, c, 1) + v] = out;
        }
    for (int64_t c = 0; c <= a->slots; c++) w->banned[conv_variable(w, a, c)] = 1;
}

/* ---- the bound ------------------------------------------------------------------------------ */

/* The dual of a tableau, its running sums never rising from step to step. Returns the price. */
static double dual_of(sluice_groups *w, const shape *a, const sluice_tableau *t)
{
    int64_t n = w->n, K = a->slots, first = slack_variable(w, a, 1, 0);
    int64_t bytes = conv_variable(w, a, K);
    const double *d = t->A + t->rows * t->width;
    double price = 0.0;
    memset(w->p, 0, (size_t)((K + 1) * n) * sizeof *w->p);
    memset(w->mu, 0, sizeof w->mu);
    for (int64_t c = 0; c < t->columns; c++) {
        int64_t variable = t->outside[c];
        if (variable == bytes) price = -d[c] / w->B;
        else if (variable >= first && variable < first + (K - 1) * n)
            w->p[n + variable - first] = fmax(0.0, d[c]);
        else if (variable > bytes + 2) {
            int64_t count = variable - bytes - 1;
            w->mu[count / 2] += count % 2 ? -fmax(0.0, d[c]) : fmax(0.0, d[c]);
        }
    }
    for (int64_t j = 0; j < n; j++) w->F[j] = 1.0, w->F[K * n + j] = 0.0;
    for (int64_t s = 1; s < K; s++) {
        double sum = 0.0, so_far = 0.0;
        for (int64_t j = 0; j < n; j++) sum += w->p[s * n + j];
        for (int64_t j = 0; j < n; j++) {
            so_far += sum > 0.0 ? w->p[s * n + j] / sum : (double)(j == 0);
            w->F[s * n + j] = j == n - 1 ? 1.0 : fmin(fmin(so_far, 1.0), w->F[(s - 1) * n + j]);
        }
    }
    return price;
}

/* Flow through stage j of a slot: of a fragment, or of one of a group's fragments at its first
   (side 0) or last (side 1) if it has so many that each has this share. */
static double flow_of(const sluice_groups *w, int64_t slot, int64_t j, int side, double share)
{
    const double *before = w->F + slot * w->n, *behind = before + w->n;
    double passing = fmax(0.0, (j ? before[j - 1] - behind[j - 1] : 0.0));
    if (side < 0) return fmax(0.0, before[j] - (j ? behind[j - 1] : 0.0));
    const double *own = side ? behind : before;
    return fmax(0.0, own[j] - (j ? own[j - 1] : 0.0)) + passing * share;
}

/* A of region q, errors deducted. */
static double priced(const sluice_groups *w, const double *f, const struct ends *of, int64_t q,
                     double price)
{
    double a = 0.0, s = 0.0;
    for (int64_t j = 0; j < w->n; j++)
        a += f[j] * w->g[q * w->n + j], s += f[j] * w->G[q * w->n + j];
    double slope = s - price, error = ERROR * (a + (s + fabs(price)) * of->high[q]) * (double)w->n;
    return a + fmin(slope * of->low[q], slope * of->high[q]) - error;
}

/* What the dual of a tableau proves of the cuts of a shape; A, less mu, least and nu are those of
   docs/theory.md, and what rounding may take is deducted. */
static double proven_of(sluice_groups *w, const shape *a, const sluice_tableau *t)
{
    int64_t n = w->n, singles = singles_of(a);
    double price = dual_of(w, a, t), total = price * w->B, f[64], cap = INFINITY;
    double share = 1.0 / (double)(a->max[0] > singles ? a->max[0] - singles : 1);
    double error = ERROR * fabs(total), size = 0.0;
    for (int64_t r = 1; r < w->R; r++) { /* mu[0] is 0: what it would be is nu */
        double nu = w->mu[r], number = (double)(nu > 0.0 ? a->min[r] : a->max[r]);
        total += nu * number, error += ERROR * fabs(nu) * number;
        w->mu[r] += w->mu[r - 1], size += fabs(nu);
    }
    for (int64_t c = 0; c < a->slots; c++) {
        int grouped = is_group(a, c);
        double least = INFINITY;
        for (int side = grouped ? 0 : -1; side < 2 * grouped; side++) {
            for (int64_t j = 0; j < n; j++) f[j] = flow_of(w, c, j, side, share);
            for (int64_t q = 0; q < w->R; q++) {
                if (!(a->mask[c] >> q & 1)) continue;
                double value = priced(w, f, ends_of(w, a, c), q, price) - w->mu[q] - ERROR * size;
                double *A = w->A + c * w->R + q;
                *A = side == 1 ? fmin(*A, value) : value;
                least = fmin(least, *A);
            }
        }
        w->least[c] = least;
        if (grouped) cap = fmin(cap, least);
        else total += least, error += ERROR * fabs(least);
    }
    w->nu = cap;
    if (singles < a->slots) {
        double number = (double)(cap > 0.0 ? a->min[0] - singles : a->max[0] - singles);
        total += cap * number, error += ERROR * fabs(cap) * number;
    }
    return total - error;
}

/* ---- shapes --------------------------------------------------------------------------------- */

static uint64_t from_region(int64_t r) { return ~((UINT64_C(1) << r) - 1) & ~GROUP; }

/* What sets of regions and counts say of each other; 0 where no cut is left. */
static int counted(const sluice_groups *w, shape *a, int64_t singles)
{
    for (int64_t r = w->R - 1; r >= 0; r--) {
        int64_t most = 0, fewest = 0;
        int is_open = 0;
        if (r && a->min[r] >= a->max[0])
            for (int64_t c = 0; c < a->slots; c++) a->mask[c] &= from_region(r) | GROUP;
        for (int64_t c = 0; c < a->slots; c++) {
            uint64_t mask = a->mask[c] & ~GROUP;
            if (is_group(a, c)) is_open |= (mask >> r) != 0;
            else most += (mask >> r) != 0, fewest += !(mask & ~from_region(r));
        }
        if (a->max[r] <= fewest && r) /* no other may have these regions */
            for (int64_t c = 0; c < a->slots; c++)
                if (is_group(a, c) || a->mask[c] & ~from_region(r)) a->mask[c] &= ~from_region(r);
        most += is_open && a->max[0] > singles ? a->max[0] - singles : 0;
        if (a->min[r] < fewest) a->min[r] = fewest;
        if (r < w->R - 1 && a->min[r] < a->min[r + 1]) a->min[r] = a->min[r + 1];
        if (a->max[r] > most) a->max[r] = most;
    }
    for (int64_t r = 0; r < w->R; r++) {
        if (r && a->max[r] > a->max[r - 1]) a->max[r] = a->max[r - 1];
        if (a->min[r] > a->max[r]) return 0;
    }
    return 1;
}

/* The same without slots that have nothing, and with what sizes, regions and counts say of each
   other; 0 where no cut is left. */
static int settled(const sluice_groups *w, shape *a)
{
    for (int pass = 0; pass < 3; pass++) {
        int64_t kept = 0, singles = singles_of(a);
        if (!counted(w, a, singles)) return 0;
        for (int64_t c = 0; c < a->slots; c++) {
            uint64_t mask = a->mask[c] & ~GROUP;
            if (!mask && !is_group(a, c)) return 0;
            if (is_group(a, c) && (!mask || a->max[0] <= singles)) continue;
            a->mask[kept++] = a->mask[c];
        }
        a->slots = kept;
        int grouped = singles < kept;
        if (!grouped && a->max[0] > singles) a->max[0] = singles;
        double lows = 0.0, highs = 0.0, low = INFINITY, high = 0.0;
        for (int64_t c = 0; c < a->slots; c++) {
            const struct ends *of = ends_of(w, a, c);
            uint64_t mask = a->mask[c] & ~GROUP;
            double here = of->low[__builtin_ctzll(mask)];
            double there = of->high[63 - __builtin_clzll(mask)];
            if (is_group(a, c)) low = fmin(low, here), high = fmax(high, there);
            else lows += here, highs += there;
        }
        if (lows > w->B) return 0;
        if (grouped) {
            double most = floor((w->B - lows) / low + 1e-9);
            double needed = ceil((w->B - highs) / high - 1e-9);
            if (most < (double)(a->max[0] - singles)) a->max[0] = singles + (int64_t)most;
            if (needed > (double)(a->min[0] - singles)) a->min[0] = singles + (int64_t)needed;
            lows += (double)(a->min[0] - singles) * low;
            highs += (double)(a->max[0] - singles) * high;
        }
        while (a->min[0] <= a->max[0] && w->known[a->min[0] - w->fewest] >= w->target) a->min[0]++;
        while (a->min[0] <= a->max[0] && w->known[a->max[0] - w->fewest] >= w->target) a->max[0]--;
        if (a->min[0] > a->max[0] || lows > w->B * (1.0 + 1e-12)) return 0;
        if (highs < w->B * (1.0 - 1e-12)) return 0;
        for (int64_t c = 0; c < a->slots; c++) {
            const struct ends *of = ends_of(w, a, c);
            uint64_t mask = a->mask[c] & ~GROUP;
            int in_group = is_group(a, c);
            double least = in_group ? 0.0 : of->low[__builtin_ctzll(mask)];
            double most = in_group ? 0.0 : of->high[63 - __builtin_clzll(mask)];
            if (in_group && a->min[0] > singles) least = low;
            for (uint64_t left = mask; left; left &= left - 1) {
                int64_t q = __builtin_ctzll(left);
                int is_out = lows - least + of->low[q] > w->B * (1.0 + 1e-12);
                is_out |= !in_group && highs - most + of->high[q] < w->B * (1.0 - 1e-12);
                if (is_out) a->mask[c] &= ~(UINT64_C(1) << q);
            }
            if (!in_group && !(a->mask[c] & ~GROUP)) return 0;
        }
    }
    int64_t singles = singles_of(a);
    for (int64_t c = 0; c < a->slots; c++)
        if (!(a->mask[c] & ~GROUP)) return settled(w, a); /* a group that has lost all */
    return counted(w, a, singles);
}

/* Leave out the regions with which the bound reaches the target. 1 where any was. */
static int tightened(const sluice_groups *w, shape *a, double bound)
{
    double short_of = (w->target - bound) * (1.0 + 1e-9) + 1e-12;
    int changed = 0;
    for (int64_t c = 0; c < a->slots; c++) {
        double least = is_group(a, c) ? w->nu : w->least[c];
        for (int64_t q = 0; q < w->R; q++)
            if (a->mask[c] >> q & 1 && w->A[c * w->R + q] - least > short_of)
                a->mask[c] &= ~(UINT64_C(1) << q), changed = 1;
    }
    return changed;
}

/* The same with a fragment told apart in a group: the first or the last that has one of these
   regions. 0 where there is no room. */
static int certain_of(const shape *a, int64_t slot, uint64_t side, int is_last, shape *out)
{
    uint64_t all = a->mask[slot], others = all & ~side;
    if (a->slots + 2 > MAX_SLOTS) return 0;
    memcpy(out->mask, a->mask, (size_t)slot * sizeof *a->mask);
    out->mask[slot] = is_last ? all : others;
    out->mask[slot + 1] = all & side & ~GROUP;
    out->mask[slot + 2] = is_last ? others : all;
    memcpy(out->mask + slot + 3, a->mask + slot + 1,
           (size_t)(a->slots - slot - 1) * sizeof *a->mask);
    out->slots = a->slots + 2;
    return 1;
}

/* ---- cuts ----------------------------------------------------------------------------------- */

static int64_t region_of(const sluice_groups *w, double size)
{
    int64_t q = 0;
    while (q < w->R - 1 && size > w->last.high[q]) q++;
    return q;
}

static void offer(sluice_groups *w, const double *size, int64_t count)
{
    int64_t n = w->n;
    memset(w->exits, 0, (size_t)n * sizeof *w->exits);
    for (int64_t i = 0; i < count; i++) {
        int64_t q = region_of(w, size[i]);
        double before = 0.0;
        if (!(size[i] >= w->last.low[q] && size[i] <= w->last.high[q])) return;
        for (int64_t j = 0; j < n; j++) {
            before = fmax(before, w->exits[j]) + w->g[q * n + j] + w->G[q * n + j] * size[i];
            w->exits[j] = before;
        }
    }
    if (w->exits[n - 1] >= w->best_us) return;
    w->best_us = w->exits[n - 1], w->best_count = count;
    memcpy(w->best, size, (size_t)count * sizeof *size);
}

/* A group's whole numbers of sizes, one size after the other or each of them spread evenly. Returns
   how many sizes there are with them; above MAX_SIZES where there is no room. */
static int64_t in_order(sluice_groups *w, const double *at, double *left, int is_spread,
                        int64_t count)
{
    double total = 0.0, whole[2 * SLUICE_TREE_MAX_REGIONS];
    for (int64_t v = 0; v < w->V; v++) whole[v] = left[v], total += left[v];
    if (total > (double)(MAX_SIZES - count)) return MAX_SIZES + 1;
    for (double step = 0.5; step < total; step += 1.0) {
        int64_t next = -1;
        double most = -INFINITY;
        for (int64_t v = 0; v < w->V; v++) {
            double behind = is_spread ? step * whole[v] / total - (whole[v] - left[v]) : -(double)v;
            if (left[v] >= 1.0 && behind > most) most = behind, next = v;
        }
        if (next < 0) break;
        left[next] -= 1.0, w->sizes[count++] = at[next];
    }
    return count;
}

/* Whole numbers of each end in a group; positions rounded to units. The end that has most bytes
   takes what is left, of fragments that do not leave its region. */
static void offer_near(sluice_groups *w, const shape *a, int is_spread)
{
    int64_t count = 0, main = -1;
    double most = 0.0, rest = w->B, position = 0.0, before = 0.0;
    for (int64_t c = 0; c < a->slots; c++) {
        if (!is_group(a, c)) rest -= w->x[c];
        for (int64_t v = 0; v < w->V && is_group(a, c); v++) {
            double here = w->number[c * w->V + v] * w->inner.at[v];
            if (here > most) most = here, main = c * w->V + v;
            rest -= rint(w->number[c * w->V + v]) * w->inner.at[v];
        }
    }
    double each = 1.0, number = 0.0;
    if (main >= 0) {
        int64_t v = main % w->V;
        int is_low = v == w->V - 1 || w->region[v + 1] == w->region[v];
        each = w->inner.at[v], rest += rint(w->number[main]) * each;
        number = fmax(1.0, is_low ? floor(rest / each + WHOLE) : ceil(rest / each - WHOLE));
        if (!(rest > 0.0)) return;
        each = rest / number;
    }
    for (int64_t c = 0; c < a->slots; c++) {
        double at[2 * SLUICE_TREE_MAX_REGIONS], left[2 * SLUICE_TREE_MAX_REGIONS];
        for (int64_t v = 0; v < w->V; v++) {
            int is_main = c * w->V + v == main;
            at[v] = is_main ? each : w->inner.at[v];
            left[v] = is_main ? number : rint(w->number[c * w->V + v]);
        }
        if (is_group(a, c)) count = in_order(w, at, left, is_spread, count);
        if (count >= MAX_SIZES) return;
        if (!is_group(a, c)) w->sizes[count++] = w->x[c];
    }
    if (count < w->fewest || count >= w->fewest + w->counts) return;
    for (int64_t i = 0; i < count; i++) {
        position += w->sizes[i];
        double here = w->unit_bytes * floor(position / w->unit_bytes + 0.5);
        if (i == count - 1) here = w->B;
        w->sizes[i] = here - before;
        before = here;
    }
    offer(w, w->sizes, count);
}

/* ---- divisions ------------------------------------------------------------------------------ */

static void read_weights(sluice_groups *w, const shape *a, const sluice_tableau *t)
{
    int64_t K = a->slots, V = w->V;
    memset(w->weight, 0, (size_t)(K * w->R) * sizeof *w->weight);
    memset(w->number, 0, (size_t)(K * V) * sizeof *w->number);
    memset(w->x, 0, sizeof w->x);
    for (int64_t r = 0; r < t->rows; r++) {
        int64_t variable = t->basis[r];
        if (variable >= 2 * K * V || t->b[r] <= 0.0) continue;
        int64_t c = variable / (2 * V), v = variable % V;
        w->weight[c * w->R + w->region[v]] += t->b[r];
        w->number[c * V + v] += t->b[r];
        w->x[c] += t->b[r] * ends_of(w, a, c)->at[v];
    }
}

/* Of a slot's regions; of a group by the first or the last that has some; of a count. */
enum { REGIONS, FIRST, LAST, COUNT };

typedef struct {
    double score;
    int64_t slot;  /* or the count of the first part at most */
    uint64_t side; /* regions of the second part; or r of the count */
    int kind;
} division;

static void enter(division *list, int64_t *count, int64_t most, division one)
{
    int64_t place = *count < most ? (*count)++ : most;
    if (place == most && list[place - 1].score >= one.score) return;
    if (place == most) place--;
    for (; place > 0 && list[place - 1].score < one.score; place--) list[place] = list[place - 1];
    list[place] = one;
}

static double gained(const sluice_groups *w, const sluice_tableau *t, int64_t slot, int64_t q,
                     double room)
{
    double side[2] = {0.0, 0.0};
    int64_t first = weight_variable(w, slot, 0), behind = first + w->V, middle = first;
    while (middle < behind && w->region[middle - first] < q) middle++;
    for (int64_t r = 0; r < t->rows; r++) {
        int64_t variable = t->basis[r];
        if (variable < first || variable >= behind || t->b[r] <= WHOLE) continue;
        int above = variable >= middle; /* it must leave where the sizes are below */
        int64_t from = above ? middle : first, to = above ? behind : middle;
        double gain = sluice_gained_by(t, w->banned, r, from, to);
        side[above] = fmax(side[above], fmin(gain, room));
    }
    return fmin(side[0], side[1]) + 0.2 * fmax(side[0], side[1]);
}

/* Fragments whose weight is in several regions. */
static int64_t of_fragments(const sluice_groups *w, const shape *a, const sluice_tableau *t,
                            double room, division *out)
{
    int64_t count = 0;
    for (int64_t c = 0; c < a->slots; c++) {
        double above = 0.0;
        for (int64_t q = w->R - 1; q > 0 && !is_group(a, c); q--) {
            above += w->weight[c * w->R + q];
            double away = fmin(above, 1.0 - above);
            if (away <= WHOLE || !(w->weight[c * w->R + q] > 0.0)) continue;
            double gain = gained(w, t, c, q, room) + LITTLE * room * away;
            division one = {gain, c, from_region(q), REGIONS};
            enter(out, &count, BY_FRAGMENT, one);
        }
    }
    return count;
}

/* Groups by what the fragments of some regions, few of its own, would pay beyond if told apart. */
static int64_t of_groups(const sluice_groups *w, const shape *a, division *out)
{
    int64_t count = 0, n = w->n, fullest = -1;
    double most = WHOLE;
    for (int64_t c = 0; c < a->slots; c++) {
        double number[64] = {0.0}, paid[64] = {0.0}, total = 0.0, below = 0.0, paid_below = 0.0;
        double paid_all = 0.0;
        uint64_t mask = a->mask[c] & ~GROUP;
        if (!is_group(a, c)) continue;
        for (int64_t v = 0; v < w->V; v++) {
            double here = w->number[c * w->V + v], beyond = 0.0;
            if (!(here > 0.0)) continue;
            for (int64_t j = 0; j < n; j++) {
                const double *b = w->F + c * n, *e = b + n;
                double mean = 0.5 * (b[j] - (j ? b[j - 1] : 0.0) + e[j] - (j ? e[j - 1] : 0.0));
                beyond += (1.0 - mean) * w->inner.t[v * n + j];
            }
            number[w->region[v]] += here, total += here;
            paid[w->region[v]] += here * beyond, paid_all += here * beyond;
        }
        if (total > most) most = total, fullest = c;
        if (!(total > WHOLE)) continue;
        if (!(mask & (mask - 1))) {
            double each = paid_all / total * fmin(1.0, total);
            enter(out, &count, BY_GROUP, (division){each, c, mask, FIRST});
            continue;
        }
        for (int64_t r = 1; r < w->R; r++) {
            uint64_t under = (UINT64_C(1) << r) - 1;
            below += number[r - 1], paid_below += paid[r - 1];
            if (!(mask & under) || !(mask & ~under)) continue;
            int is_above = total - below <= below;
            double part = is_above ? total - below : below;
            double each = (is_above ? paid_all - paid_below : paid_below) / part;
            if (part <= WHOLE || number[is_above ? r : r - 1] <= WHOLE) continue;
            uint64_t side = is_above ? mask & ~under : mask & under;
            enter(out, &count, BY_GROUP, (division){each * fmin(1.0, part), c, side, FIRST});
        }
    }
    if (!count && fullest >= 0)
        out[count++] = (division){most, fullest, a->mask[fullest] & ~GROUP, FIRST};
    return count;
}

/* Counts that are not whole: that of all, and those of few. */
static int64_t of_counts(const sluice_groups *w, const shape *a, division *out)
{
    int64_t count = 0;
    double number = 0.0, above[SLUICE_TREE_MAX_REGIONS + 1] = {0.0};
    for (int64_t r = w->R - 1; r >= 0; r--) {
        above[r] = above[r + 1];
        for (int64_t c = 0; c < a->slots; c++) above[r] += w->weight[c * w->R + r];
    }
    number = above[0];
    if (singles_of(a) < a->slots && a->min[0] < a->max[0]) {
        double at = fmin(fmax(floor(number), (double)a->min[0]), (double)(a->max[0] - 1));
        out[count++] = (division){0.0, (int64_t)at, 0, COUNT};
    }
    for (int64_t r = 1; r < w->R && count < BY_COUNT; r++) {
        double at = floor(above[r]), off = fabs(above[r] - rint(above[r]));
        if (off <= 1e-6 * number || above[r - 1] - above[r] <= WHOLE || above[r] >= FEW) continue;
        if (at < (double)a->min[r] || at >= (double)a->max[r]) continue;
        out[count++] = (division){0.0, (int64_t)at, (uint64_t)r, COUNT};
    }
    return count;
}

/* ---- the tree ------------------------------------------------------------------------------- */

/* Solves the tableau for the shape; the bound proven. */
static double bounded(sluice_groups *w, sluice_tableau *t, const shape *a, int64_t exchanges,
                      int *ended)
{
    int64_t left = exchanges;
    ban(w, a);
    *ended = sluice_dual_simplex(t, w->banned, w->target * (1.0 + 1e-9) + 1e-12, &left);
    w->work -= (double)((exchanges - left + 1) * t->rows * t->columns);
    return proven_of(w, a, t);
}

static double begun(sluice_groups *w, const shape *a, sluice_tableau *t, int *ended)
{
    fill_tableau(w, a, t);
    first_basis(w, a, t);
    return bounded(w, t, a, MANY_EXCHANGES, ended);
}

static void close_node(sluice_groups *w, double bound, const shape *a)
{
    for (int64_t k = a->min[0]; k <= a->max[0]; k++)
        w->closed[k - w->fewest] = fmin(w->closed[k - w->fewest], bound);
}

static void push(sluice_groups *w, double bound, const shape *a)
{
    size_t size = offsetof(shape, mask) + (size_t)a->slots * sizeof *a->mask;
    shape *of = NULL;
    if (bound >= w->target) return;
    if (w->nodes == w->room) {
        int64_t room = w->room ? 2 * w->room : 256;
        node *heap = room > MAX_NODES ? NULL : realloc(w->heap, (size_t)room * sizeof *heap);
        if (heap) w->heap = heap, w->room = room;
    }
    if (w->nodes < w->room) of = malloc(size);
    if (!of) {
        close_node(w, bound, a); /* its bound holds, but it is not divided */
        return;
    }
    memcpy(of, a, size);
    int64_t at = w->nodes++;
    while (at > 0 && w->heap[(at - 1) / 2].bound > bound) {
        w->heap[at] = w->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    w->heap[at] = (node){bound, a->min[0], a->max[0], of};
}

static node pop(sluice_groups *w)
{
    node first = w->heap[0], last = w->heap[--w->nodes];
    int64_t at = 0;
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= w->nodes) break;
        if (child + 1 < w->nodes && w->heap[child + 1].bound < w->heap[child].bound) child++;
        if (w->heap[child].bound >= last.bound) break;
        w->heap[at] = w->heap[child];
        at = child;
    }
    w->heap[at] = last;
    return first;
}

static double left_of(const sluice_groups *w, double value, double bound)
{
    if (value >= w->target) return 0.0;
    return exp(STEEP * (w->target - value) / (w->target - bound));
}

/* A part of the node: from its tableau where only sets of regions and counts shrink, or anew. Its
   bound. */
static double part_of(sluice_groups *w, const shape *a, division by, int side, shape *part,
                      double bound, sluice_tableau *in)
{
    int ended, is_max = !side;
    if (!settled(w, part)) return w->target;
    if (part->slots == a->slots && !(by.kind == COUNT && !by.side)) {
        ban(w, part);
        sluice_copy_tableau(&w->own, w->banned, conv_variable(w, a, a->slots), in);
        w->work -= (double)(in->rows * in->columns);
        int64_t r = (int64_t)by.side, before = by.kind == COUNT ? (is_max ? a->max : a->min)[r] : 0;
        if (by.kind != COUNT || hold_count(w, part, in, r, is_max, before))
            return fmax(bound, bounded(w, in, part, FEW_EXCHANGES, &ended));
    }
    if (is_too_large(w, part)) return -INFINITY; /* the node is divided otherwise */
    return fmax(bound, begun(w, part, in, &ended));
}

/* The two parts of a division; 0 where it cannot be had. */
static int parts_of(const shape *a, division by, shape *part)
{
    part[0] = part[1] = *a;
    if (by.kind == COUNT) {
        part[0].max[by.side] = by.slot, part[1].min[by.side] = by.slot + 1;
        return 1;
    }
    part[0].mask[by.slot] &= ~by.side;
    if (by.kind != REGIONS) return certain_of(a, by.slot, by.side, by.kind == LAST, &part[1]);
    part[1].mask[by.slot] &= by.side;
    return 1;
}

/* Tries some divisions, and pushes the parts of the one that leaves least, but for that of the
   least bound, which is gone on with where it is near the least of all. 0 where there is none. */
static int divided(sluice_groups *w, shape *a, double *bound, int is_solved)
{
    division by[BY_FRAGMENT + 2 * BY_GROUP + BY_COUNT], groups[BY_GROUP];
    int64_t count = of_fragments(w, a, &w->own, w->target - *bound, by);
    int64_t grouped = of_groups(w, a, groups);
    for (int64_t c = 0; c < grouped; c++)
        for (int kind = FIRST; kind <= LAST; kind++) by[count] = groups[c], by[count++].kind = kind;
    if (count) count += of_counts(w, a, by + count);
    if (!count && !is_solved) { /* the program ended without an optimum: halves */
        for (int64_t c = 0; c < a->slots && !count; c++) {
            uint64_t mask = a->mask[c] & ~GROUP;
            if (mask & (mask - 1))
                by[count++] = (division){0.0, c, mask & (mask - 1), is_group(a, c) ? FIRST : REGIONS};
        }
        if (!count && a->min[0] < a->max[0])
            by[count++] = (division){0.0, (a->min[0] + a->max[0]) / 2, 0, COUNT};
    }
    shape part[2], chosen[2];
    double least = INFINITY, value[2] = {0.0, 0.0};
    for (int64_t c = 0; c < count; c++) {
        double here[2], left = 0.0;
        if (!parts_of(a, by[c], part)) continue;
        for (int side = 0; side < 2 && left < least; side++) {
            here[side] = part_of(w, a, by[c], side, &part[side], *bound, &w->part[side]);
            left += left_of(w, here[side], *bound);
        }
        if (left >= least) continue;
        least = left;
        for (int side = 0; side < 2; side++) {
            value[side] = here[side], chosen[side] = part[side];
            swap(&w->part[side], &w->kept[side]);
        }
        if (fmax(here[0], here[1]) >= w->target) break; /* go on with the other */
    }
    if (!(least < INFINITY)) {
        close_node(w, *bound, a);
        return 0;
    }
    int lower = value[1] < value[0];
    push(w, value[1 - lower], &chosen[1 - lower]);
    if (value[lower] >= w->target) return 0;
    double next = w->nodes ? fmin(w->heap[0].bound, w->target) : w->target;
    if (value[lower] > next + DEEPER * (w->target - next)) {
        push(w, value[lower], &chosen[lower]);
        return 0;
    }
    *a = chosen[lower], *bound = value[lower];
    swap(&w->own, &w->kept[lower]);
    return 1;
}

/* One node, and on into its part of least bound while that is worth it. */
static void visit(sluice_groups *w, shape a, double bound)
{
    for (int is_new = 1;;) {
        int ended;
        if (is_new) {
            if (!settled(w, &a)) return;
            if (is_too_large(w, &a)) {
                close_node(w, bound, &a);
                return;
            }
            bound = fmax(bound, begun(w, &a, &w->own, &ended));
        } else {
            bound = fmax(bound, bounded(w, &w->own, &a, MANY_EXCHANGES, &ended));
        }
        if (bound >= w->target) return;
        int64_t slots = a.slots;
        if (tightened(w, &a, proven_of(w, &a, &w->own))) {
            if (!settled(w, &a)) return;
            is_new = a.slots != slots;
            continue;
        }
        is_new = 0;
        read_weights(w, &a, &w->own);
        offer_near(w, &a, 0), offer_near(w, &a, 1);
        if (!divided(w, &a, &bound, ended == SLUICE_SIMPLEX_DONE)) return;
        if (w->work <= 0.0) {
            push(w, bound, &a);
            return;
        }
    }
}

/* What is known of all cuts of a node: its bound, or that of its counts. */
static double known_of_counts(const sluice_groups *w, const node *of)
{
    double least = INFINITY;
    for (int64_t k = of->min; k <= of->max && least > of->bound; k++)
        least = fmin(least, w->known[k - w->fewest]);
    return fmax(least, of->bound);
}

double sluice_groups_advance(sluice_groups *w, double target_us, const double *known_us,
                             double work)
{
    double *known = malloc((size_t)w->counts * sizeof *known);
    if (!known) return 0.0;
    for (int64_t k = 0; k < w->counts; k++) known[k] = known_us[k] / w->unit_us;
    w->known = known, w->target = target_us / w->unit_us, w->work = work;
    while (w->work > 0.0 && w->nodes && w->heap[0].bound < w->target) {
        node first = pop(w);
        w->work -= 1000.0;
        shape a = {0};
        memcpy(&a, first.of, offsetof(shape, mask));
        memcpy(a.mask, first.of->mask, (size_t)a.slots * sizeof *a.mask);
        free(first.of);
        double known_of = known_of_counts(w, &first);
        if (known_of > first.bound) push(w, known_of, &a); /* it waits for its turn */
        else visit(w, a, first.bound);
    }
    free(known);
    w->known = NULL;
    return w->work;
}

void sluice_groups_bounds(const sluice_groups *w, double *open_us, double *closed_us)
{
    for (int64_t k = 0; k < w->counts; k++)
        open_us[k] = INFINITY, closed_us[k] = w->closed[k] * w->unit_us;
    for (int64_t at = 0; at < w->nodes; at++)
        for (int64_t k = w->heap[at].min - w->fewest; k <= w->heap[at].max - w->fewest; k++)
            open_us[k] = fmin(open_us[k], w->heap[at].bound * w->unit_us);
}

double sluice_groups_best(sluice_groups *w, double *size_bytes, int64_t room, int64_t *count)
{
    double latency = w->best_us * w->unit_us;
    *count = w->best_count <= room ? w->best_count : 0;
    memcpy(size_bytes, w->best, (size_t)*count * sizeof *size_bytes);
    w->best_us = INFINITY, w->best_count = 0;
    return latency;
}

/* ---- what there is at the beginning ---------------------------------------------------------- */

static double *numbers(int64_t count) { return calloc((size_t)count, sizeof(double)); }

static void fill_end(sluice_groups *w, struct ends *of, int64_t v, int is_high)
{
    int64_t n = w->n, q = w->region[v];
    of->at[v] = is_high ? of->high[q] : of->low[q];
    for (int64_t j = n - 1; j >= 0; j--) {
        double cost = w->g[q * n + j] + w->G[q * n + j] * of->at[v];
        of->t[v * n + j] = cost;
        of->tails[v * n + j] = cost + (j < n - 1 ? of->tails[v * n + j + 1] : 0.0);
    }
}

static void fill_ends(sluice_groups *w, const sluice_tree_problem *problem)
{
    double unit = w->unit_bytes;
    for (int64_t q = 0; q < w->R; q++) {
        w->last.low[q] = problem->low[q], w->last.high[q] = problem->high[q];
        w->inner.low[q] = unit * ceil(w->last.low[q] / unit); /* above `high` where there is none */
        w->inner.high[q] = unit * floor(w->last.high[q] / unit);
        for (int64_t j = 0; j < w->n; j++) {
            w->g[q * w->n + j] = problem->overhead_us[q * w->n + j] / w->unit_us;
            w->G[q * w->n + j] = problem->us_per_byte[q * w->n + j] / w->unit_us;
        }
        for (int side = 0; side < (w->last.high[q] > w->last.low[q] ? 2 : 1); side++) {
            int64_t v = w->V++;
            w->region[v] = q;
            fill_end(w, &w->last, v, side), fill_end(w, &w->inner, v, side);
        }
    }
}

static int is_complete(const sluice_groups *w)
{
    for (int side = 0; side < 2; side++) {
        const struct ends *of = side ? &w->last : &w->inner;
        if (!of->low || !of->high || !of->at || !of->t || !of->tails) return 0;
    }
    return w->g && w->G && w->region && w->banned && w->A && w->weight && w->number && w->closed &&
           w->best && w->sizes;
}

sluice_groups *sluice_groups_new(const sluice_tree_problem *problem, double known_us)
{
    int64_t n = problem->stages, R = problem->regions;
    if (n < 2 || n > 64 || R < 1 || R >= SLUICE_TREE_MAX_REGIONS || problem->fewest < 2 ||
        problem->fragments < problem->fewest || !(known_us > 0.0))
        return NULL;
    sluice_groups *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->n = n, w->R = R, w->fewest = problem->fewest, w->B = problem->message_bytes;
    w->counts = problem->fragments - problem->fewest + 1;
    w->unit_bytes = problem->unit_bytes, w->unit_us = known_us;
    w->target = w->best_us = INFINITY;
    w->g = numbers(R * n), w->G = numbers(R * n);
    for (int side = 0; side < 2; side++) {
        struct ends *of = side ? &w->last : &w->inner;
        of->low = numbers(R), of->high = numbers(R), of->at = numbers(2 * R);
        of->t = numbers(2 * R * n), of->tails = numbers(2 * R * n);
    }
    w->region = calloc((size_t)(2 * R), sizeof *w->region);
    w->banned = calloc((size_t)(MAX_SLOTS * (4 * R + 2 * n + 1) + 2 * R + 3), 1);
    w->A = numbers(MAX_SLOTS * R), w->weight = numbers(MAX_SLOTS * R);
    w->number = numbers(MAX_SLOTS * 2 * R);
    w->closed = numbers(w->counts), w->best = numbers(MAX_SIZES), w->sizes = numbers(MAX_SIZES);
    int complete = is_complete(w) & new_tableau(&w->own);
    for (int side = 0; side < 2; side++)
        complete &= new_tableau(&w->part[side]) & new_tableau(&w->kept[side]);
    if (!complete) {
        sluice_groups_free(w);
        return NULL;
    }
    fill_ends(w, problem);
    for (int64_t k = 0; k < w->counts; k++) w->closed[k] = INFINITY;
    shape all = {.slots = 3};
    for (int64_t q = 0; q < R; q++) {
        int is_inner = w->inner.low[q] <= w->inner.high[q];
        if (is_inner) all.mask[0] |= UINT64_C(1) << q;
        all.mask[2] |= UINT64_C(1) << q;
    }
    all.mask[1] = all.mask[0] | GROUP;
    for (int64_t r = 0; r < R; r++) all.max[r] = problem->fragments;
    all.min[0] = problem->fewest;
    if (!all.mask[0]) {
        sluice_groups_free(w);
        return NULL;
    }
    push(w, 0.0, &all);
    return w;
}

void sluice_groups_free(sluice_groups *w)
{
    if (!w) return;
    for (int64_t at = 0; at < w->nodes; at++) free(w->heap[at].of);
    for (int side = 0; side < 2; side++) {
        struct ends *of = side ? &w->last : &w->inner;
        free(of->low), free(of->high), free(of->at), free(of->t), free(of->tails);
        free_tableau(&w->part[side]), free_tableau(&w->kept[side]);
    }
    free_tableau(&w->own), free(w->heap), free(w->g), free(w->G), free(w->region), free(w->banned);
    free(w->A), free(w->weight), free(w->number), free(w->closed), free(w->best), free(w->sizes);
    free(w);
}
