#include "project.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Source    docs/theory.md sec. 14; solvers/exact/dual.py is the same in NumPy.
   Notation  S steps, n stages; p (S, n); group t: the rows between step t-1 and step t, first the
             byte row of fragment t, then order rows by their stage; rows stand group by group, each
             followed by the row that sums its step to 1.
   Cost      O(S n q) and O(S q^2 (n + 1)), q the order rows of a group.
   Exact     a proposal: what p is worth is said by the value of its repair.
   Traps     long double is a double on some platforms: fewer digits, no less a proposal. */

#define SPAN SLUICE_LINES_MAX_STAGES
#define TIGHT_BYTES 1e-5L /* of the greatest cost: byte rows above lambda by less hold with equality */
#define TIGHT_ORDER 1e-7L /* the same of the order rows */
#define REGULAR 1e-13     /* of each diagonal entry: rows may follow from one another */
#define REFINEMENTS 4
#define SUM (-2)
#define BYTES (-1)

typedef long double real;

typedef struct {
    int64_t S, n, rows, width;
    real Q[SPAN], before[SPAN], lambda; /* per byte, in units of the greatest cost */
    real *p, *bytes;                    /* (S, n); (S + 1): the byte rows */
    int64_t *group;                     /* (S + 2): where each begins */
    signed char *kind;                  /* (rows): SUM, BYTES, or the stage of an order row */
    double *weight, *band, *inverse, *border, *rest;
} projection;

/* The coefficients of a row at a step: those of the group before it, its sum, the group behind. */
static void coefficients(const projection *z, int64_t row, int64_t step, double *out)
{
    int kind = z->kind[row], behind = row >= z->group[step + 1];
    for (int64_t c = 0; c < z->n; c++)
        if (kind == SUM)
            out[c] = 1.0;
        else if (kind == BYTES)
            out[c] = behind ? -(double)z->before[c] : (double)z->Q[c];
        else
            out[c] = c > kind ? 0.0 : behind ? 1.0 : -1.0;
}

static void byte_rows(projection *z)
{
    real trail = 0.0L;
    for (int64_t t = 0; t <= z->S; t++) {
        real lead = 0.0L, next = 0.0L;
        for (int64_t c = 0; t < z->S && c < z->n; c++) {
            lead += z->p[t * z->n + c] * z->Q[c];
            next += z->p[t * z->n + c] * z->before[c];
        }
        z->bytes[t] = (t < z->S ? lead : z->Q[z->n - 1]) - trail;
        trail = next;
    }
}

static int ascending(const void *a, const void *b)
{
    real one = *(const real *)a, other = *(const real *)b;
    return (one > other) - (one < other);
}

static real median(const real *values, int64_t count, real *space)
{
    memcpy(space, values, (size_t)count * sizeof *space);
    qsort(space, (size_t)count, sizeof *space, ascending);
    return 0.5L * (space[(count - 1) / 2] + space[count / 2]);
}

/* Weights below the cut are nothing, the others of a step sum to 1; 0 where none is left. */
static int normalise(projection *z, const double *p, double cut)
{
    for (int64_t t = 0; t < z->S; t++) {
        real total = 0.0L;
        for (int64_t i = t * z->n; i < (t + 1) * z->n; i++) {
            z->p[i] = isfinite(p[i]) && p[i] >= cut ? p[i] : 0.0L;
            total += z->p[i];
        }
        for (int64_t i = t * z->n; i < (t + 1) * z->n; i++) {
            z->p[i] /= total;
            z->weight[i] = (double)z->p[i] * (double)z->p[i];
        }
        if (!(total > 0.0L))
            return 0;
    }
    return 1;
}

/* Which rows hold with equality; of order rows that follow from one another the first. */
static void find_tight(projection *z)
{
    int64_t n = z->n, row = 0;
    for (int64_t t = 0; t <= z->S; t++) {
        const real *here = z->p + t * n, *last = here - n;
        real difference = 0.0L;
        int before = 1;
        z->group[t] = row;
        if (z->bytes[t] - z->lambda <= TIGHT_BYTES)
            z->kind[row++] = BYTES;
        for (int64_t d = 0; t > 0 && t < z->S && d < n - 1; d++) {
            difference += last[d] - here[d];
            int tight = fabsl(difference) < TIGHT_ORDER;
            if (tight && !(before && last[d] == 0.0L && here[d] == 0.0L))
                z->kind[row++] = (signed char)d;
            before = tight;
        }
        if (t < z->S)
            z->kind[row++] = SUM;
    }
    z->group[z->S + 1] = z->rows = row;
    for (int64_t t = 0; t < z->S; t++) {
        int64_t span = z->group[t + 2] - z->group[t] - (t + 1 < z->S);
        z->width = span > z->width ? span : z->width;
    }
}

/* The rows that meet in a step, its sum among them: from..to-1. */
static void rows_of(const projection *z, int64_t step, int64_t *from, int64_t *to)
{
    *from = z->group[step];
    *to = z->group[step + 2] - (step + 1 < z->S);
}

/* The lower band of A diag(weight) A', a little added to its diagonal; a row's diagonal is last. */
static void normal_rows(projection *z, double *at)
{
    int64_t n = z->n, w = z->width;
    memset(z->band, 0, (size_t)(z->rows * w) * sizeof *z->band);
    for (int64_t t = 0; t < z->S; t++) {
        int64_t from, to;
        rows_of(z, t, &from, &to);
        for (int64_t r = from; r < to; r++) {
            double *mine = at + (r - from) * n, weighted[SPAN];
            coefficients(z, r, t, mine);
            for (int64_t c = 0; c < n; c++)
                weighted[c] = mine[c] * z->weight[t * n + c];
            for (int64_t e = from; e <= r; e++) {
                double sum = 0.0;
                for (int64_t c = 0; c < n; c++)
                    sum += weighted[c] * at[(e - from) * n + c];
                z->band[r * w + w - 1 - (r - e)] += sum;
            }
        }
    }
    for (int64_t r = 0; r < z->rows; r++) {
        double *diagonal = z->band + r * w + w - 1;
        *diagonal = fmax(*diagonal * (1.0 + REGULAR), *diagonal + 1e-18);
    }
}

static int factor(projection *z)
{
    int64_t w = z->width;
    for (int64_t r = 0; r < z->rows; r++) {
        double *mine = z->band + r * w + w - 1 - r; /* mine[e] is the entry in column e */
        int64_t first = r - w + 1 > 0 ? r - w + 1 : 0;
        for (int64_t e = first; e <= r; e++) {
            const double *other = z->band + e * w + w - 1 - e;
            double value = mine[e];
            for (int64_t i = first; i < e; i++)
                value -= mine[i] * other[i];
            if (e < r)
                mine[e] = value * z->inverse[e];
            else if (!(value > 0.0))
                return 0;
            else
                z->inverse[r] = 1.0 / sqrt(value);
        }
    }
    return 1;
}

static void substitute(const projection *z, double *side)
{
    int64_t w = z->width;
    for (int64_t r = 0; r < z->rows; r++) {
        const double *mine = z->band + r * w + w - 1 - r;
        for (int64_t e = r - w + 1 > 0 ? r - w + 1 : 0; e < r; e++)
            side[r] -= mine[e] * side[e];
        side[r] *= z->inverse[r];
    }
    for (int64_t r = z->rows - 1; r >= 0; r--) {
        const double *mine = z->band + r * w + w - 1 - r;
        side[r] *= z->inverse[r];
        for (int64_t e = r - w + 1 > 0 ? r - w + 1 : 0; e < r; e++)
            side[e] -= mine[e] * side[r];
    }
}

/* What the rows lack, of extended precision until the last. */
static void residual(projection *z)
{
    int64_t n = z->n, row = 0;
    byte_rows(z);
    for (int64_t t = 0; t <= z->S; t++) {
        const real *here = z->p + t * n, *last = here - n;
        real sum = 1.0L, difference = 0.0L;
        for (int64_t d = 0, stop = z->group[t + 1]; row < stop; row++) {
            int kind = z->kind[row];
            for (; kind >= 0 && d <= kind; d++)
                difference += here[d] - last[d];
            for (int64_t c = 0; kind == SUM && c < n; c++)
                sum -= here[c];
            z->rest[row] = (double)(kind == SUM     ? sum
                                    : kind == BYTES ? z->lambda - z->bytes[t]
                                                    : difference);
        }
    }
}

/* p moved by weight A' z. */
static void move(projection *z)
{
    int64_t n = z->n;
    double at[SPAN];
    for (int64_t t = 0; t < z->S; t++) {
        int64_t from, to;
        double change[SPAN] = {0};
        rows_of(z, t, &from, &to);
        for (int64_t r = from; r < to; r++) {
            coefficients(z, r, t, at);
            for (int64_t c = 0; c < n; c++)
                change[c] += at[c] * z->rest[r];
        }
        for (int64_t c = 0; c < n; c++)
            z->p[t * n + c] += (real)(z->weight[t * n + c] * change[c]);
    }
}

static double product(const double *a, const double *b, int64_t count)
{
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* The substitutions; 0 where the rows have no factor. */
static int refine(projection *z)
{
    int64_t N = z->rows;
    double *bordered = z->border + N;
    for (int64_t r = 0; r < N; r++)
        z->border[r] = bordered[r] = z->kind[r] == BYTES ? 1.0 : 0.0;
    substitute(z, bordered);
    double against = product(z->border, bordered, N);
    for (int turn = 0; turn < REFINEMENTS; turn++) {
        residual(z);
        substitute(z, z->rest);
        double step = -product(z->border, z->rest, N) / against;
        for (int64_t r = 0; r < N; r++)
            z->rest[r] += step * bordered[r];
        move(z);
        z->lambda += step;
    }
    for (int64_t i = 0; i < z->S * z->n; i++)
        if (!isfinite((double)z->p[i]))
            return 0;
    return 1;
}

static int project(projection *z, double *p, double cut)
{
    if (!normalise(z, p, cut))
        return 0;
    byte_rows(z);
    z->lambda = median(z->bytes, z->S + 1, z->bytes + z->S + 1);
    find_tight(z);
    double *space = malloc((size_t)(z->rows * (z->width + 4) + z->width * z->n) * sizeof *space);
    if (space == NULL)
        return 0;
    z->band = space;
    z->inverse = space + z->rows * z->width;
    z->border = z->inverse + z->rows;
    z->rest = z->border + 2 * z->rows;
    normal_rows(z, z->rest + z->rows);
    int moved = factor(z) && refine(z);
    for (int64_t i = 0; moved && i < z->S * z->n; i++)
        p[i] = (double)z->p[i];
    free(space);
    return moved;
}

void sluice_dual_project(const sluice_lines *lines, int64_t k, double cut, double *p)
{
    projection z = {.S = k - 1, .n = lines->n};
    real G = 0.0L, maximum = 0.0L;
    for (int64_t c = 0; c < z.n; c++)
        maximum = lines->us_per_byte[c] > maximum ? lines->us_per_byte[c] : maximum;
    if (!(maximum > 0.0L))
        return;
    for (int64_t c = 0; c < z.n; c++) {
        z.before[c] = G;
        G += lines->us_per_byte[c] / maximum;
        z.Q[c] = G;
    }
    size_t cells = (size_t)(z.S * z.n), groups = (size_t)(z.S + 2);
    z.p = malloc((cells + 2 * groups) * sizeof *z.p);
    z.weight = malloc(cells * sizeof *z.weight);
    z.group = malloc(groups * sizeof *z.group);
    z.kind = malloc(cells + 2 * groups);
    if (z.p != NULL && z.weight != NULL && z.group != NULL && z.kind != NULL) {
        z.bytes = z.p + cells;
        (void)project(&z, p, cut);
    }
    free(z.p);
    free(z.weight);
    free(z.group);
    free(z.kind);
}
