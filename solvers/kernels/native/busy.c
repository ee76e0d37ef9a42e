#include "busy.h"

#include <math.h>

/* Source    docs/theory.md sec. 14, "A stage that is never idle".
   Notation  b: the stage whose whole time is the longest; m: the least size.
   Cost      O(n) for each fragment that differs in size from those in the middle.
   Exact     what the sizes are worth is said by their latency.
   Traps     behind b the same ramp is laid from the last fragment back, stages in reverse. */

#define SPAN SLUICE_LINES_MAX_STAGES
#define SPARE 2.0 /* bytes that a fragment is smaller than it could be: whole ones near it mostly fit, too */

/* Sizes that grow from the least one, each such that b has it when it has done the one before. */
typedef struct {
    int64_t stages;          /* between b and this end */
    double g[SPAN], G[SPAN]; /* from the end on; b's behind them */
    double leaves[SPAN + 1]; /* when each has done the last fragment */
    int64_t count;
    double bytes, next;
} ramp;

/* The largest size that reaches b in time. */
static double largest(const ramp *r, double minimum)
{
    double size = INFINITY, overhead = 0.0, cost = 0.0;
    for (int64_t c = r->stages - 1; c >= 0; c--) {
        overhead += r->g[c];
        cost += r->G[c];
        double room = r->leaves[r->stages] - r->leaves[c] - overhead;
        double here = cost > 0.0 ? room / cost : room < 0.0 ? -1.0 : INFINITY;
        size = here < size ? here : size;
    }
    double spare = 0.5 * (size - minimum);
    return size - (spare < SPARE ? spare : SPARE);
}

static void add(ramp *r, double size, double minimum)
{
    double ready = 0.0;
    for (int64_t c = 0; c <= r->stages; c++) {
        ready = (ready > r->leaves[c] ? ready : r->leaves[c]) + (r->g[c] + r->G[c] * size);
        r->leaves[c] = ready;
    }
    r->count++;
    r->bytes += size;
    r->next = largest(r, minimum);
}

/* Of the stages from `first` on in steps of `step`, up to b; none: nothing has to grow. */
static ramp begun(const sluice_lines *lines, int64_t first, int64_t step, int64_t b)
{
    ramp r = {.stages = step > 0 ? b - first : first - b};
    for (int64_t c = 0; c <= r.stages; c++) {
        r.g[c] = lines->overhead_us[first + step * c];
        r.G[c] = lines->us_per_byte[first + step * c];
        r.leaves[c] = 0.0;
    }
    r.next = r.stages > 0 ? lines->min_bytes : INFINITY;
    return r;
}

/* Adds fragments below this size; 0 where they do not grow, or are too many. */
static int extend(ramp *r, double size, int64_t most, double minimum, double *x, int64_t step)
{
    while (r->next < size) {
        double here = r->next;
        if (r->count == most || here < minimum)
            return 0;
        x[r->count * step] = here;
        add(r, here, minimum);
        if (!(r->next > here))
            return 0;
    }
    return 1;
}

int64_t sluice_busy_sizes(const sluice_lines *lines, int64_t k, double *x)
{
    int64_t n = lines->n, b = 0;
    double longest = -INFINITY, minimum = lines->min_bytes;
    for (int64_t c = 0; c < n; c++) {
        double whole = (double)(k - 1) * lines->overhead_us[c] +
                       lines->us_per_byte[c] * (lines->message_bytes - minimum);
        b = whole > longest ? c : b;
        longest = whole > longest ? whole : longest;
    }
    ramp before = begun(lines, 0, 1, b), behind = begun(lines, n - 1, -1, b);
    double size = lines->message_bytes / (double)k;
    for (int64_t count = -1; count != before.count + behind.count;) {
        count = before.count + behind.count;
        if (!extend(&before, size, k - 1 - behind.count, minimum, x, 1) ||
            !extend(&behind, size, k - 1 - before.count, minimum, x + k - 1, -1))
            return -1;
        double left = lines->message_bytes - before.bytes - behind.bytes;
        size = left / (double)(k - before.count - behind.count);
    }
    if (!(size <= lines->max_bytes))
        return -1;
    for (int64_t t = before.count; t < k - behind.count; t++)
        x[t] = size;
    return b;
}
