/* SPDX-License-Identifier: Apache-2.0 */
/* What an event costs beyond its two readings of the clock: medians of many rounds, in ns. */
#define _POSIX_C_SOURCE 200809L
#define SLUICE_TRACE_IMPLEMENTATION
#include <sluice_trace.h>

#define EVENTS 20000
#define ROUNDS 101

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

int main(void)
{
    static double traced[ROUNDS], numbered[ROUNDS], read[ROUNDS];
    volatile uint64_t sink = 0;
    if (sluice_trace_thread() != 0)
        return 1;
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t first = sluice_trace_now();
        for (int i = 0; i < EVENTS; i++) {
            sink = sluice_trace_now();
            sink = sluice_trace_now();
        }
        const uint64_t second = sluice_trace_now();
        for (int i = 0; i < EVENTS; i++) {
            SLUICE_TRACE_BEGIN(nothing);
            SLUICE_TRACE_END(nothing, i);
        }
        const uint64_t third = sluice_trace_now();
        for (int i = 0; i < EVENTS; i++) {
            SLUICE_TRACE_BEGIN(nothing);
            SLUICE_TRACE_END_OF(nothing, i, i / 64, i % 64);
        }
        const uint64_t fourth = sluice_trace_now();
        read[round] = (double)(second - first) / EVENTS;
        traced[round] = (double)(third - second) / EVENTS;
        numbered[round] = (double)(fourth - third) / EVENTS;
    }
    (void)sink;
    qsort(read, ROUNDS, sizeof *read, by_value);
    qsort(traced, ROUNDS, sizeof *traced, by_value);
    qsort(numbered, ROUNDS, sizeof *numbered, by_value);
    printf("two readings %.1f ns, traced %.1f ns, beyond %.1f ns\n", read[ROUNDS / 2],
           traced[ROUNDS / 2], traced[ROUNDS / 2] - read[ROUNDS / 2]);
    printf("with numbers and begins %.1f ns, beyond %.1f ns\n", numbered[ROUNDS / 2],
           numbered[ROUNDS / 2] - read[ROUNDS / 2]);
    return 0;
}
