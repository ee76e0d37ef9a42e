/* A dense tableau of a small linear program, and the dual simplex on it. */
#ifndef SLUICE_SIMPLEX_H
#define SLUICE_SIMPLEX_H

#include <stdint.h>

/* minimise z + d.x_N where x_B + A x_N = b and x >= 0, or x = 0 for what is banned.
   Variables are numbered; `basis` and `outside` say which one a row and a column are of. */
typedef struct {
    int64_t rows, columns, width; /* width: numbers from one row to the next, >= columns */
    double *A;                    /* (rows + 1, width); the last row is d */
    double *b;                    /* (rows + 1); the last one is z */
    int64_t *basis;               /* (rows) */
    int64_t *outside;             /* (columns) */
} sluice_tableau;

enum { SLUICE_SIMPLEX_DONE = 0, SLUICE_SIMPLEX_ABOVE = 1, SLUICE_SIMPLEX_STOPPED = 2 };

/* Take the variable of a column into the basis in place of that of a row. */
void sluice_exchange(sluice_tableau *tableau, int64_t row, int64_t column);

/* The dual simplex from any basis with d >= 0 for what is not banned, `banned` by variable. Ends
   DONE, ABOVE once z has reached the limit, STOPPED after so many exchanges or where a row has no
   column to enter. Returns how it ended; *exchanges is what is left of them. */
int sluice_dual_simplex(sluice_tableau *tableau, const unsigned char *banned, double limit,
                        int64_t *exchanges);

/* The same without the columns of banned variables other than `kept`; `to` has room for it. */
void sluice_copy_tableau(const sluice_tableau *from, const unsigned char *banned, int64_t kept,
                         sluice_tableau *to);

/* The column of a variable that is not in the basis; -1 where there is none. */
int64_t sluice_column_of(const sluice_tableau *tableau, int64_t variable);

/* Take a column out; the last one has its place. */
void sluice_drop_column(sluice_tableau *tableau, int64_t column);

/* What the first exchange gains where a row's variable has to leave the basis, for none of the
   variables from `from` to below `to`. */
double sluice_gained_by(const sluice_tableau *tableau, const unsigned char *banned, int64_t row,
                        int64_t from, int64_t to);

#endif
