#include "answer.h"

/* Source    clients/c/include/sluice.h; the evaluator comes from the caller.
   Cost      two bisections, three passes over the fragments, and the evaluator's own.
   Exact     sizes are below 2^53, so they are the same numbers as doubles. */

static int evaluate_fragments(const sluice_answer *answer, uint64_t count, double *latency_us)
{
    int declined =
        answer->evaluator(answer->pipeline, 1, (int64_t)count, answer->sizes, latency_us);
    return declined ? SLUICE_E_ARGUMENT : SLUICE_OK;
}

/* The number behind `text`, and a comma; what is then behind it. */
static char *write_number(char *text, uint64_t number)
{
    char digits[20];
    int count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    while (count)
        *text++ = digits[--count];
    *text++ = ',';
    return text;
}

static int schedule(sluice_answer *answer, uint64_t message_bytes)
{
    size_t fragments = 0;
    int code = sluice_schedule(answer->table, message_bytes, answer->fragment_bytes,
                               (size_t)answer->capacity, &fragments);
    if (code != SLUICE_OK)
        return code;
    answer->fragments = fragments;
    char *end = answer->text;
    for (size_t i = 0; i < fragments; i++) {
        end = write_number(end, answer->fragment_bytes[i]);
        answer->sizes[i] = (double)answer->fragment_bytes[i];
    }
    answer->text_bytes = (uint64_t)(end - answer->text) - 1;
    return evaluate_fragments(answer, fragments, &answer->cut_us);
}

static int repeated(sluice_answer *answer, uint64_t message_bytes)
{
    uint64_t size = 0;
    int code = sluice_repeat(answer->table, message_bytes, &size);
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
    return evaluate_fragments(answer, answer->repeats, &answer->repeat_us);
}

int sluice_answer_for(sluice_answer *answer, uint64_t message_bytes)
{
    int code = schedule(answer, message_bytes);
    if (code == SLUICE_OK)
        code = repeated(answer, message_bytes);
    if (code == SLUICE_OK)
        code = sluice_certificate(answer->table, message_bytes, &answer->cut_gap,
                                  &answer->repeat_gap);
    return code;
}
