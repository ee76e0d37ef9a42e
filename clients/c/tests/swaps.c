/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that read while the table is swapped see one table or the other, each of them whole.

       swaps ONE OTHER BAD SWAPS THREADS

   ONE and OTHER are table files with a range in common, BAD one
   that is damaged. */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "support.h"

enum { MESSAGES = 16, MAX_FRAGMENTS = 64, MIN_READS = 100 };

/* What a table says, found before any thread starts. */
typedef struct answers {
    sluice_description about;
    uint64_t repeats[MESSAGES];
    uint64_t fragments[MESSAGES][MAX_FRAGMENTS];
    size_t counts[MESSAGES];
} answers;

static sluice_live live;
static answers expected[2];
static uint64_t messages[MESSAGES];
static atomic_int ended;
static _Atomic uint64_t visits; /* of all readers; relaxed, so that it orders nothing */

static uint64_t larger(uint64_t one, uint64_t other)
{
    return one > other ? one : other;
}

static void choose_messages(void)
{
    const sluice_description *one = &expected[0].about, *other = &expected[1].about;
    uint64_t minimum = larger(one->min_message_bytes, other->min_message_bytes);
    uint64_t maximum = one->max_message_bytes < other->max_message_bytes ? one->max_message_bytes
                                                                     : other->max_message_bytes;
    CHECK(minimum < maximum);
    CHECK(larger(one->max_schedule_fragments, other->max_schedule_fragments) <= MAX_FRAGMENTS);
    for (uint64_t i = 0; i < MESSAGES; i++)
        messages[i] = minimum + (maximum - minimum) * i / (MESSAGES - 1);
}

static void answer(const sluice_table *table, answers *found, size_t i)
{
    size_t count = 0;
    CHECK(sluice_repeat(table, messages[i], &found->repeats[i]) == SLUICE_OK);
    CHECK(sluice_schedule(table, messages[i], found->fragments[i], MAX_FRAGMENTS, &count) ==
          SLUICE_OK);
    found->counts[i] = count;
}

static void find_answers(const char *path, answers *found)
{
    sluice_table table;
    CHECK(sluice_table_open(&table, path) == SLUICE_OK);
    for (size_t i = 0; i < MESSAGES; i++)
        answer(&table, found, i);
    sluice_table_close(&table);
}

/* Which of the two tables this is, by all that it says of itself. */
static const answers *known(const sluice_table *table)
{
    sluice_description about;
    CHECK(describe_table(table, &about) == SLUICE_OK);
    for (size_t i = 0; i < 2; i++)
        if (memcmp(&about, &expected[i].about, sizeof about) == 0)
            return &expected[i];
    fprintf(stderr, "a reader has neither of the tables\n");
    abort();
}

/* The iterator inside one visit, while other tables may come and go. */
static void check_cut(const sluice_table *table, const answers *right, size_t i)
{
    sluice_cut cut;
    uint64_t size = 0;
    CHECK(sluice_cut_begin(&cut, table, messages[i]) == SLUICE_OK);
    for (size_t at = 0; at < right->counts[i]; at++)
        CHECK(sluice_cut_next(&cut, &size) == 1 && size == right->fragments[i][at]);
    CHECK(sluice_cut_next(&cut, &size) == 0);
}

/* One visit in so many lets others run in its midst, so that swaps come while it is inside. */
enum { LINGERING = 8 };

static void check_visit(uint64_t number, answers *found)
{
    size_t i = (size_t)(number % MESSAGES);
    sluice_ticket outer, inner;
    const sluice_table *table = sluice_live_enter(&live, &outer);
    const answers *right = known(table);
    if (number % LINGERING == 0)
        sched_yield();
    known(sluice_live_enter(&live, &inner)); /* visits nest; this one may be of the other table */
    answer(table, found, i);
    sluice_live_leave(&live, &inner);
    CHECK(found->repeats[i] == right->repeats[i] && found->counts[i] == right->counts[i]);
    CHECK(memcmp(found->fragments[i], right->fragments[i],
                 right->counts[i] * sizeof(uint64_t)) == 0);
    check_cut(table, right, i);
    sluice_live_leave(&live, &outer);
}

static void *read_until_ended(void *reads)
{
    static _Thread_local answers found;
    uint64_t *done = reads;
    while (!atomic_load_explicit(&ended, memory_order_relaxed) || *done < MIN_READS) {
        check_visit(*done, &found);
        ++*done;
        atomic_fetch_add_explicit(&visits, 1, memory_order_relaxed);
        sched_yield(); /* so that a thread is seldom put aside inside, which the writer would wait for */
    }
    return NULL;
}

/* Swap, waiting for an alternative; a file that is refused changes nothing. */
static int swap(const char *path)
{
    int code;
    while ((code = sluice_live_swap(&live, path)) == SLUICE_E_BUSY)
        sched_yield();
    return code;
}

/* Until the readers, all together, have made more visits than there were swaps. */
static void wait_for_visits(uint64_t swaps)
{
    while (atomic_load_explicit(&visits, memory_order_relaxed) <= swaps)
        sched_yield();
}

static void swap_often(char **argv, uint64_t swaps)
{
    for (uint64_t i = 0; i < swaps; i++) {
        if (i % 16 == 0)
            CHECK(swap(argv[3]) == SLUICE_E_CHECKSUM);
        CHECK(swap(argv[1 + (i + 1) % 2]) == SLUICE_OK);
        wait_for_visits(i);
    }
    atomic_store_explicit(&ended, 1, memory_order_relaxed);
}

/* Another thread that swaps now and then, and gets an error where both do at the same time. */
static void *alternative(void *path)
{
    while (!atomic_load_explicit(&ended, memory_order_relaxed)) {
        int code = sluice_live_swap(&live, path);
        CHECK(code == SLUICE_OK || code == SLUICE_E_BUSY);
        for (int i = 0; i < 100; i++)
            sched_yield();
    }
    return NULL;
}

static void describe(const char *path, sluice_description *about)
{
    sluice_table table;
    CHECK(sluice_table_open(&table, path) == SLUICE_OK);
    CHECK(describe_table(&table, about) == SLUICE_OK);
    sluice_table_close(&table);
}

int main(int argc, char **argv)
{
    pthread_t threads[64], other;
    uint64_t reads[64] = {0}, all = 0;
    size_t count;
    CHECK(argc == 6);
    count = (size_t)strtoul(argv[5], NULL, 10);
    CHECK(count >= 1 && count <= 64);
    describe(argv[1], &expected[0].about);
    describe(argv[2], &expected[1].about);
    choose_messages();
    find_answers(argv[1], &expected[0]);
    find_answers(argv[2], &expected[1]);
    CHECK(sluice_live_open(&live, argv[1]) == SLUICE_OK);
    for (size_t i = 0; i < count; i++)
        CHECK(pthread_create(&threads[i], NULL, read_until_ended, &reads[i]) == 0);
    CHECK(pthread_create(&other, NULL, alternative, argv[2]) == 0);
    swap_often(argv, strtoull(argv[4], NULL, 10));
    for (size_t i = 0; i < count; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(pthread_join(other, NULL) == 0);
    sluice_live_close(&live);
    for (size_t i = 0; i < count; i++)
        all += reads[i];
    printf("swaps: %s by one thread and some by another, %llu visits by %zu others\n", argv[4],
           (unsigned long long)all, count);
    return 0;
}
