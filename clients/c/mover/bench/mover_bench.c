/* SPDX-License-Identifier: Apache-2.0 */
/* What the mover costs the processor beside blocking sockets: one process sends, one receives, over TCP by loopback. Each process counts its own
   processor time, of all of its threads, so that a machine on which others run tells the same.

       mover_bench FRAGMENT BYTES ROUNDS

   Prints JSON: ns of processor time per byte of both ends together, by the mover and by blocking calls, round by round in turns; and ns per
   fragment and per message. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sluice_mover.h"

enum { MESSAGES = 8, HOW = 2 };

static uint64_t fragment, bytes;

static void must(int is_true, const char *what)
{
    if (is_true)
        return;
    fprintf(stderr, "mover_bench: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t used_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

static void connected(int ends[2])
{
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof place;
    const int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    must(bind(listener, (struct sockaddr *)&place, length) == 0 && listen(listener, 1) == 0 &&
             getsockname(listener, (struct sockaddr *)&place, &length) == 0,
         "listening");
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    must(connect(ends[0], (struct sockaddr *)&place, length) == 0, "connecting");
    ends[1] = accept(listener, NULL, NULL);
    must(ends[1] >= 0, "accepting");
    for (int i = 0; i < 2; i++)
        setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    close(listener);
}

/* A fragment a write and a fragment a read, as a program would that blocks. */
static void by_blocking(int socket, unsigned char *message, int is_sender)
{
    for (int i = 0; i < MESSAGES; i++)
        for (uint64_t done = 0; done < bytes;) {
            const size_t left = (size_t)(bytes - done), most = left < fragment ? left : (size_t)fragment;
            const ssize_t some = is_sender ? send(socket, message + done, most, MSG_NOSIGNAL)
                                           : recv(socket, message + done, most, MSG_WAITALL);
            must(some > 0, "moving");
            done += (uint64_t)some;
        }
}

static void by_mover(sluice_mover *mover, unsigned char *message, int is_sender)
{
    sluice_mover_ticket tickets[MESSAGES];
    for (int i = 0; i < MESSAGES; i++)
        must((is_sender ? sluice_mover_send(mover, 0, 1, message, bytes, NULL, &tickets[i])
                        : sluice_mover_receive(mover, 0, 1, message, bytes, NULL, &tickets[i])) == 0,
             "a message");
    for (int i = 0; i < MESSAGES; i++)
        must(sluice_mover_wait(mover, tickets[i], -1, NULL) == 0, "a message");
}

/* One byte each way: the next round begins for both at once, and receives are posted first. */
static void met(int socket)
{
    char byte = 1;
    must(send(socket, &byte, 1, MSG_NOSIGNAL) == 1 && recv(socket, &byte, 1, MSG_WAITALL) == 1, "meeting");
}

static void side(int plain, int moved, int signal, int is_sender, uint64_t rounds, int64_t *times)
{
    sluice_mover_options options = {.size = sizeof options, .fragment_bytes = fragment, .never_stall = 1};
    unsigned char *message = malloc((size_t)bytes);
    sluice_mover *mover;
    uint32_t peer;
    must(message != NULL, "memory");
    memset(message, 1, (size_t)bytes);
    options.max_fragment_bytes = fragment > 4u << 20 ? fragment : 0;
    must(sluice_mover_open(&mover, &options) == 0 && sluice_mover_add_peer(mover, moved, &peer) == 0,
         "the mover");
    for (uint64_t round = 0; round <= rounds; round++)
        for (int how = 0; how < HOW; how++) {
            int64_t before;
            met(signal);
            before = used_ns();
            if (how == 0)
                by_mover(mover, message, is_sender);
            else
                by_blocking(plain, message, is_sender);
            if (round > 0) /* the first is not counted */
                times[(round - 1) * HOW + (uint64_t)how] = used_ns() - before;
        }
    met(signal);
    must(sluice_mover_close(mover, SLUICE_MOVER_DRAIN, 10000) == 0, "closing");
    free(message);
}

int main(int count, char **words)
{
    int plain[2], moved[2], signals[2], status;
    uint64_t rounds;
    int64_t *times;
    pid_t child;
    must(count == 4, "expected FRAGMENT BYTES ROUNDS");
    fragment = strtoull(words[1], NULL, 10);
    bytes = strtoull(words[2], NULL, 10);
    rounds = strtoull(words[3], NULL, 10);
    must(fragment > 0 && bytes > 0 && rounds > 0, "expected numbers from 1");
    times = mmap(NULL, 2 * rounds * HOW * sizeof *times, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(times != MAP_FAILED, "memory");
    connected(plain);
    connected(moved);
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, signals) == 0, "signals");
    child = fork();
    must(child >= 0, "a process");
    if (child == 0) {
        side(plain[1], moved[1], signals[1], 0, rounds, times + rounds * HOW);
        exit(0);
    }
    close(moved[1]);
    side(plain[0], moved[0], signals[0], 1, rounds, times);
    must(waitpid(child, &status, 0) == child && status == 0, "the receiver");
    printf("{\"fragment_bytes\": %" PRIu64 ", \"message_bytes\": %" PRIu64 ", \"messages\": %d, \"rounds\": [",
           fragment, bytes, MESSAGES);
    for (uint64_t round = 0; round < rounds; round++)
        printf("%s[%" PRId64 ", %" PRId64 "]", round > 0 ? ", " : "",
               times[round * HOW] + times[(rounds + round) * HOW],
               times[round * HOW + 1] + times[(rounds + round) * HOW + 1]);
    printf("]}\n");
    return 0;
}
