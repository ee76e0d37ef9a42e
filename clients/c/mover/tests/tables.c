/* SPDX-License-Identifier: Apache-2.0 */
/* A table that is swapped while messages are cut by it: each message has the cut of one table, whole.

       tables ONE OTHER SWAPS        two table files with a range in common
       tables large BYTES FOLDER     instead: one message of so many bytes, which may be more than 2^32, from a
                                     sparse file */
#include "both_ends.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

enum { MAX_FRAGMENTS = 64, AT_ONCE = 4 };

static sluice_live live;
static sluice_table tables[2];
static const char *paths[2];
static uint64_t swaps;
static _Atomic int is_over;
static _Atomic uint64_t batches; /* of messages that were asked for */

typedef struct cut {
    uint64_t sizes[MAX_FRAGMENTS];
    uint64_t count, name;
} cut;

static int seen(void *context, const void *fragment, uint64_t offset, uint64_t bytes)
{
    cut *of = context;
    unsigned char expected[65536];
    (void)offset;
    CHECK(of->count < MAX_FRAGMENTS && bytes <= sizeof expected);
    fill(expected, bytes, of->name + of->count);
    CHECK(memcmp(fragment, expected, bytes) == 0);
    of->sizes[of->count++] = bytes;
    return 0;
}

static int made(void *context, void *fragment, uint64_t offset, uint64_t bytes)
{
    cut *of = context;
    (void)offset;
    fill(fragment, bytes, of->name + of->count++);
    return 0;
}

static void *swaps_tables(void *nothing)
{
    for (uint64_t i = 0; i < swaps; i++) {
        const uint64_t before = batches;
        CHECK(sluice_live_swap_within(&live, paths[i % 2], 60000) == SLUICE_OK);
        while (batches == before) /* each table has its share of the traffic */
            nap(0);
    }
    is_over = 1;
    return nothing;
}

static bool is_of(const cut *found, int which, uint64_t message)
{
    uint64_t sizes[MAX_FRAGMENTS];
    size_t count = 0;
    CHECK(sluice_schedule(&tables[which], message, sizes, MAX_FRAGMENTS, &count) == SLUICE_OK);
    return count == found->count && memcmp(sizes, found->sizes, count * sizeof *sizes) == 0;
}

static void swapped(void)
{
    sluice_mover_options options = {.size = sizeof options, .table = &live};
    sluice_description one = {.size = sizeof one}, other = {.size = sizeof other};
    sluice_mover *movers[2];
    pthread_t thread;
    uint64_t low, high, state = 7, messages = 0, by[2] = {0};
    for (int i = 0; i < 2; i++)
        CHECK(sluice_table_open(&tables[i], paths[i]) == SLUICE_OK);
    CHECK(sluice_table_describe(&tables[0], &one) == SLUICE_OK);
    CHECK(sluice_table_describe(&tables[1], &other) == SLUICE_OK);
    low = one.min_message_bytes > other.min_message_bytes ? one.min_message_bytes
                                                          : other.min_message_bytes;
    high = one.max_message_bytes < other.max_message_bytes ? one.max_message_bytes
                                                           : other.max_message_bytes;
    CHECK(low <= high && sluice_live_open(&live, paths[0]) == SLUICE_OK);
    both(movers, &options, 0);
    CHECK(pthread_create(&thread, NULL, swaps_tables, NULL) == 0);
    while (!is_over) {
        cut from[AT_ONCE], to[AT_ONCE];
        sluice_mover_ticket in[AT_ONCE], out[AT_ONCE];
        uint64_t sizes[AT_ONCE];
        batches++;
        memset(from, 0, sizeof from);
        memset(to, 0, sizeof to);
        for (int i = 0; i < AT_ONCE; i++) {
            sluice_mover_how pack = {.size = sizeof pack, .pack = made, .context = &from[i]};
            sluice_mover_how unpack = {.size = sizeof unpack, .unpack = seen, .context = &to[i]};
            from[i].name = to[i].name = messages++ * MAX_FRAGMENTS;
            sizes[i] = low + drawn(&state, high - low + 1);
            OK(sluice_mover_receive(movers[1], 0, 1, NULL, sizes[i], &unpack, &in[i]));
            OK(sluice_mover_send(movers[0], 0, 1, NULL, sizes[i], &pack, &out[i]));
        }
        for (int i = 0; i < AT_ONCE; i++) {
            bool is_first, is_second;
            OK(sluice_mover_wait(movers[0], out[i], 60000, NULL));
            OK(sluice_mover_wait(movers[1], in[i], 60000, NULL));
            is_first = is_of(&to[i], 0, sizes[i]);
            is_second = is_of(&to[i], 1, sizes[i]);
            CHECK(is_first || is_second);
            by[0] += is_first && !is_second;
            by[1] += is_second && !is_first;
        }
    }
    CHECK(pthread_join(thread, NULL) == 0 && sluice_live_reclaim(&live) == 0);
    close_both(movers);
    sluice_live_close(&live);
    for (int i = 0; i < 2; i++)
        sluice_table_close(&tables[i]);
    printf("tables: %" PRIu64 " swaps during %" PRIu64 " messages, %" PRIu64 " and %" PRIu64
           " of them told apart\n", swaps, messages, by[0], by[1]);
}

/* Zeros but for marks at some places, so that no memory is needed for them. */
static const uint64_t MARKS = 1 << 20;

static int checked(void *context, const void *fragment, uint64_t offset, uint64_t bytes)
{
    const unsigned char *from = fragment;
    uint64_t *next = context;
    CHECK(offset == *next);
    for (uint64_t i = (MARKS - offset % MARKS) % MARKS; i < bytes; i += MARKS)
        CHECK(from[i] == (unsigned char)(1 + (offset + i) / MARKS % 255));
    *next += bytes;
    return 0;
}

static void one_large(uint64_t bytes, const char *folder)
{
    sluice_mover_options options = {.size = sizeof options, .fragment_bytes = 1 << 20};
    uint64_t next = 0;
    sluice_mover_how unpack = {.size = sizeof unpack, .unpack = checked, .context = &next};
    sluice_mover_report report = {.size = sizeof report};
    sluice_mover *movers[2];
    sluice_mover_ticket in, out;
    unsigned char *from;
    const int file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    CHECK(file >= 0 && ftruncate(file, (off_t)bytes) == 0);
    for (uint64_t at = 0; at < bytes; at += MARKS) {
        const unsigned char mark = (unsigned char)(1 + at / MARKS % 255);
        CHECK(pwrite(file, &mark, 1, (off_t)at) == 1);
    }
    from = mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0);
    CHECK(from != MAP_FAILED);
    both(movers, &options, 0);
    OK(sluice_mover_receive(movers[1], 0, 1, NULL, bytes, &unpack, &in));
    out = sent(movers[0], 1, from, bytes);
    OK(sluice_mover_wait(movers[0], out, -1, &report));
    CHECK(report.moved_bytes == bytes && report.message_bytes == bytes);
    OK(sluice_mover_wait(movers[1], in, -1, &report));
    CHECK(report.moved_bytes == bytes && next == bytes);
    close_both(movers);
    munmap(from, bytes);
    close(file);
    printf("large: %" PRIu64 " bytes in %" PRIu64 " fragments\n", bytes, report.fragments);
}

int main(int count, char **words)
{
    CHECK(count == 4);
    if (strcmp(words[1], "large") == 0) {
        one_large(strtoull(words[2], NULL, 10), words[3]);
        return 0;
    }
    paths[0] = words[1];
    paths[1] = words[2];
    swaps = strtoull(words[3], NULL, 10);
    swapped();
    return 0;
}
