/* The program of a node is a tableau in the weights of both ends of each region, one mixture a
   fragment; nodes restrict regions, so that each begins at the optimum of the one before it. */
#include "tree.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "simplex.h"

static const double ERROR = 16.0 * DBL_EPSILON;
static const double WHOLE = 1e-7;  /* weight that a solver may miss a whole one by */
static const double LITTLE = 1e-9; /* of the way to the target, where no exchange gains anything */
static const double STEEP = 4.0;    /* of how much is left, over the whole way to the target */
static const double DEEPER = 0.3;  /* of the way to the target, up to which a part is gone into */
enum { TRIED = 8, FEW_EXCHANGES = 20, MANY_EXCHANGES = 2000, MAX_NODES = 200000 };

typedef struct {
    double bound;
    uint64_t *allowed; /* (k) regions of each fragment, bit by bit */
} node;

struct sluice_tree {
    int64_t n, k, R, V, first, behind; /* fragments first..behind-1 may be absent: region 0 */
    double B, span, slope;           /* greatest message, how much less it may be, the target's slope */
    double unit_bytes, unit_us, target, work;
    double *g, *G;                 /* as in the problem, times in units of the known latency */
    struct ends {
        double *low, *high;        /* (R) */
        double *at, *t, *tails;    /* (V), (V, n), (V, n) sizes and costs of all ends */
    } inner, last;                 /* whole units, and the last fragment's */
    int64_t *region;               /* (V) of an end */
    sluice_tableau root, own, part[2], kept[2];
    unsigned char *banned;         /* (variables) */
    double *p, *F, *f, *A, *least; /* (k+1, n) twice, (k, n), (k, R), (k): a dual, its minima */
    double *weight, *x, *y, *exits;
    uint64_t *mask, *half, *parts; /* (k) of the root, (4, k) tried and best halves, (k+1, k) */
    node *heap;
    int64_t nodes, room;
    double closed, best_us;
    double *best, *real;
};

static const struct ends *ends_of(const sluice_tree *w, int64_t fragment)
{
    return fragment == w->k - 1 ? &w->last : &w->inner;
}

static int64_t order_variable(const sluice_tree *w, int64_t s, int64_t d)
{
    return w->k * w->V + (s - 1) * (w->n - 1) + d; /* s = 1 .. k-2 */
}

static int64_t slack_variable(const sluice_tree *w, int64_t s, int64_t j)
{
    return w->k * w->V + (w->k - 2) * (w->n - 1) + (s - 1) * w->n + j; /* s = 1 .. k-1 */
}

static int64_t conv_variable(const sluice_tree *w, int64_t i)
{
    return w->k * w->V + (w->k - 2) * (w->n - 1) + (w->k - 1) * w->n + i; /* k: of the bytes */
}

/* The messages of greatest and least size of a span, which are mixed as fragments' ends are. */
static int64_t end_variable(const sluice_tree *w, int is_least)
{
    return conv_variable(w, w->k + 2 + is_least);
}

static int64_t rows_of(int64_t n, int64_t k) { return (k - 1) * (n - 1) + k + 2; }

static int64_t columns_of(int64_t n, int64_t k, int64_t V)
{
    return k * V + (k - 2) * (n - 1) + (k - 1) + k + 3; /* before the fragments' enter */
}

int64_t sluice_tree_entries(int64_t stages, int64_t fragments, int64_t regions)
{
    int64_t columns = columns_of(stages, fragments, 2 * regions) - 2 - fragments;
    return (rows_of(stages, fragments) - 1) * columns; /* of one message */
}

/* ---- the program ---------------------------------------------------------------------------- */

/* The numbers themselves are not set: a tableau is filled, or copied into. */
static int new_tableau(sluice_tableau *t, int64_t rows, int64_t columns)
{
    t->rows = rows, t->columns = columns, t->width = columns;
    t->A = malloc((size_t)((rows + 1) * columns) * sizeof *t->A);
    t->b = calloc((size_t)(rows + 1), sizeof *t->b);
    t->basis = calloc((size_t)rows, sizeof *t->basis);
    t->outside = calloc((size_t)columns, sizeof *t->outside);
    return t->A && t->b && t->basis && t->outside;
}

static void free_tableau(sluice_tableau *t)
{
    free(t->A), free(t->b), free(t->basis), free(t->outside);
    *t = (sluice_tableau){0};
}

/* Rows: slack of step s and stage j != ref, s by s; fragments; bytes; the span's mixture. Columns:
   weights, order, slack of the steps' ref, ends of the span. All steps are in stage ref. */
static void fill_tableau(sluice_tree *w, int64_t ref)
{
    int64_t n = w->n, k = w->k, V = w->V, column = 0;
    sluice_tableau *t = &w->root;
    double *A = t->A, *d = A + t->rows * t->width;
    memset(A, 0, (size_t)((t->rows + 1) * t->width) * sizeof *A);
    for (int64_t i = 0; i < k; i++) {
        const struct ends *of = ends_of(w, i);
        for (int64_t v = 0; v < V; v++, column++) {
            const double *tails = of->tails + v * n, *own = of->t + v * n;
            t->outside[column] = i * V + v;
            for (int64_t j = 0, r = 0; j < n; j++) {
                if (j == ref) continue;
                if (i >= 1) A[((i - 1) * (n - 1) + r) * t->width + column] = tails[j] - tails[ref];
                if (i <= k - 2)
                    A[(i * (n - 1) + r) * t->width + column] =
                        (tails[ref] - own[ref]) - (tails[j] - own[j]);
                r++;
            }
            A[((k - 1) * (n - 1) + i) * t->width + column] = 1.0;
            A[((k - 1) * (n - 1) + k) * t->width + column] = of->at[v] / w->B;
            d[column] = i == 0 ? tails[0] - (tails[ref] - own[ref])
                               : tails[ref] - (i <= k - 2 ? tails[ref] - own[ref] : 0.0);
        }
    }
    for (int64_t s = 1; s <= k - 2; s++) {
        for (int64_t c = 0; c < n - 1; c++, column++) {
            t->outside[column] = order_variable(w, s, c);
            for (int64_t j = 0, r = 0; j < n; j++) {
                if (j == ref) continue;
                double value = (double)(c >= j) - (double)(c >= ref);
                A[((s - 1) * (n - 1) + r) * t->width + column] = value;
                A[(s * (n - 1) + r) * t->width + column] = -value;
                r++;
            }
        }
    }
    for (int64_t s = 1; s <= k - 1; s++, column++) {
        t->outside[column] = slack_variable(w, s, ref);
        d[column] = 1.0;
        for (int64_t r = 0; r < n - 1; r++)
            A[((s - 1) * (n - 1) + r) * t->width + column] = -1.0;
    }
    for (int is_least = 0; w->span > 0.0 && is_least < 2; is_least++, column++) {
        t->outside[column] = end_variable(w, is_least); /* what the message lacks is as if sent */
        A[((k - 1) * (n - 1) + k + 1) * t->width + column] = 1.0;
        A[((k - 1) * (n - 1) + k) * t->width + column] = is_least ? w->span / w->B : 0.0;
        d[column] = is_least ? w->slope * w->span : 0.0;
    }
    t->columns = column;
    for (int64_t s = 1; s <= k - 1; s++)
        for (int64_t j = 0, r = 0; j < n; j++)
            if (j != ref) t->basis[(s - 1) * (n - 1) + r++] = slack_variable(w, s, j);
    for (int64_t i = 0; i <= k + (w->span > 0.0); i++) {
        t->basis[(k - 1) * (n - 1) + i] = conv_variable(w, i);
        t->b[(k - 1) * (n - 1) + i] = 1.0;
    }
}

typedef struct {
    double slope;
    int64_t fragment, from, to;
} piece;

static int by_slope(const void *one, const void *other)
{
    const piece *a = one, *b = other;
    if (a->slope != b->slope) return a->slope < b->slope ? -1 : 1;
    if (a->fragment != b->fragment) return a->fragment < b->fragment ? -1 : 1;
    return a->from < b->from ? -1 : a->from > b->from;
}

static uint64_t all_of(const sluice_tree *w)
{
    return w->R == 64 ? ~UINT64_C(0) : (UINT64_C(1) << w->R) - 1;
}

/* The regions that have a size for a fragment: 0 for those that may be absent alone. */
static uint64_t root_of(const sluice_tree *w, int64_t fragment)
{
    const struct ends *of = ends_of(w, fragment);
    uint64_t found = 0;
    for (int64_t q = 0; q < w->R; q++)
        if (of->low[q] <= of->high[q]) found |= UINT64_C(1) << q;
    int is_there = w->behind > w->first && (fragment < w->first || fragment >= w->behind);
    return is_there ? found & ~UINT64_C(1) : found;
}

/* The lower hull of a fragment's costs d over the sizes of its ends, as pieces. Ends ascend. */
static int64_t hull_of(const sluice_tree *w, const double *d, int64_t fragment, piece *out,
                       int64_t *first)
{
    const double *at = ends_of(w, fragment)->at;
    uint64_t root = root_of(w, fragment);
    int64_t count = 0, least = 0;
    while (!(root >> w->region[least] & 1)) least++;
    *first = least;
    for (int64_t v = least + 1; v < w->V; v++) {
        int64_t from = count ? out[count - 1].to : *first;
        if (!(root >> w->region[v] & 1) || at[v] <= at[from]) continue; /* a region of one size */
        double slope = (d[v] - d[from]) / (at[v] - at[from]);
        while (count && slope <= out[count - 1].slope) {
            from = out[--count].from;
            slope = (d[v] - d[from]) / (at[v] - at[from]);
        }
        out[count++] = (piece){slope, fragment, from, v};
    }
    return count;
}

/* The cheapest bytes first: one mixture a fragment into the basis, of which one has two ends. */
static int first_basis(sluice_tree *w)
{
    int64_t k = w->k, V = w->V, count = 0;
    sluice_tableau *t = &w->root;
    const double *d = t->A + t->rows * t->width;
    piece *pieces = malloc((size_t)(k * V + 2) * sizeof *pieces);
    int64_t *end = calloc((size_t)(k + 1), sizeof *end), of = -1, to = -1;
    if (!pieces || !end) {
        free(pieces), free(end);
        return 0;
    }
    double total = 0.0;
    for (int64_t i = 0; i < k; i++) {
        count += hull_of(w, d + i * V, i, pieces + count, end + i);
        total += ends_of(w, i)->at[end[i]];
    }
    if (w->span > 0.0) pieces[count++] = (piece){w->slope, k, 0, 1};
    qsort(pieces, (size_t)count, sizeof *pieces, by_slope);
    for (int64_t c = 0; c < count; c++) {
        const double *at = ends_of(w, pieces[c].fragment)->at;
        double wide = pieces[c].fragment == k ? w->span : at[pieces[c].to] - at[pieces[c].from];
        of = pieces[c].fragment, to = pieces[c].to;
        if (total + wide >= w->B) break;
        total += wide;
        end[of] = to;
    }
    int found = of >= 0;
    if (found && end[of] == to) { /* every byte is taken: the last piece is left by nothing */
        for (int64_t c = count - 1; c >= 0; c--)
            if (pieces[c].fragment == of && pieces[c].to == to) end[of] = pieces[c].from;
    }
    for (int64_t i = 0; found && i < k + (w->span > 0.0); i++) {
        int64_t column = sluice_column_of(t, i < k ? i * V + end[i] : end_variable(w, (int)end[k]));
        sluice_exchange(t, (k - 1) * (w->n - 1) + i + (i == k), column);
        sluice_drop_column(t, column);
    }
    if (found) {
        int64_t more = of < k ? of * V + to : end_variable(w, 1);
        sluice_exchange(t, (k - 1) * (w->n - 1) + k, sluice_column_of(t, more));
    }
    free(pieces), free(end);
    return found;
}

/* ---- the bound ------------------------------------------------------------------------------ */

/* The dual of a tableau as flow f, its running sums never rising from step to step. */
static double dual_of(sluice_tree *w, const sluice_tableau *t)
{
    int64_t n = w->n, k = w->k, first = slack_variable(w, 1, 0), bytes = conv_variable(w, k);
    const double *d = t->A + t->rows * t->width;
    double price = 0.0;
    memset(w->p, 0, (size_t)((k + 1) * n) * sizeof *w->p);
    for (int64_t c = 0; c < t->columns; c++) {
        int64_t variable = t->outside[c];
        if (variable == bytes) price = -d[c] / w->B;
        else if (variable >= first && variable < first + (k - 1) * n)
            w->p[n + variable - first] = fmax(0.0, d[c]);
    }
    for (int64_t j = 0; j < n; j++) w->F[j] = 1.0, w->F[k * n + j] = 0.0;
    for (int64_t s = 1; s < k; s++) {
        double sum = 0.0, so_far = 0.0;
        for (int64_t j = 0; j < n; j++) sum += w->p[s * n + j];
        for (int64_t j = 0; j < n; j++) {
            so_far += sum > 0.0 ? w->p[s * n + j] / sum : (double)(j == 0);
            w->F[s * n + j] = j == n - 1 ? 1.0 : fmin(fmin(so_far, 1.0), w->F[(s - 1) * n + j]);
        }
    }
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < n; j++) {
            double ahead = j ? w->F[(i + 1) * n + j - 1] : 0.0;
            w->f[i * n + j] = fmax(0.0, w->F[i * n + j] - ahead);
        }
    return price;
}

/* What the dual of a tableau proves of the cuts whose regions are in `mask`; A and `least` are
   those of docs/theory.md, and what rounding may take is deducted. */
static double proven_of(sluice_tree *w, const sluice_tableau *t, const uint64_t *mask)
{
    int64_t n = w->n, k = w->k, R = w->R;
    double price = dual_of(w, t), total = price * w->B, error = ERROR * fabs(price) * w->B;
    total += fmin(0.0, (w->slope - price) * w->span); /* straight in the message: least at an end */
    error += ERROR * fabs(w->slope) * w->span;
    for (int64_t i = 0; i < k; i++) {
        const struct ends *of = ends_of(w, i);
        const double *f = w->f + i * n;
        double least = INFINITY, most = 0.0;
        for (int64_t q = 0; q < R; q++) {
            double a = 0.0, s = 0.0;
            if (!(mask[i] >> q & 1)) continue;
            for (int64_t j = 0; j < n; j++)
                a += f[j] * w->g[q * n + j], s += f[j] * w->G[q * n + j];
            double slope = s - price;
            double value = a + fmin(slope * of->low[q], slope * of->high[q]);
            most = fmax(most, ERROR * (a + (s + fabs(price)) * of->high[q]) * (double)n);
            w->A[i * R + q] = value;
            least = fmin(least, value);
        }
        w->least[i] = least;
        total += least, error += most;
    }
    return total - error;
}

/* Leave out the regions of a fragment with which the bound reaches the target, and those that no
   sizes of the others make up the message with. 1 where any was, -1 where none is left. */
static int tightened(sluice_tree *w, uint64_t *mask, double bound)
{
    int changed = 0;
    double lows = 0.0, highs = 0.0, short_of = w->target - bound;
    for (int64_t i = w->first + 1; i < w->behind; i++) /* the absent ones are the last */
        if (mask[i - 1] == 1 && mask[i] != 1) mask[i] &= 1, changed = 1;
    for (int64_t i = w->behind - 1; i > w->first; i--)
        if (!(mask[i] & 1) && mask[i - 1] & 1) mask[i - 1] &= ~UINT64_C(1), changed = 1;
    for (int64_t i = 0; i < w->k; i++) {
        if (!mask[i]) return -1;
        lows += ends_of(w, i)->low[__builtin_ctzll(mask[i])];
        highs += ends_of(w, i)->high[63 - __builtin_clzll(mask[i])];
    }
    double least = w->B - w->span;
    if (lows > w->B || highs < least) return -1;
    for (int64_t i = 0; i < w->k; i++) {
        const struct ends *of = ends_of(w, i);
        double others_low = lows - of->low[__builtin_ctzll(mask[i])];
        double others_high = highs - of->high[63 - __builtin_clzll(mask[i])];
        for (uint64_t left = mask[i]; left; left &= left - 1) {
            int64_t q = __builtin_ctzll(left);
            double above = w->A[i * w->R + q] - w->least[i];
            int is_out = bound > -INFINITY && above > short_of * (1.0 + 1e-9) + 1e-12;
            is_out |= others_low + of->low[q] > w->B || others_high + of->high[q] < least;
            if (is_out) mask[i] &= ~(UINT64_C(1) << q), changed = 1;
        }
        if (!mask[i]) return -1;
    }
    return changed;
}

/* ---- cuts ----------------------------------------------------------------------------------- */

static int64_t region_of(const sluice_tree *w, double size)
{
    int64_t q = 0;
    while (q < w->R - 1 && size > w->last.high[q]) q++;
    return q;
}

static double latency_of(sluice_tree *w, const double *size)
{
    int64_t n = w->n;
    memset(w->exits, 0, (size_t)n * sizeof *w->exits);
    for (int64_t i = 0; i < w->k; i++) {
        int64_t q = region_of(w, size[i]);
        double before = 0.0;
        for (int64_t j = 0; j < n; j++) {
            before = fmax(before, w->exits[j]) + w->g[q * n + j] + w->G[q * n + j] * size[i];
            w->exits[j] = before;
        }
    }
    return w->exits[n - 1];
}

static void offer(sluice_tree *w, const double *size)
{
    for (int64_t i = 0; i < w->k; i++) {
        int64_t q = region_of(w, size[i]);
        int is_in = size[i] >= w->last.low[q] && size[i] <= w->last.high[q];
        if (!is_in || !(w->mask[i] >> q & 1)) return; /* nor absent where it has to be there */
    }
    double latency = latency_of(w, size), message = 0.0;
    for (int64_t i = 0; i < w->k; i++) message += size[i];
    latency += w->slope * (w->B - message);
    if (latency < w->best_us) {
        w->best_us = latency;
        memcpy(w->best, size, (size_t)w->k * sizeof *size);
    }
}

/* Positions rounded to units; and sizes held in the region of most weight, the rest shared. */
static void offer_near(sluice_tree *w)
{
    int64_t k = w->k;
    double position = 0.0, before = 0.0, unit = w->unit_bytes, sum = 0.0, B = 0.0;
    for (int64_t i = 0; i < k; i++) B += w->x[i];
    B = w->span > 0.0 ? fmin(fmax(rint(B), w->B - w->span), w->B) : w->B;
    for (int64_t i = 0; i < k; i++) {
        position += w->x[i];
        double here = i == k - 1 ? B : unit * floor(position / unit + 0.5);
        w->y[i] = here - before;
        before = here;
    }
    offer(w, w->y);
    for (int64_t i = 0; i < k; i++) {
        int64_t q = 0;
        for (int64_t r = 1; r < w->R; r++)
            if (w->weight[i * w->R + r] > w->weight[i * w->R + q]) q = r;
        double low = unit * ceil(w->last.low[q] / unit), high = unit * floor(w->last.high[q] / unit);
        w->y[i] = fmin(fmax(unit * floor(w->x[i] / unit + 0.5), low), high);
        sum += w->y[i];
    }
    for (int pass = 0; pass < 2 && sum != B; pass++) {
        for (int64_t i = k - 1; i >= 0 && sum != B; i--) {
            int64_t q = region_of(w, w->y[i]);
            double wanted = w->y[i] + (B - sum);
            double kept = i == k - 1 ? wanted : unit * floor(wanted / unit);
            double low = unit * ceil(w->last.low[q] / unit), high = unit * floor(w->last.high[q] / unit);
            kept = fmin(fmax(kept, low), high);
            sum += kept - w->y[i];
            w->y[i] = kept;
        }
    }
    if (sum == B) offer(w, w->y);
}

/* ---- divisions ------------------------------------------------------------------------------ */

static void read_weights(sluice_tree *w, const sluice_tableau *t)
{
    int64_t k = w->k, V = w->V, R = w->R;
    memset(w->weight, 0, (size_t)(k * R) * sizeof *w->weight);
    memset(w->x, 0, (size_t)k * sizeof *w->x);
    for (int64_t r = 0; r < t->rows; r++) {
        int64_t variable = t->basis[r];
        if (variable >= k * V || t->b[r] <= 0.0) continue;
        int64_t i = variable / V, v = variable % V;
        w->weight[i * R + w->region[v]] += t->b[r];
        w->x[i] += t->b[r] * ends_of(w, i)->at[v];
    }
}

typedef struct {
    double score;
    int64_t fragment, region; /* below this region, or in it or above */
} division;

/* A bound on what dividing fragment i at region q gains, as parts are compared. */
static double gained(const sluice_tree *w, const sluice_tableau *t, int64_t i, int64_t q,
                     double room)
{
    double side[2] = {0.0, 0.0};
    int64_t first = i * w->V, behind = first + w->V, middle = first;
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

static int64_t divisions_of(sluice_tree *w, const sluice_tableau *t, double room, division *out)
{
    int64_t count = 0;
    for (int64_t i = 0; i < w->k; i++) {
        double above = 0.0;
        for (int64_t q = w->R - 1; q > 0; q--) {
            above += w->weight[i * w->R + q];
            double away = fmin(above, 1.0 - above);
            if (away <= WHOLE || !(w->weight[i * w->R + q] > 0.0)) continue;
            division one = {gained(w, t, i, q, room) + LITTLE * room * away, i, q};
            int64_t place = count < TRIED ? count++ : TRIED;
            if (place == TRIED && out[place - 1].score >= one.score) continue;
            if (place == TRIED) place--;
            for (; place > 0 && out[place - 1].score < one.score; place--)
                out[place] = out[place - 1];
            out[place] = one;
        }
    }
    return count;
}

/* The middle of the widest choice: where a program ended without weights. */
static int64_t halves_of(const sluice_tree *w, const uint64_t *mask, division *out)
{
    int widest = 1;
    for (int64_t i = 0; i < w->k; i++) {
        int wide = __builtin_popcountll(mask[i]);
        if (wide <= widest) continue;
        uint64_t left = mask[i];
        for (int skipped = 0; skipped < wide / 2; skipped++) left &= left - 1;
        widest = wide, *out = (division){0.0, i, __builtin_ctzll(left)};
    }
    return widest > 1;
}

/* ---- the tree ------------------------------------------------------------------------------- */

static void ban(sluice_tree *w, const uint64_t *mask)
{
    for (int64_t i = 0; i < w->k; i++)
        for (int64_t v = 0; v < w->V; v++)
            w->banned[i * w->V + v] = !(mask[i] >> w->region[v] & 1);
}

/* What the mask leaves of a tableau, and the column that has the price of a byte. */
static void copy(sluice_tree *w, const sluice_tableau *from, const uint64_t *mask,
                 sluice_tableau *to)
{
    ban(w, mask);
    sluice_copy_tableau(from, w->banned, conv_variable(w, w->k), to);
    w->work -= (double)(to->rows * to->columns);
}

/* Solves the tableau for the mask, no further than `limit` in its own terms; the bound proven. */
static double bounded(sluice_tree *w, sluice_tableau *t, const uint64_t *mask, int64_t exchanges,
                      int *ended)
{
    int64_t left = exchanges;
    ban(w, mask); /* the last copy may have been made for another */
    *ended = sluice_dual_simplex(t, w->banned, w->target * (1.0 + 1e-9) + 1e-12, &left);
    w->work -= (double)((exchanges - left + 1) * t->rows * t->columns);
    return proven_of(w, t, mask);
}

static void close_node(sluice_tree *w, double bound, int is_real)
{
    if (bound < w->closed) {
        w->closed = bound;
        for (int64_t i = 0; i < w->k; i++) {
            int is_there = w->behind == w->first || w->weight[i * w->R] < 0.5;
            w->real[i] = !is_real ? -1.0 : is_there ? w->x[i] : 0.0;
        }
    }
}

static void push(sluice_tree *w, double bound, const uint64_t *mask)
{
    if (bound >= w->target) return;
    if (w->nodes == w->room) {
        int64_t room = w->room ? 2 * w->room : 256;
        node *heap = room > MAX_NODES ? NULL : realloc(w->heap, (size_t)room * sizeof *heap);
        if (!heap) {
            close_node(w, bound, 0); /* its bound holds, but it is not divided */
            return;
        }
        w->heap = heap, w->room = room;
    }
    uint64_t *own = malloc((size_t)w->k * sizeof *own);
    if (!own) {
        close_node(w, bound, 0);
        return;
    }
    memcpy(own, mask, (size_t)w->k * sizeof *own);
    int64_t at = w->nodes++;
    while (at > 0 && w->heap[(at - 1) / 2].bound > bound) {
        w->heap[at] = w->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    w->heap[at] = (node){bound, own};
}

static node pop(sluice_tree *w)
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

static void swap(sluice_tableau *one, sluice_tableau *other)
{
    sluice_tableau kept = *one;
    *one = *other, *other = kept;
}

/* The part to go on with, unless its bound is far above the least one: then it waits as well. */
static int went_on(sluice_tree *w, uint64_t *mask, const uint64_t *part, double value,
                   sluice_tableau *solved, double *bound)
{
    double next = w->nodes ? fmin(w->heap[0].bound, w->target) : w->target;
    if (value > next + DEEPER * (w->target - next) || value >= w->target) {
        push(w, value, part);
        return 0;
    }
    memcpy(mask, part, (size_t)w->k * sizeof *mask);
    swap(&w->own, solved);
    *bound = value;
    return 1;
}

/* Solves a part of the node in this tableau; its bound. */
static double part_of(sluice_tree *w, uint64_t *part, double bound, sluice_tableau *in)
{
    int ended;
    if (tightened(w, part, -INFINITY) < 0) return w->target;
    copy(w, &w->own, part, in);
    return fmax(bound, bounded(w, in, part, FEW_EXCHANGES, &ended));
}

/* How much is left to divide in a part, as parts are compared. */
static double left_of(const sluice_tree *w, double value, double bound)
{
    if (value >= w->target) return 0.0;
    return exp(STEEP * (w->target - value) / (w->target - bound));
}

/* How many fragments of the program have regions of this side, of those that may have both; 0
   where not all cuts without any are known to reach the target. */
static double must_have(sluice_tree *w, const uint64_t *mask, uint64_t side, double bound)
{
    double number = 0.0;
    uint64_t *part = w->half;
    for (int64_t i = 0; i < w->k; i++) {
        int both = (mask[i] & side) && (mask[i] & ~side);
        part[i] = both ? mask[i] & ~side : mask[i];
        for (int64_t q = 0; both && q < w->R; q++)
            if (side >> q & 1) number += w->weight[i * w->R + q];
    }
    return number > WHOLE && part_of(w, part, bound, &w->part[0]) >= w->target ? number : 0.0;
}

/* The node's parts by the first fragment of this side, into `parts`; how much is left in them,
   `most` where that is reached before the last. */
static double parts_by_first(sluice_tree *w, const uint64_t *mask, uint64_t side, double bound,
                             double most, double *value, int64_t *count)
{
    size_t size = (size_t)w->k * sizeof *mask;
    uint64_t *before = w->half;
    double left = 0.0;
    memcpy(before, mask, size);
    *count = 0;
    for (int64_t i = 0; i < w->k && left < most; i++) {
        uint64_t *part = w->parts + *count * w->k;
        if (!(mask[i] & side) || !(mask[i] & ~side)) continue;
        memcpy(part, before, size);
        part[i] &= side;
        before[i] &= ~side;
        value[*count] = part_of(w, part, bound, &w->part[0]);
        left += left_of(w, value[*count], bound);
        if (value[*count] < w->target) ++*count;
    }
    return fmin(left, most);
}

/* Divides by the first fragment that has some regions, where every cut must have one and that
   leaves less than `most`. As `divided`, -1 where it is not done. */
static int divided_by_first(sluice_tree *w, uint64_t *mask, double most, double *bound)
{
    int64_t k = w->k, count = 0, least = 0;
    uint64_t all = all_of(w), side = 0;
    double fewest = INFINITY, *value = w->y;
    for (int is_above = 0; is_above < 2; is_above++)
        for (int64_t step = 1; step < w->R; step++) {
            uint64_t below = (UINT64_C(1) << (is_above ? w->R - step : step)) - 1;
            uint64_t here = is_above ? all & ~below : below;
            double number = must_have(w, mask, here, *bound);
            if (!(number > 0.0)) continue;
            if (number < fewest) fewest = number, side = here;
            break;
        }
    if (!side || parts_by_first(w, mask, side, *bound, most, value, &count) >= most) return -1;
    for (int64_t c = 1; c < count; c++)
        if (value[c] < value[least]) least = c;
    for (int64_t c = 0; c < count; c++)
        if (c != least) push(w, value[c], w->parts + c * k);
    if (!count) return 0;
    copy(w, &w->own, w->parts + least * k, &w->part[0]);
    return went_on(w, mask, w->parts + least * k, value[least], &w->part[0], bound);
}

/* Tries some divisions. The node's mask and tableau become those of the part to go on with, the
   other part waits. 0 where nothing is left to go on with. */
static int divided(sluice_tree *w, uint64_t *mask, int is_solved, double *bound)
{
    int64_t k = w->k;
    size_t size = (size_t)k * sizeof *mask;
    division tried[TRIED];
    int64_t count = divisions_of(w, &w->own, w->target - *bound, tried);
    double least = INFINITY, value[2] = {0.0, 0.0};
    if (!count && is_solved) {
        close_node(w, *bound, 1);
        return 0;
    }
    if (!count && !(count = halves_of(w, mask, tried))) {
        close_node(w, *bound, 0);
        return 0;
    }
    int is_one = 0;
    for (int64_t c = 0; c < count && !is_one; c++) {
        double here[2], left = 0.0;
        uint64_t below = (UINT64_C(1) << tried[c].region) - 1;
        for (int side = 0; side < 2; side++) {
            uint64_t *half = w->half + side * k;
            memcpy(half, mask, size);
            half[tried[c].fragment] &= side ? ~below : below;
            here[side] = part_of(w, half, *bound, &w->part[side]);
            left += left_of(w, here[side], *bound);
        }
        is_one = fmax(here[0], here[1]) >= w->target; /* go on with the other */
        if (left >= least && !is_one) continue;
        least = left, value[0] = here[0], value[1] = here[1];
        swap(&w->part[0], &w->kept[0]), swap(&w->part[1], &w->kept[1]);
        memcpy(w->half + 2 * k, w->half, 2 * size);
    }
    if (is_solved) {
        int is_left = divided_by_first(w, mask, least, bound);
        if (is_left >= 0) return is_left;
    }
    int lower = value[1] < value[0];
    uint64_t *halves = w->half + 2 * k;
    push(w, value[1 - lower], halves + (1 - lower) * k);
    return went_on(w, mask, halves + lower * k, value[lower], &w->kept[lower], bound);
}

/* One node, and on into its part of least bound while that is worth it. */
static void visit(sluice_tree *w, uint64_t *mask, double bound)
{
    copy(w, &w->root, mask, &w->own);
    for (;;) {
        int ended;
        double proven = bounded(w, &w->own, mask, MANY_EXCHANGES, &ended);
        bound = fmax(bound, proven);
        if (bound >= w->target) return;
        int changed = tightened(w, mask, proven);
        if (changed < 0) return;
        if (changed > 0) continue;
        read_weights(w, &w->own);
        offer_near(w);
        if (!divided(w, mask, ended == SLUICE_SIMPLEX_DONE, &bound)) return;
        if (w->work <= 0.0) {
            push(w, bound, mask);
            return;
        }
    }
}

static void free_scratch(sluice_tree *w)
{
    free_tableau(&w->own);
    for (int side = 0; side < 2; side++) free_tableau(&w->part[side]), free_tableau(&w->kept[side]);
}

/* Room for the tableaus at work, which a tree does not keep between its turns. */
static int new_scratch(sluice_tree *w)
{
    int64_t rows = w->root.rows, columns = w->root.width;
    int complete = new_tableau(&w->own, rows, columns);
    for (int side = 0; side < 2; side++)
        complete &= new_tableau(&w->part[side], rows, columns) &
                    new_tableau(&w->kept[side], rows, columns);
    if (!complete) free_scratch(w);
    return complete;
}

double sluice_tree_advance(sluice_tree *w, double target_us, double work)
{
    w->target = target_us / w->unit_us, w->work = work;
    if (!new_scratch(w)) return 0.0;
    while (w->work > 0.0 && w->nodes) {
        if (w->heap[0].bound >= fmin(w->target, w->closed)) break;
        node first = pop(w);
        visit(w, first.allowed, first.bound);
        free(first.allowed);
    }
    free_scratch(w);
    return w->work;
}

double sluice_tree_bound_us(const sluice_tree *w)
{
    return fmin(w->nodes ? w->heap[0].bound : INFINITY, w->closed) * w->unit_us;
}

double sluice_tree_best(const sluice_tree *w, double *size_bytes)
{
    memcpy(size_bytes, w->best, (size_t)w->k * sizeof *size_bytes);
    return w->best_us * w->unit_us;
}

double sluice_tree_real(const sluice_tree *w, double *size_bytes)
{
    memcpy(size_bytes, w->real, (size_t)w->k * sizeof *size_bytes);
    return w->closed * w->unit_us;
}

static double *numbers(int64_t count) { return calloc((size_t)count, sizeof(double)); }

static int is_complete(const sluice_tree *w)
{
    for (int side = 0; side < 2; side++) {
        const struct ends *of = side ? &w->last : &w->inner;
        if (!of->low || !of->high || !of->at || !of->t || !of->tails) return 0;
    }
    return w->g && w->G && w->region && w->p &&
           w->F && w->f && w->A && w->least && w->weight && w->x && w->y && w->exits && w->mask &&
           w->half && w->parts && w->best && w->real && w->banned;
}

static void fill_end(sluice_tree *w, struct ends *of, int64_t v, int is_high)
{
    int64_t n = w->n, q = w->region[v];
    of->at[v] = is_high ? of->high[q] : of->low[q];
    for (int64_t j = n - 1; j >= 0; j--) {
        double cost = w->g[q * n + j] + w->G[q * n + j] * of->at[v];
        of->t[v * n + j] = cost;
        of->tails[v * n + j] = cost + (j < n - 1 ? of->tails[v * n + j + 1] : 0.0);
    }
}

static void fill_ends(sluice_tree *w, const sluice_tree_problem *problem)
{
    int64_t absent = w->behind > w->first; /* region 0 of size and costs 0 */
    double unit = w->unit_bytes;
    for (int64_t q = absent; q < w->R; q++) {
        const double *g = problem->overhead_us + (q - absent) * w->n;
        const double *G = problem->us_per_byte + (q - absent) * w->n;
        w->last.low[q] = problem->low[q - absent], w->last.high[q] = problem->high[q - absent];
        w->inner.low[q] = unit * ceil(w->last.low[q] / unit); /* above `high` where there is none */
        w->inner.high[q] = unit * floor(w->last.high[q] / unit);
        for (int64_t j = 0; j < w->n; j++) {
            w->g[q * w->n + j] = g[j] / w->unit_us;
            w->G[q * w->n + j] = G[j] / w->unit_us;
        }
    }
    for (int64_t q = 0; q < w->R; q++) {
        for (int side = 0; side < (w->last.high[q] > w->last.low[q] ? 2 : 1); side++) {
            int64_t v = w->V++;
            w->region[v] = q;
            fill_end(w, &w->last, v, side), fill_end(w, &w->inner, v, side);
        }
    }
}

/* The stage with the most to do at the hull of its own costs: where all steps begin. */
static int64_t slowest(const sluice_tree *w)
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

sluice_tree *sluice_tree_new(const sluice_tree_problem *problem, double known_us)
{
    int64_t n = problem->stages, k = problem->fragments, more = k - problem->fewest;
    int64_t R = problem->regions + (more > 0);
    if (n < 2 || problem->fewest < 2 || more < 0 || R < 1 + (more > 0) || !(known_us > 0.0) ||
        problem->regions > SLUICE_TREE_MAX_REGIONS)
        return NULL;
    sluice_tree *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->n = n, w->k = k, w->R = R, w->B = problem->message_bytes;
    w->span = problem->span_bytes, w->slope = problem->slope_us / known_us;
    w->first = problem->fewest / 2, w->behind = w->first + more;
    w->unit_bytes = problem->unit_bytes, w->unit_us = known_us;
    w->closed = w->best_us = w->target = INFINITY;
    w->g = numbers(R * n), w->G = numbers(R * n);
    for (int side = 0; side < 2; side++) {
        struct ends *of = side ? &w->last : &w->inner;
        of->low = numbers(R), of->high = numbers(R), of->at = numbers(2 * R);
        of->t = numbers(2 * R * n), of->tails = numbers(2 * R * n);
    }
    w->region = calloc((size_t)(2 * R), sizeof *w->region);
    w->p = numbers((k + 1) * n), w->F = numbers((k + 1) * n), w->f = numbers(k * n);
    w->A = numbers(k * R), w->least = numbers(k), w->weight = numbers(k * R);
    w->x = numbers(k), w->y = numbers(k), w->exits = numbers(n);
    w->best = numbers(k), w->real = numbers(k);
    w->mask = calloc((size_t)k, sizeof *w->mask);
    w->half = calloc((size_t)(4 * k), sizeof *w->half);
    w->parts = calloc((size_t)((k + 1) * k), sizeof *w->parts);
    w->banned = calloc((size_t)(columns_of(n, k, 2 * R) + rows_of(n, k) + 4), 1);
    if (!is_complete(w)) {
        sluice_tree_free(w);
        return NULL;
    }
    fill_ends(w, problem);
    for (int64_t i = 0; i < k; i++) {
        w->mask[i] = root_of(w, i);
        if (w->mask[i]) continue; /* no size is admitted: there is no cut */
        sluice_tree_free(w);
        return NULL;
    }
    int64_t rows = rows_of(n, k), columns = columns_of(n, k, w->V);
    if (!new_tableau(&w->root, rows, columns)) {
        sluice_tree_free(w);
        return NULL;
    }
    w->root.rows -= !(w->span > 0.0);
    fill_tableau(w, slowest(w));
    /* The artificial variables of fragments are gone; that of the bytes gives its price. */
    if (!first_basis(w)) {
        sluice_tree_free(w);
        return NULL;
    }
    w->banned[conv_variable(w, k)] = 1;
    int ended;
    push(w, bounded(w, &w->root, w->mask, MANY_EXCHANGES, &ended), w->mask);
    return w;
}

void sluice_tree_free(sluice_tree *w)
{
    if (!w) return;
    for (int64_t at = 0; at < w->nodes; at++) free(w->heap[at].allowed);
    for (int side = 0; side < 2; side++) {
        struct ends *of = side ? &w->last : &w->inner;
        free(of->low), free(of->high), free(of->at), free(of->t), free(of->tails);
    }
    free_tableau(&w->root), free(w->heap), free(w->g), free(w->G);
    free(w->region), free(w->p), free(w->F), free(w->f), free(w->A);
    free(w->least), free(w->weight), free(w->x), free(w->y), free(w->exits), free(w->best);
    free(w->real), free(w->mask), free(w->half), free(w->parts), free(w->banned);
    free(w);
}
