#include "bounds.h"

/* Source    docs/theory.md sec. 1 and 4; solvers/bounds.py.
   Notation  k fragments; for each stage the line between its costs at the least and the greatest
             size; ends: the least that the first and the last fragment can be.
   Cost      O(n) a count.
   Exact     the operations of bounds.py in its order: the same bits.
   Traps     k_min itself may have greater ends than all others, so it is not in the interval. */

#define SAFETY (1.0 - 1e-13) /* a few roundings of sums of at most 130 terms */

/* The two costs between which a stage's line runs. */
typedef struct {
    double from[SLUICE_LINES_MAX_STAGES], to[SLUICE_LINES_MAX_STAGES];
} costs;

static void find_costs(const sluice_whole *q, costs *at)
{
    for (int64_t j = 0; j < q->n; j++) {
        at->from[j] = sluice_time_us(q, j, (double)q->min_bytes);
        at->to[j] = sluice_time_us(q, j, (double)q->max_bytes);
    }
}

static double bound_of(const sluice_whole *q, const costs *at, int64_t k)
{
    double low = (double)q->min_bytes, high = (double)q->max_bytes;
    double whole = (double)q->message_bytes, count = (double)k, width = high - low;
    double size = whole / count, ends = whole - (count - 1.0) * high;
    double at_end[SLUICE_LINES_MAX_STAGES], around = 0.0, best = 0.0;
    size = size < low ? low : size > high ? high : size;
    ends = ends < low ? low : ends > high ? high : ends;
    double share = width > 0.0 ? (size - low) / width : 0.0;
    double rest = width > 0.0 ? (high - size) / width : 1.0;
    double share_ends = width > 0.0 ? (ends - low) / width : 0.0;
    double rest_ends = width > 0.0 ? (high - ends) / width : 1.0;
    for (int64_t j = 0; j < q->n; j++) {
        at_end[j] = at->from[j] * rest_ends + at->to[j] * share_ends;
        around += at_end[j];
    }
    for (int64_t j = 0; j < q->n; j++) {
        double inner = count * (at->from[j] * rest + at->to[j] * share);
        double here = around - at_end[j] + inner;
        best = here > best ? here : best;
    }
    return best * SAFETY + q->delay_us;
}

double sluice_bound(const sluice_whole *q, int64_t k)
{
    costs at;
    find_costs(q, &at);
    return bound_of(q, &at, k);
}

void sluice_bounds_of(const sluice_whole *q, const int64_t *counts, int64_t number,
                      double *bound_us)
{
    costs at;
    find_costs(q, &at);
    for (int64_t i = 0; i < number; i++)
        bound_us[i] = bound_of(q, &at, counts[i]);
}

/* The count furthest from `inside` in the direction of `end` whose bound is within the limit. */
static int64_t furthest(const sluice_whole *q, const costs *at, int64_t inside, int64_t end,
                        double limit_us)
{
    while (inside != end) {
        int64_t middle = inside < end ? inside + (end - inside + 1) / 2
                                      : inside - (inside - end + 1) / 2;
        if (bound_of(q, at, middle) <= limit_us)
            inside = middle;
        else
            end = inside < end ? middle - 1 : middle + 1;
    }
    return inside;
}

void sluice_bounds_within(const sluice_whole *q, int64_t near, double limit_us, int64_t *first,
                          int64_t *last)
{
    costs at;
    int64_t low = q->k_min + 1, high = q->k_max;
    find_costs(q, &at);
    *first = 1;
    *last = 0;
    if (low > high)
        return;
    near = near < low ? low : near > high ? high : near;
    double here = bound_of(q, &at, near);
    if (here > limit_us) {
        /* The bound is convex in k: downhill it goes until it is within, or rises. */
        int64_t step = near < high && bound_of(q, &at, near + 1) < here ? 1 : -1;
        for (double before = here; here > limit_us; before = here) {
            near += step;
            if (near < low || near > high)
                return;
            here = bound_of(q, &at, near);
            if (here > limit_us && here > before)
                return;
        }
    }
    *first = furthest(q, &at, near, low, limit_us);
    *last = furthest(q, &at, near, high, limit_us);
}
