#include "blocks.h"

#include <stddef.h>

#include "portable.h"

#define SMALLEST_SHARE 1e-15 /* of its own diagonal entry, below which a pivot is noise */
#define LEFT_OUT 1e-100      /* inverse of the pivot that leaves an unknown out */
#define MAX_BLOCK 64

/* Of a block that is `size` wide, in room for m: L D L' in place, L below the diagonal, L D transposed
   above it, 1/D aside. */
INLINE void factor_block(int64_t m, int64_t size, double *a, const double *original, double *inverse)
{
    for (int64_t c = 0; c < size; c++) {
        double pivot = a[c * m + c];
        for (int64_t e = 0; e < c; e++)
            pivot -= a[c * m + e] * a[e * m + c];
        inverse[c] = pivot > SMALLEST_SHARE * original[c] ? 1.0 / pivot : LEFT_OUT;
        for (int64_t r = c + 1; r < size; r++) {
            double value = a[r * m + c];
            for (int64_t e = 0; e < c; e++)
                value -= a[r * m + e] * a[e * m + c];
            a[c * m + r] = value;
            a[r * m + c] = value * inverse[c];
        }
    }
}

/* upper := D^-1 L^-1 upper, and next := next - upper' A^-1 upper (its lower triangle). */
INLINE void eliminate(int64_t m, int64_t size, int64_t across, const double *a,
                      const double *inverse, double *upper, double *next)
{
    for (int64_t r = 1; r < size; r++)
        for (int64_t e = 0; e < r; e++)
            for (int64_t c = 0; c < across; c++)
                upper[r * m + c] -= a[r * m + e] * upper[e * m + c];
    for (int64_t e = 0; e < size; e++)
        for (int64_t r = 0; r < across; r++) {
            double scaled = upper[e * m + r] * inverse[e];
            for (int64_t c = 0; c <= r; c++)
                next[r * m + c] -= scaled * upper[e * m + c];
        }
    for (int64_t e = 0; e < size; e++)
        for (int64_t c = 0; c < across; c++)
            upper[e * m + c] *= inverse[e];
}

INLINE void transpose(int64_t m, double *a)
{
    for (int64_t r = 1; r < m; r++)
        for (int64_t c = 0; c < r; c++) {
            double kept = a[r * m + c];
            a[r * m + c] = a[c * m + r];
            a[c * m + r] = kept;
        }
}

INLINE void save_diagonal(int64_t m, const double *a, double *out)
{
    for (int64_t c = 0; c < m; c++)
        out[c] = a[c * m + c];
}

/* A call with the sizes of two neighbours, constant where these are alike. */
#define FOR_SIZES(wide_here, wide_there, call)   \
    if ((wide_here) && (wide_there)) {           \
        int64_t here = m, there = m;             \
        call;                                    \
    } else if (!(wide_here) && !(wide_there)) {  \
        enum { here = 1, there = 1 };            \
        call;                                    \
    } else {                                     \
        int64_t here = (wide_here) ? m : 1;      \
        int64_t there = (wide_there) ? m : 1;    \
        call;                                    \
    }

INLINE void factor_one(int64_t m, int64_t size, int64_t across, double *a, double *original,
                       double *inverse, double *upper, double *next)
{
    factor_block(m, size, a, original, inverse);
    save_diagonal(m, next, original);
    eliminate(m, size, across, a, inverse, upper, next);
}

/* Blocks are eliminated from both ends towards the middle one: two chains that do not wait for
   each other keep the processor busier than one. The right chain needs its couplings transposed. */
INLINE void factor_all(int64_t count, int64_t m, const unsigned char *wide, double *diagonal,
                       double *upper, double *inverse)
{
    double left[MAX_BLOCK], right[MAX_BLOCK], middle[MAX_BLOCK];
    int64_t half = count / 2, size = m * m;
    save_diagonal(m, diagonal, left);
    save_diagonal(m, diagonal + (count - 1) * size, right);
    save_diagonal(m, diagonal + half * size, middle);
    for (int64_t i = 0; i < half; i++) {
        int64_t j = count - 1 - i;
        double *a = diagonal + i * size, *b = diagonal + j * size;
        FOR_SIZES(wide[i], wide[i + 1],
                  factor_one(m, here, there, a, left, inverse + i * m, upper + i * size, a + size))
        if (j > half) {
            double *coupling = upper + (j - 1) * size;
            if (wide[j] || wide[j - 1])
                transpose(m, coupling);
            FOR_SIZES(wide[j], wide[j - 1],
                      factor_one(m, here, there, b, right, inverse + j * m, coupling, b - size))
        }
    }
    factor_block(m, wide[half] ? m : 1, diagonal + half * size, middle, inverse + half * m);
}

/* v := L^-1 v, and what that puts on the next block's side. */
INLINE void forward(int64_t m, int64_t size, int64_t across, const double *a,
                    const double *coupling, double *v, double *next)
{
    for (int64_t r = 1; r < size; r++)
        for (int64_t e = 0; e < r; e++)
            v[r] -= a[r * m + e] * v[e];
    for (int64_t e = 0; e < size; e++)
        for (int64_t c = 0; c < across; c++)
            next[c] -= coupling[e * m + c] * v[e];
}

INLINE void backward(int64_t m, int64_t size, int64_t across, const double *a,
                     const double *inverse, const double *coupling, double *v, const double *next)
{
    for (int64_t r = 0; r < size; r++) {
        double value = v[r] * inverse[r];
        for (int64_t c = 0; c < across; c++)
            value -= coupling[r * m + c] * next[c];
        v[r] = value;
    }
    for (int64_t e = size - 1; e > 0; e--)
        for (int64_t r = 0; r < e; r++)
            v[r] -= a[e * m + r] * v[e];
}

INLINE void solve_middle(int64_t m, int64_t size, const double *a, const double *inverse, double *v)
{
    for (int64_t r = 1; r < size; r++)
        for (int64_t e = 0; e < r; e++)
            v[r] -= a[r * m + e] * v[e];
    for (int64_t r = 0; r < size; r++)
        v[r] *= inverse[r];
    for (int64_t e = size - 1; e > 0; e--)
        for (int64_t r = 0; r < e; r++)
            v[r] -= a[e * m + r] * v[e];
}

/* One side, or two at once: of the second one the processor works while it waits for the first. */
INLINE void solve_all(int64_t count, int64_t m, const unsigned char *wide, const double *diagonal,
                      const double *upper, const double *inverse, double *one, double *other)
{
#define FORWARD(i, j, coupling)                                                                   \
    FOR_SIZES(                                                                                    \
        wide[i], wide[j],                                                                         \
        forward(m, here, there, diagonal + (i) * size, coupling, one + (i) * m, one + (j) * m);   \
        if (other != NULL)                                                                        \
            forward(m, here, there, diagonal + (i) * size, coupling, other + (i) * m,             \
                    other + (j) * m))
#define BACKWARD(i, j, coupling)                                                                  \
    FOR_SIZES(wide[i], wide[j],                                                                   \
              backward(m, here, there, diagonal + (i) * size, inverse + (i) * m, coupling,        \
                       one + (i) * m, one + (j) * m);                                             \
              if (other != NULL)                                                                  \
                  backward(m, here, there, diagonal + (i) * size, inverse + (i) * m, coupling,    \
                           other + (i) * m, other + (j) * m))
    int64_t half = count / 2, size = m * m;
    for (int64_t i = 0; i < half; i++) {
        int64_t j = count - 1 - i;
        FORWARD(i, i + 1, upper + i * size)
        if (j > half) {
            FORWARD(j, j - 1, upper + (j - 1) * size)
        }
    }
    int64_t middle = wide[half] ? m : 1;
    solve_middle(m, middle, diagonal + half * size, inverse + half * m, one + half * m);
    if (other != NULL)
        solve_middle(m, middle, diagonal + half * size, inverse + half * m, other + half * m);
    for (int64_t i = half - 1; i >= 0; i--) {
        int64_t j = count - 1 - i;
        BACKWARD(i, i + 1, upper + i * size)
        if (j > half) {
            BACKWARD(j, j - 1, upper + (j - 1) * size)
        }
    }
#undef FORWARD
#undef BACKWARD
}

/* Constant block sizes let the compiler unroll; what is above eight is rare. */
#define FOR_SIZE(m, call)             \
    switch (m) {                      \
    case 1: { enum { M = 1 }; call; } break; \
    case 2: { enum { M = 2 }; call; } break; \
    case 3: { enum { M = 3 }; call; } break; \
    case 4: { enum { M = 4 }; call; } break; \
    case 5: { enum { M = 5 }; call; } break; \
    case 6: { enum { M = 6 }; call; } break; \
    case 7: { enum { M = 7 }; call; } break; \
    case 8: { enum { M = 8 }; call; } break; \
    default: { int64_t M = (m); call; } break; \
    }

void sluice_blocks_factor(int64_t count, int64_t m, const unsigned char *wide, double *diagonal,
                          double *upper, double *inverse_pivots)
{
    FOR_SIZE(m, factor_all(count, M, wide, diagonal, upper, inverse_pivots))
}

void sluice_blocks_solve(int64_t count, int64_t m, const unsigned char *wide,
                         const double *diagonal, const double *upper,
                         const double *inverse_pivots, double *side)
{
    FOR_SIZE(m, solve_all(count, M, wide, diagonal, upper, inverse_pivots, side, NULL))
}

void sluice_blocks_solve_two(int64_t count, int64_t m, const unsigned char *wide,
                             const double *diagonal, const double *upper,
                             const double *inverse_pivots, double *one, double *other)
{
    FOR_SIZE(m, solve_all(count, M, wide, diagonal, upper, inverse_pivots, one, other))
}
