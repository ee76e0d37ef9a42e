/* SPDX-License-Identifier: Apache-2.0 */
/* The reader beside keep_fresh.sh: threads that look up without ever waiting, and one that notices a
   new file and swaps it in. It needs no network: any program may rename a new file into its place.

       watch TABLE.slt BYTES

   Prints the best size to repeat for a message of so many bytes, and again whenever a new file changes
   it; SIGHUP makes it look at the file at once, SIGINT and SIGTERM end it. */
#define _XOPEN_SOURCE 700 /* st_mtim, sigaction */

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "sluice.h"

static sluice_live live;
static uint64_t message_bytes;
static atomic_int is_running = 1;
static volatile sig_atomic_t is_ended;

static void on_signal(int number)
{
    if (number != SIGHUP) /* SIGHUP has done its work by waking the one who sleeps */
        is_ended = 1;
}

/* Any thread of the library, at any time: between enter and leave the table does not change. */
static uint64_t fragment_size(uint64_t otherwise)
{
    sluice_ticket ticket;
    uint64_t size;
    const sluice_table *table = sluice_live_enter(&live, &ticket);
    if (!table || sluice_repeat(table, message_bytes, &size) != SLUICE_OK)
        size = otherwise;
    sluice_live_leave(&live, &ticket);
    return size;
}

static void *read_on(void *nothing)
{
    uint64_t before = 0;
    struct timespec pause = {0, 1000000};
    while (atomic_load_explicit(&is_running, memory_order_relaxed)) {
        uint64_t size = fragment_size(65536);
        if (size != before) {
            printf("%" PRIu64 " bytes: repeat %" PRIu64 "\n", message_bytes, size);
            fflush(stdout);
        }
        before = size;
        nanosleep(&pause, NULL);
    }
    return nothing;
}

/* Start the thread that reads, with the signals left to the one who watches. */
static int start_reader(pthread_t *reader)
{
    sigset_t ours, before;
    int code;
    sigemptyset(&ours);
    sigaddset(&ours, SIGHUP);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ours, &before);
    code = pthread_create(reader, NULL, read_on, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

/* A file that was renamed into its place is another one: it has another number. The rest tells apart
   what has the number of a file that is gone. */
static int is_new(const struct stat *now, const struct stat *before)
{
    return now->st_ino != before->st_ino || now->st_dev != before->st_dev ||
           now->st_size != before->st_size || now->st_mtim.tv_sec != before->st_mtim.tv_sec ||
           now->st_mtim.tv_nsec != before->st_mtim.tv_nsec;
}

/* Every second, or when a signal comes. The file is looked at before it is opened, so that one that
   comes in between is noticed the next time. */
static void watch(const char *path, struct stat before)
{
    struct timespec pause = {1, 0};
    while (!is_ended) {
        struct stat now;
        int code;
        nanosleep(&pause, NULL);
        if (stat(path, &now) != 0 || !is_new(&now, &before))
            continue;
        before = now;
        code = sluice_live_swap(&live, path);
        if (code != SLUICE_OK)
            fprintf(stderr, "%s: %s; the table before it stays\n", path, sluice_error_text(code));
    }
}

static void listen_to_signals(void)
{
    struct sigaction action = {0};
    action.sa_handler = on_signal;
    sigaction(SIGHUP, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int main(int argc, char **argv)
{
    pthread_t reader;
    struct stat status = {0};
    int code;
    if (argc != 3) {
        fprintf(stderr, "usage: watch TABLE.slt BYTES\n");
        return 2;
    }
    message_bytes = strtoull(argv[2], NULL, 10);
    listen_to_signals();
    stat(argv[1], &status);
    code = sluice_live_open(&live, argv[1]);
    if (code != SLUICE_OK || start_reader(&reader) != 0) {
        fprintf(stderr, "%s: %s\n", argv[1], sluice_error_text(code));
        return 1;
    }
    watch(argv[1], status);
    atomic_store_explicit(&is_running, 0, memory_order_relaxed);
    pthread_join(reader, NULL);
    sluice_live_close(&live);
    return 0;
}
