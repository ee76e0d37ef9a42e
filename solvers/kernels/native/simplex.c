/* Exchanges on a dense tableau; Harris' ratio test in two passes. */
#include "simplex.h"

#include <math.h>
#include <string.h>

#include "portable.h"

static const double INFEASIBLE = 1e-9; /* of a variable's value */
static const double PIVOT = 1e-9;      /* least coefficient that is divided by */
static const double SLACK = 1e-10;     /* by which a reduced cost may be passed */

CLONES static void subtract(double *restrict row, const double *restrict other, double factor,
                            int64_t columns)
{
    for (int64_t c = 0; c < columns; c++) row[c] -= factor * other[c];
}

void sluice_exchange(sluice_tableau *t, int64_t row, int64_t column)
{
    double *own = t->A + row * t->width;
    double pivot = own[column];
    own[column] = 1.0;
    for (int64_t c = 0; c < t->columns; c++) own[c] /= pivot;
    t->b[row] /= pivot;
    for (int64_t r = 0; r <= t->rows; r++) {
        double *other = t->A + r * t->width, factor = other[column];
        if (r == row || factor == 0.0) continue;
        other[column] = 0.0;
        subtract(other, own, factor, t->columns);
        /* The last row holds z = z0 + d.x: its constant grows where the others' fall. */
        t->b[r] += r == t->rows ? factor * t->b[row] : -factor * t->b[row];
    }
    int64_t leaving = t->basis[row];
    t->basis[row] = t->outside[column];
    t->outside[column] = leaving;
}

static int64_t leaving_row(const sluice_tableau *t, const unsigned char *banned)
{
    int64_t row = -1;
    double most = INFEASIBLE;
    for (int64_t r = 0; r < t->rows; r++) {
        double value = t->b[r];
        double off = value < 0.0 ? -value : banned[t->basis[r]] ? value : 0.0;
        if (off > most) most = off, row = r;
    }
    return row;
}

static int64_t entering_column(const sluice_tableau *t, const unsigned char *banned, int64_t row)
{
    const double *own = t->A + row * t->width, *d = t->A + t->rows * t->width;
    double sign = t->b[row] < 0.0 ? -1.0 : 1.0, ratio = INFINITY, largest = PIVOT;
    int64_t column = -1;
    for (int64_t c = 0; c < t->columns; c++) {
        double a = sign * own[c];
        if (a <= PIVOT || banned[t->outside[c]]) continue;
        double here = ((d[c] > 0.0 ? d[c] : 0.0) + SLACK) / a;
        if (here < ratio) ratio = here;
    }
    for (int64_t c = 0; c < t->columns; c++) {
        double a = sign * own[c];
        if (a <= largest || d[c] > ratio * a || banned[t->outside[c]]) continue;
        largest = a, column = c;
    }
    return column;
}

int sluice_dual_simplex(sluice_tableau *t, const unsigned char *banned, double limit,
                        int64_t *exchanges)
{
    for (;;) {
        if (t->b[t->rows] >= limit) return SLUICE_SIMPLEX_ABOVE;
        int64_t row = leaving_row(t, banned);
        if (row < 0) return SLUICE_SIMPLEX_DONE;
        int64_t column = entering_column(t, banned, row);
        if (column < 0 || *exchanges <= 0) return SLUICE_SIMPLEX_STOPPED;
        --*exchanges;
        sluice_exchange(t, row, column);
    }
}

void sluice_copy_tableau(const sluice_tableau *from, const unsigned char *banned, int64_t kept,
                         sluice_tableau *to)
{
    int64_t columns = 0, taken = 0;
    to->rows = from->rows, to->columns = 0;
    for (int64_t c = 0; c < from->columns; c++) {
        int64_t variable = from->outside[c];
        if (!banned[variable] || variable == kept) to->outside[columns++] = variable;
    }
    to->columns = to->width = columns;
    memcpy(to->b, from->b, (size_t)(from->rows + 1) * sizeof *to->b);
    memcpy(to->basis, from->basis, (size_t)from->rows * sizeof *to->basis);
    for (int64_t c = 0; c < from->columns;) { /* neighbours that stay, one block after the other */
        int64_t end = c;
        while (end < from->columns && taken < columns && from->outside[end] == to->outside[taken])
            end++, taken++;
        int64_t start = taken - (end - c);
        for (int64_t r = 0; end > c && r <= from->rows; r++)
            memcpy(to->A + r * columns + start, from->A + r * from->width + c,
                   (size_t)(end - c) * sizeof *to->A);
        c = end + 1;
    }
}

int64_t sluice_column_of(const sluice_tableau *t, int64_t variable)
{
    for (int64_t c = 0; c < t->columns; c++)
        if (t->outside[c] == variable) return c;
    return -1;
}

void sluice_drop_column(sluice_tableau *t, int64_t column)
{
    int64_t last = --t->columns;
    for (int64_t r = 0; r <= t->rows; r++)
        t->A[r * t->width + column] = t->A[r * t->width + last];
    t->outside[column] = t->outside[last];
}

double sluice_gained_by(const sluice_tableau *t, const unsigned char *banned, int64_t row,
                        int64_t from, int64_t to)
{
    const double *own = t->A + row * t->width, *d = t->A + t->rows * t->width;
    double ratio = INFINITY;
    for (int64_t c = 0; c < t->columns; c++) {
        int64_t variable = t->outside[c];
        if (own[c] <= PIVOT || banned[variable] || (variable >= from && variable < to)) continue;
        ratio = fmin(ratio, fmax(0.0, d[c]) / own[c]);
    }
    return t->b[row] * ratio;
}
