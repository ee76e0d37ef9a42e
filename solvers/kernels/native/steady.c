#include "steady.h"

/* Source    docs/theory.md sec. 6; solvers/rounding.py, whose operations and order these are.
   Notation  tau: when each stage is free, us; to_last: the overheads and costs of a fragment from
             a stage to the last one, which it leaves out.
   Cost      O(k n).
   Traps     costs are in us a byte here, as the real ramps have them: only how large a size may be
             is decided by them, and latencies are the evaluator's. */

#define SPAN SLUICE_LINES_MAX_STAGES
#define ROOM 1e-9 /* bytes by which the sums of a ramp may be short from rounding alone */

int64_t sluice_steady(const sluice_whole *q, int reversed, int64_t first, int64_t capacity,
                      int64_t *sizes)
{
    double g[SPAN], cost[SPAN], tau[SPAN], overheads[SPAN], costs[SPAN];
    int64_t n = q->n, left = q->message_bytes, size = first, count = 0;
    for (int64_t j = 0; j < n; j++) {
        int64_t from = reversed ? n - 1 - j : j;
        g[j] = q->overhead_us[from];
        cost[j] = q->ns_per_byte[from] / 1000.0;
        tau[j] = 0.0;
    }
    for (int64_t a = 0; a < n - 1; a++) {
        overheads[a] = costs[a] = 0.0;
        for (int64_t j = a; j < n - 1; j++) {
            overheads[a] += g[j];
            costs[a] += cost[j];
        }
    }
    while (left > 0) {
        if (count == capacity)
            return 0;
        if (size < q->min_bytes)
            size = q->min_bytes;
        if (size > q->max_bytes)
            size = q->max_bytes;
        if (size > left)
            size = left;
        sizes[count++] = size;
        left -= size;
        double ready = 0.0;
        for (int64_t j = 0; j < n; j++)
            ready = tau[j] = (ready > tau[j] ? ready : tau[j]) + g[j] + cost[j] * (double)size;
        double room = (double)q->max_bytes;
        for (int64_t a = 0; a < n - 1; a++) {
            double here = (tau[n - 1] - tau[a] - overheads[a]) / costs[a];
            room = here < room ? here : room;
        }
        size = room < (double)q->max_bytes
                   ? (int64_t)((room + ROOM) / (double)q->unit_bytes) * q->unit_bytes
                   : q->max_bytes;
    }
    return count;
}
