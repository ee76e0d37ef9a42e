/* SPDX-License-Identifier: Apache-2.0 */
/* Random interleavings of what others do to a file and what readers do with its tables: each answer sums
   and keeps the limits, or there is an error; no signal, and no step hangs. Each has 1 s of processor time,
   its children's with it: what other programs take is none of that, so that a busy machine fails no step.
   One that waits instead is ended after 30 s, which no machine makes of a few milliseconds. The longest
   of both is printed.

       interleave STEPS SEED FOLDER ONE OTHER

   ONE and OTHER are table files; FOLDER is where a file may be written. A second process writes into
   the file all the time, so that reading it meets every state of it. */
#define _DEFAULT_SOURCE
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "promises.h"

enum { MESSAGES = 8, MAX_LOST = 12, STEP_S = 30, PROCESSOR_MS = 1000, FORKS_ONE_IN = 16, ENDED = 20 };

static struct {
    unsigned char *bytes[2];
    size_t lengths[2];
    char path[4096], beside[4096];
    uint64_t random;
} all;

static sluice_live live;
static sluice_ticket lost[MAX_LOST];
static int lost_count;
static long codes[16]; /* how often each of them was given */

/* Xorshift64 (Marsaglia, Journal of Statistical Software 8/14, 2003). */
static uint64_t below(uint64_t limit)
{
    all.random ^= all.random << 13;
    all.random ^= all.random >> 7;
    all.random ^= all.random << 17;
    return all.random % limit;
}

/* Write into the file as cp does, perhaps not to the end; O_TRUNC comes first, as there. */
static void overwrite(void)
{
    uint64_t which = below(2);
    size_t length = below(2) ? all.lengths[which] : (size_t)below(all.lengths[which] + 1);
    write_bytes(all.path, all.bytes[which], length);
}

static void replace(void)
{
    uint64_t which = below(2);
    write_bytes(all.beside, all.bytes[which], all.lengths[which]);
    CHECK(rename(all.beside, all.path) == 0);
}

static void change_the_file(void)
{
    switch (below(8)) {
    case 0: (void)!truncate(all.path, (off_t)below(2000)); break;
    case 1: unlink(all.path); break;
    case 2:
    case 3: overwrite(); break;
    default: replace(); break;
    }
}

static void check_answers(const sluice_table *table)
{
    sluice_description about;
    uint64_t messages[MESSAGES];
    CHECK(describe_table(table, &about) == SLUICE_OK);
    for (int i = 0; i < MESSAGES; i++)
        messages[i] = about.min_message_bytes +
                      below(about.max_message_bytes - about.min_message_bytes + 1);
    check_promises(table, messages, MESSAGES);
}

static void count_code(int code)
{
    CHECK(code <= 0 && code > -16);
    codes[-code]++;
}

static void check_live(void)
{
    sluice_ticket ticket;
    const sluice_table *table = sluice_live_enter(&live, &ticket);
    CHECK(table);
    check_answers(table);
    sluice_live_leave(&live, &ticket);
}

static void swap_live(void)
{
    uint64_t which = below(2);
    switch (below(4)) {
    case 0: count_code(sluice_live_try_swap(&live, all.path)); break;
    case 1: count_code(sluice_live_swap_within(&live, all.path, 2)); break;
    case 2:
        count_code(sluice_live_swap_memory(&live, all.bytes[which],
                                           (size_t)below(all.lengths[which] + 1), 0));
        break;
    default:
        CHECK(sluice_live_swap_memory(&live, all.bytes[which], all.lengths[which], 0) == SLUICE_OK);
    }
}

/* A thread that enters and ends without leaving. */
static void *enter_and_end(void *ticket)
{
    check_answers(sluice_live_enter(&live, ticket));
    return NULL;
}

static void lose_a_reader(void)
{
    pthread_t thread;
    if (lost_count == MAX_LOST)
        while (lost_count > 0)
            sluice_live_leave(&live, &lost[--lost_count]);
    CHECK(pthread_create(&thread, NULL, enter_and_end, &lost[lost_count++]) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

/* A child that swaps and reads, with or without sluice_live_after_fork, and is killed inside. */
static void fork_and_kill(void)
{
    int status = 0, is_called = (int)below(2);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        sluice_ticket ticket;
        alarm(STEP_S);
        if (is_called)
            sluice_live_after_fork(&live);
        swap_live();
        check_live();
        check_answers(sluice_live_enter(&live, &ticket));
        raise(SIGKILL);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* A table by itself: it answers after whatever comes next, too. */
static void open_a_table(void)
{
    sluice_table table;
    int code = sluice_table_open(&table, all.path);
    count_code(code);
    if (code != SLUICE_OK)
        return;
    change_the_file();
    check_answers(&table);
    sluice_table_close(&table);
}

static void step(void)
{
    if (below(FORKS_ONE_IN) == 0)
        fork_and_kill();
    switch (below(6)) {
    case 0: change_the_file(); break;
    case 1: swap_live(); break;
    case 2: lose_a_reader(); break;
    case 3: CHECK(sluice_live_reclaim(&live) >= 0); break;
    default: open_a_table(); break;
    }
    check_live();
}

/* The other process: it ends when it is killed, or when this one is gone. */
static pid_t disturb(uint64_t seed)
{
    pid_t parent = getpid(), child = fork();
    CHECK(child >= 0);
    if (child != 0)
        return child;
    all.random = seed;
    strcat(all.beside, ".other");
    while (getppid() == parent) {
        change_the_file();
        usleep(50);
    }
    _exit(ENDED);
}

static double now_ms(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* Of this process, all its threads, and of its children that have ended. */
static double processor_ms(void)
{
    double ms = 0.0;
    for (int i = 0; i < 2; i++) {
        struct rusage used;
        CHECK(getrusage(i ? RUSAGE_CHILDREN : RUSAGE_SELF, &used) == 0);
        ms += (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3;
        ms += (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-3;
    }
    return ms;
}

static void print_codes(long steps, double longest_ms, double dearest_ms)
{
    printf("interleave: %ld steps, the longest %.0f ms, of processor time %.0f ms at most", steps,
           longest_ms, dearest_ms);
    for (int i = 0; i < 16; i++)
        if (codes[i])
            printf(", %ld x %d", codes[i], -i);
    printf("\n");
}

int main(int argc, char **argv)
{
    double longest_ms = 0.0, dearest_ms = 0.0;
    pid_t other;
    long steps;
    CHECK(argc == 6);
    steps = strtol(argv[1], NULL, 10);
    all.random = strtoull(argv[2], NULL, 10) * 2 + 1;
    joined(all.path, sizeof all.path - 16, argv[3], "interleaved.slt");
    joined(all.beside, sizeof all.beside - 16, argv[3], "interleaved.part");
    for (int i = 0; i < 2; i++)
        all.bytes[i] = bytes_of(argv[4 + i], &all.lengths[i]);
    replace();
    CHECK(sluice_live_open_memory(&live, all.bytes[0], all.lengths[0]) == SLUICE_OK);
    other = disturb(all.random + 2);
    for (long i = 0; i < steps; i++) {
        double begin_ms = now_ms(), before_ms = processor_ms(), took_ms, used_ms;
        alarm(STEP_S);
        step();
        took_ms = now_ms() - begin_ms;
        used_ms = processor_ms() - before_ms;
        CHECK(used_ms <= PROCESSOR_MS);
        longest_ms = took_ms > longest_ms ? took_ms : longest_ms;
        dearest_ms = used_ms > dearest_ms ? used_ms : dearest_ms;
    }
    alarm(0);
    CHECK(kill(other, SIGKILL) == 0 && waitpid(other, NULL, 0) == other);
    sluice_live_close(&live);
    print_codes(steps, longest_ms, dearest_ms);
    free(all.bytes[0]);
    free(all.bytes[1]);
    return 0;
}
