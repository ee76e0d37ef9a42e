/* SPDX-License-Identifier: Apache-2.0 */
/* A mover of two threads that logs when each had which fragment: one sums, the other encodes what was summed.

       cc -O2 -Iclients/c/include clients/c/examples/overlapped.c -pthread -o overlapped && ./overlapped stages.csv
       sluice fit stages.csv */
#define _POSIX_C_SOURCE 200809L
#define SLUICE_TRACE_IMPLEMENTATION
#include <sluice_trace.h>

#include <pthread.h>

#define BYTES (1u << 20) /* of a message */
#define MESSAGES 48u

static unsigned char from[BYTES], to[BYTES];
static unsigned sum;
static uint64_t summed; /* fragments so far, of all messages */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static size_t fragment_bytes(uint64_t message)
{
    return (size_t)4096 << (message % 6);
}

static void *encode_all(void *unused)
{
    uint64_t before = 0;
    unsigned key = 1;
    for (uint64_t message = 0; message < MESSAGES; message++) {
        const size_t bytes = fragment_bytes(message);
        for (uint64_t fragment = 0; fragment * bytes < BYTES; fragment++) {
            pthread_mutex_lock(&lock);
            while (summed == before)
                pthread_cond_wait(&changed, &lock);
            pthread_mutex_unlock(&lock);
            before++;

            SLUICE_TRACE_BEGIN(encode);
            for (size_t i = fragment * bytes; i < (fragment + 1) * bytes; i++) {
                key = key * 69069u + 1u;
                to[i] = (unsigned char)(from[i] ^ key >> 24);
            }
            SLUICE_TRACE_END_OF(encode, bytes, message, fragment);
        }
    }
    return unused;
}

int main(int count, char **words)
{
    pthread_t encoder;
    for (size_t i = 0; i < BYTES; i++)
        from[i] = (unsigned char)(i * 31u);
    if (pthread_create(&encoder, NULL, encode_all, NULL) != 0)
        return 1;
    for (uint64_t message = 0; message < MESSAGES; message++) {
        const size_t bytes = fragment_bytes(message);
        for (uint64_t fragment = 0; fragment * bytes < BYTES; fragment++) {
            SLUICE_TRACE_BEGIN(checksum);
            for (size_t i = fragment * bytes; i < (fragment + 1) * bytes; i++)
                sum = sum * 33u + from[i];
            SLUICE_TRACE_END_OF(checksum, bytes, message, fragment);

            pthread_mutex_lock(&lock);
            summed++;
            pthread_cond_signal(&changed);
            pthread_mutex_unlock(&lock);
        }
    }
    pthread_join(encoder, NULL);
    sum ^= to[sum % BYTES];
    const int failed = sluice_trace_write(count > 1 ? words[1] : "stages.csv");
    if (failed != 0)
        fprintf(stderr, "cannot write: %s\n", strerror(failed));
    else
        printf("traced %u messages; checksum %u\n", MESSAGES, sum);
    return failed != 0;
}
