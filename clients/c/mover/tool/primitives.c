/* SPDX-License-Identifier: Apache-2.0 */
/* What a message layer is made of, each by itself: signals between two processes (Strumpen94, Table 1 and Figure 16),
   copies (Figure 10), and messages there and back by blocking sockets and by the mover (Table 2, Figures 18 and 19).
   Times are one way: half of there and back. */
#include "tool.h"

#include <byteswap.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TAG = 1, TURNS = 50 };

static void printed(const char *what, uint64_t bytes, uint64_t repetition, int64_t ns, double times)
{
    printf("%s,%llu,%llu,%.4f\n", what, (unsigned long long)bytes, (unsigned long long)repetition,
           (double)ns / times / 1e3);
}

/* --- signals ---------------------------------------------------------------------------------- */

typedef enum signal_kind { PIPE, SEMAPHORE, EVENTFD, SIGNALS } signal_kind;

static const char *const SIGNAL_NAMES[SIGNALS] = {"pipe", "semaphore", "eventfd"};

/* Both directions of a signal. */
typedef struct wires {
    signal_kind kind;
    int read[2], write[2]; /* of the near and the far process */
    sem_t *semaphores;     /* which the near, and the far one waits for */
    size_t bytes;
    unsigned char *message;
} wires;

static void moved(int file, unsigned char *bytes, size_t count, bool is_write)
{
    while (count > 0) {
        const ssize_t some = is_write ? write(file, bytes, count) : read(file, bytes, count);
        if (some <= 0 && errno != EINTR)
            refuse(TOOL_FAILED, "a signal: %s", strerror(errno));
        if (some > 0) {
            bytes += some;
            count -= (size_t)some;
        }
    }
}

static void signalled(const wires *by, bool is_far)
{
    if (by->kind == SEMAPHORE)
        sem_post(&by->semaphores[!is_far]);
    else
        moved(by->write[is_far], by->message, by->bytes, true);
}

static void awaited(const wires *by, bool is_far)
{
    if (by->kind != SEMAPHORE) {
        moved(by->read[is_far], by->message, by->bytes, false);
        return;
    }
    while (sem_wait(&by->semaphores[is_far]) != 0 && errno == EINTR) {
    }
}

static void connected(wires *by)
{
    int ends[2][2];
    if (by->kind == SEMAPHORE) {
        by->semaphores = mmap(NULL, 2 * sizeof(sem_t), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (by->semaphores == MAP_FAILED || sem_init(&by->semaphores[0], 1, 0) != 0 ||
            sem_init(&by->semaphores[1], 1, 0) != 0)
            refuse(TOOL_FAILED, "semaphores: %s", strerror(errno));
        return;
    }
    for (int i = 0; i < 2; i++) {
        if (by->kind == EVENTFD)
            ends[i][0] = ends[i][1] = eventfd(0, 0);
        else if (pipe(ends[i]) != 0)
            ends[i][0] = -1;
        if (ends[i][0] < 0)
            refuse(TOOL_FAILED, "%s: %s", SIGNAL_NAMES[by->kind], strerror(errno));
        by->write[i] = ends[i][1];
        by->read[!i] = ends[i][0];
    }
}

static void signals_of(const tool_options *asked, signal_kind kind, uint64_t bytes)
{
    wires by = {.kind = kind, .bytes = (size_t)bytes};
    int child;
    by.message = malloc(by.bytes);
    if (by.message == NULL)
        refuse(TOOL_FAILED, "out of memory");
    memset(by.message, 1, by.bytes);
    connected(&by);
    child = start_process();
    pin_to(asked->cpus[child == 0]);
    for (uint64_t i = 0; i <= asked->repetitions; i++) {
        const int64_t begin = now_ns();
        for (int turn = 0; turn < TURNS; turn++) {
            if (child == 0) {
                awaited(&by, true);
                signalled(&by, true);
            } else {
                signalled(&by, false);
                awaited(&by, false);
            }
        }
        if (child != 0 && i > 0) /* the first is not counted */
            printed(SIGNAL_NAMES[kind], bytes, i - 1, now_ns() - begin, 2.0 * TURNS);
    }
    if (child == 0)
        exit(0);
    await_processes(&child, 1);
    free(by.message);
    for (int i = 0; i < 2 && kind != SEMAPHORE; i++) {
        close(by.read[i]);
        if (kind == PIPE)
            close(by.write[i]);
    }
}

static void signals(const tool_options *asked)
{
    signals_of(asked, SEMAPHORE, sizeof(uint64_t));
    signals_of(asked, EVENTFD, sizeof(uint64_t));
    for (int i = 0; i < asked->size_count; i++)
        signals_of(asked, PIPE, asked->sizes[i]);
}

/* --- copies ----------------------------------------------------------------------------------- */

/* Numbers of 8 bytes in the other order of bytes, one by one. */
static void converted(uint64_t *to, const uint64_t *from, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        to[i] = bswap_64(from[i]);
}

/* The compiler has to have made what is at this place. */
static void used(void *bytes)
{
    __asm__ volatile("" : : "r"(bytes) : "memory");
}

static void copies(const tool_options *asked)
{
    for (int i = 0; i < asked->size_count; i++) {
        const uint64_t count = (asked->sizes[i] + 7) / 8;
        uint64_t *from = calloc((size_t)count, sizeof *from), *to = calloc((size_t)count, sizeof *to);
        if (from == NULL || to == NULL)
            refuse(TOOL_FAILED, "out of memory");
        for (uint64_t j = 0; j <= asked->repetitions; j++) {
            int64_t begin = now_ns(), middle;
            for (int turn = 0; turn < TURNS; turn++) {
                converted(to, from, count);
                used(to);
            }
            middle = now_ns();
            for (int turn = 0; turn < TURNS; turn++) {
                memcpy(to, from, (size_t)asked->sizes[i]);
                used(to);
            }
            if (j == 0)
                continue;
            printed("copy", asked->sizes[i], j - 1, now_ns() - middle, TURNS);
            printed("loop", asked->sizes[i], j - 1, middle - begin, TURNS);
        }
        free(from);
        free(to);
    }
}

/* --- messages --------------------------------------------------------------------------------- */

static void direct(int socket, unsigned char *message, uint64_t bytes, bool is_send)
{
    while (bytes > 0) {
        const ssize_t some = is_send ? send(socket, message, (size_t)bytes, MSG_NOSIGNAL)
                                     : recv(socket, message, (size_t)bytes, MSG_WAITALL);
        if (some == 0 || (some < 0 && errno != EINTR))
            refuse(TOOL_FAILED, "a message: %s", some == 0 ? "the other end closed" : strerror(errno));
        if (some > 0) {
            message += some;
            bytes -= (uint64_t)some;
        }
    }
}

static void by_mover(sluice_mover *mover, unsigned char *message, uint64_t bytes, bool is_send)
{
    sluice_mover_ticket ticket;
    done(is_send ? sluice_mover_send(mover, 0, TAG, message, bytes, NULL, &ticket)
                 : sluice_mover_receive(mover, 0, TAG, message, bytes, NULL, &ticket),
         "a message");
    done(sluice_mover_wait(mover, ticket, -1, NULL), "a message");
}

static void there_and_back(const tool_options *asked, int plain, int of_mover, bool is_far)
{
    const int turns = asked->delay_us > 0.0 ? 1 : 10, yes = 1;
    uint64_t largest = 1;
    unsigned char *message;
    sluice_mover *mover;
    uint32_t peer;
    for (int i = 0; i < asked->size_count; i++)
        largest = asked->sizes[i] > largest ? asked->sizes[i] : largest;
    pin_to(asked->cpus[is_far]);
    setsockopt(plain, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    message = calloc(1, (size_t)largest);
    if (message == NULL)
        refuse(TOOL_FAILED, "out of memory");
    mover = open_mover(asked, 1, largest);
    done(sluice_mover_add_peer(mover, of_mover, &peer), "a peer");
    for (int i = 0; i < asked->size_count; i++)
        for (uint64_t j = 0; j <= asked->repetitions; j++)
            for (int how = 0; how < 2; how++) { /* in turns, so that a busy machine disturbs both */
                const int64_t begin = now_ns();
                for (int step = 0; step < 2 * turns; step++) {
                    const bool is_send = (step % 2 == 0) != is_far;
                    if (how == 0)
                        direct(plain, message, asked->sizes[i], is_send);
                    else
                        by_mover(mover, message, asked->sizes[i], is_send);
                }
                if (!is_far && j > 0)
                    printed(how == 0 ? "direct" : "mover", asked->sizes[i], j - 1,
                            now_ns() - begin, 2.0 * turns);
            }
    finish_mover(mover);
    free(message);
}

static void messages(const tool_options *asked)
{
    int plain[2], of_mover[2], child;
    connect_pair(asked, plain);
    connect_pair(asked, of_mover);
    child = start_process();
    if (child == 0) {
        close(plain[0]);
        close(of_mover[0]);
        there_and_back(asked, plain[1], of_mover[1], true);
        exit(0);
    }
    close(plain[1]);
    close(of_mover[1]);
    there_and_back(asked, plain[0], of_mover[0], false);
    await_processes(&child, 1);
}

int run_primitives(const tool_options *asked)
{
    const char *what = asked->what == NULL ? "" : asked->what;
    if (asked->size_count == 0)
        refuse(TOOL_USAGE, "--sizes: expected the bytes of messages");
    for (int i = 0; i < asked->size_count; i++)
        if (asked->sizes[i] > 1u << 26)
            refuse(TOOL_USAGE, "--sizes: expected at most 64 MiB");
    printf("what,bytes,repetition,us\n");
    if (strcmp(what, "signals") == 0)
        signals(asked);
    else if (strcmp(what, "copies") == 0)
        copies(asked);
    else if (strcmp(what, "messages") == 0)
        messages(asked);
    else
        refuse(TOOL_USAGE, "expected signals, copies or messages");
    return 0;
}
