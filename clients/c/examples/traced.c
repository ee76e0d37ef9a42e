/* SPDX-License-Identifier: Apache-2.0 */
/* A mover that logs its own stages: copies a message in fragments of several sizes and sums them.

       cc -O2 -Iclients/c/include clients/c/examples/traced.c -o traced && ./traced stages.csv
       sluice fit stages.csv */
#define _POSIX_C_SOURCE 200809L
#define SLUICE_TRACE_IMPLEMENTATION
#include <sluice_trace.h>

#define LARGEST (1u << 18)

static unsigned char from[LARGEST], to[LARGEST];

int main(int count, char **words)
{
    unsigned sum = 0;
    for (size_t i = 0; i < LARGEST; i++)
        from[i] = (unsigned char)(i * 31u);
    for (int turn = 0; turn < 30; turn++) {
        for (size_t bytes = 64; bytes <= LARGEST; bytes *= 4) {
            SLUICE_TRACE_BEGIN(copy);
            memcpy(to, from, bytes);
            SLUICE_TRACE_END(copy, bytes);

            SLUICE_TRACE_BEGIN(checksum);
            for (size_t i = 0; i < bytes; i++)
                sum = sum * 33u + to[i];
            SLUICE_TRACE_END(checksum, bytes);
        }
    }
    const int failed = sluice_trace_write(count > 1 ? words[1] : "stages.csv");
    if (failed != 0)
        fprintf(stderr, "cannot write: %s\n", strerror(failed));
    else
        printf("traced; checksum %u\n", sum);
    return failed != 0;
}
