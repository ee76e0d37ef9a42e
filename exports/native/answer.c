#include "answer.h"

/* Source    clients/c/include/sluice.h; the judge comes from the caller.
   Cost      two bisections, two passes over the fragments, and the judge's own.
   Exact     sizes are below 2^53, so they are the same numbers as doubles. */

static int judge_cut(sluice_judge *judge, const void *pipeline, const sluice_answer *answer,
                     uint64_t count, double *latency_us)
{
    int declined = judge(pipeline, 1, (int64_t)count, answer->sizes, latency_us);
    return declined ? SLUICE_E_ARGUMENT : SLUICE_OK;
}

static int schedule(const sluice_table *table, uint64_t message_bytes, sluice_judge *judge,
                    const void *pipeline, sluice_answer *answer)
{
    size_t fragments = 0;
    int code = sluice_schedule(table, message_bytes, answer->fragment_bytes,
                               (size_t)answer->capacity, &fragments);
    if (code != SLUICE_OK)
        return code;
    answer->fragments = fragments;
    for (size_t i = 0; i < fragments; i++)
        answer->sizes[i] = (double)answer->fragment_bytes[i];
    return judge_cut(judge, pipeline, answer, fragments, &answer->cut_us);
}

static int repeated(const sluice_table *table, uint64_t message_bytes, sluice_judge *judge,
                    const void *pipeline, sluice_answer *answer)
{
    uint64_t size = 0;
    int code = sluice_repeat(table, message_bytes, &size);
    answer->repeat_bytes = 0;
    answer->repeats = 0;
    if (code != SLUICE_OK)
        return code == SLUICE_E_NO_REPEAT ? SLUICE_OK : code;
    uint64_t full = message_bytes / size, rest = message_bytes % size;
    if (full > answer->capacity - (rest != 0))
        return SLUICE_E_CAPACITY;
    for (uint64_t i = 0; i < full; i++)
        answer->sizes[i] = (double)size;
    if (rest)
        answer->sizes[full] = (double)rest;
    answer->repeat_bytes = size;
    answer->repeats = full + (rest != 0);
    return judge_cut(judge, pipeline, answer, answer->repeats, &answer->repeat_us);
}

int sluice_answer_for(const sluice_table *table, uint64_t message_bytes, sluice_judge *judge,
                      const void *pipeline, sluice_answer *answer)
{
    int code = schedule(table, message_bytes, judge, pipeline, answer);
    if (code == SLUICE_OK)
        code = repeated(table, message_bytes, judge, pipeline, answer);
    if (code == SLUICE_OK)
        code = sluice_certificate(table, message_bytes, &answer->cut_gap, &answer->repeat_gap);
    return code;
}
