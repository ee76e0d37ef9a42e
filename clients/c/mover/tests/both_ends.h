/* SPDX-License-Identifier: Apache-2.0 */
/* What the test programs of the mover share: checks, pairs of movers, contents that tell where they belong. */
#ifndef SLUICE_TESTS_BOTH_ENDS_H
#define SLUICE_TESTS_BOTH_ENDS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sluice_mover.h"

/* Ends the program, with the place, where a condition does not hold. */
#define CHECK(condition)                                                                 \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);    \
            abort();                                                                     \
        }                                                                                \
    } while (0)

/* The same of a code, with its words. */
#define EXPECT(expected, expression)                                                     \
    do {                                                                                 \
        const int got_ = (expression);                                                   \
        if (got_ != (expected)) {                                                        \
            fprintf(stderr, "%s:%d: %s: %d (%s)\n", __FILE__, __LINE__, #expression, got_, \
                    sluice_mover_error_text(got_));                                      \
            abort();                                                                     \
        }                                                                                \
    } while (0)

#define OK(expression) EXPECT(SLUICE_MOVER_OK, expression)

static inline uint64_t mixed(uint64_t value)
{
    value += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

/* A generator of its own for each program, so that a seed means the same everywhere. */
static inline uint64_t drawn(uint64_t *state, uint64_t below)
{
    *state = mixed(*state + 1);
    return *state % below;
}

/* Bytes that no other message has, nor any other place of it. */
static inline void fill(unsigned char *bytes, uint64_t count, uint64_t name)
{
    uint64_t word = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (i % 8 == 0)
            word = mixed(name * 1000003 + i / 8);
        bytes[i] = (unsigned char)(word >> 8 * (i % 8));
    }
}

static inline bool is_filled(const unsigned char *bytes, uint64_t count, uint64_t name)
{
    uint64_t word = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (i % 8 == 0)
            word = mixed(name * 1000003 + i / 8);
        if (bytes[i] != (unsigned char)(word >> 8 * (i % 8)))
            return false;
    }
    return true;
}

static inline void pair_of(int ends[2], int buffer_bytes)
{
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    for (int i = 0; buffer_bytes > 0 && i < 2; i++) {
        CHECK(setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof buffer_bytes) == 0);
        CHECK(setsockopt(ends[i], SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof buffer_bytes) == 0);
    }
}

/* Two movers of this process, each the other's peer 0. */
static inline void both(sluice_mover *movers[2], const sluice_mover_options *options,
                        int buffer_bytes)
{
    int ends[2];
    uint32_t peer = 9;
    pair_of(ends, buffer_bytes);
    for (int i = 0; i < 2; i++) {
        OK(sluice_mover_open(&movers[i], options));
        OK(sluice_mover_add_peer(movers[i], ends[i], &peer));
        CHECK(peer == 0);
    }
}

static inline void close_both(sluice_mover *movers[2])
{
    for (int i = 0; i < 2; i++)
        OK(sluice_mover_close(movers[i], SLUICE_MOVER_DRAIN, 10000));
}

static inline sluice_mover_ticket sent(sluice_mover *mover, uint32_t tag, const void *from,
                                       uint64_t bytes)
{
    sluice_mover_ticket ticket = 0;
    OK(sluice_mover_send(mover, 0, tag, from, bytes, NULL, &ticket));
    CHECK(ticket != 0);
    return ticket;
}

static inline sluice_mover_ticket asked(sluice_mover *mover, uint32_t tag, void *to, uint64_t bytes)
{
    sluice_mover_ticket ticket = 0;
    OK(sluice_mover_receive(mover, 0, tag, to, bytes, NULL, &ticket));
    CHECK(ticket != 0);
    return ticket;
}

static inline void nap(long ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

#endif
