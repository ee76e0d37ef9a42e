/* SPDX-License-Identifier: Apache-2.0 */
/* A long way, emulated: a process between two sockets that passes bytes on when they have been with it for a while. It
   takes in no more than a window of them before the first are acknowledged, which takes as long again, as a peer so far
   away with such a buffer would. */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CHUNKS = 4096, ROOM = 4 << 20 };

/* Bytes that came at once, by their place behind all that came before. */
typedef struct chunk {
    uint64_t end;
    int64_t due_ns;
} chunk;

typedef struct direction {
    int from, to;
    int64_t delay_ns;
    uint64_t window;
    unsigned char *bytes; /* a ring of ROOM */
    uint64_t read, passed, acknowledged;
    chunk chunks[CHUNKS]; /* a ring too */
    uint64_t first, next_due, count; /* numbers of chunks: not acknowledged, not passed on, all */
    bool has_ended, is_full, is_shut;
} direction;

static void taken_in(direction *way)
{
    const uint64_t under_way = way->read - way->acknowledged, at = way->read % ROOM;
    uint64_t most = way->window - under_way;
    ssize_t some;
    most = most < ROOM - at ? most : ROOM - at;
    some = recv(way->from, way->bytes + at, (size_t)most, MSG_DONTWAIT);
    if (some > 0) {
        chunk *made = &way->chunks[way->count++ % CHUNKS];
        way->read += (uint64_t)some;
        made->end = way->read;
        made->due_ns = now_ns() + way->delay_ns;
    } else if (some == 0 || (errno != EAGAIN && errno != EINTR)) {
        way->has_ended = true;
    }
}

/* All that is due, or what the other end takes of it. */
static void passed_on(direction *way, int64_t now)
{
    way->is_full = false;
    while (way->next_due < way->count && way->chunks[way->next_due % CHUNKS].due_ns <= now) {
        const uint64_t end = way->chunks[way->next_due % CHUNKS].end, at = way->passed % ROOM;
        uint64_t most = end - way->passed;
        ssize_t some;
        most = most < ROOM - at ? most : ROOM - at;
        some = send(way->to, way->bytes + at, (size_t)most, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (some < 0 && (errno == EAGAIN || errno == EINTR)) {
            way->is_full = true;
            return;
        }
        if (some < 0) /* nobody is there to take it */
            way->has_ended = true;
        way->passed = some < 0 ? end : way->passed + (uint64_t)some;
        if (way->passed == end)
            way->next_due++;
    }
    while (way->first < way->next_due &&
           way->chunks[way->first % CHUNKS].due_ns + way->delay_ns <= now)
        way->acknowledged = way->chunks[way->first++ % CHUNKS].end;
    if (way->has_ended && way->passed == way->read && !way->is_shut) {
        shutdown(way->to, SHUT_WR);
        way->is_shut = true;
    }
}

static int64_t earlier(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

/* When something is due next, without an event. */
static int64_t next_ns(const direction *way)
{
    int64_t found = INT64_MAX;
    if (way->next_due < way->count && !way->is_full)
        found = way->chunks[way->next_due % CHUNKS].due_ns;
    if (way->first < way->next_due)
        found = earlier(found, way->chunks[way->first % CHUNKS].due_ns + way->delay_ns);
    return found;
}

_Noreturn void delay_between(const int sockets[2], double delay_us, uint64_t window)
{
    direction *ways = calloc(2, sizeof *ways);
    const int yes = 1;
    if (ways == NULL)
        _exit(TOOL_FAILED);
    for (int i = 0; i < 2; i++) {
        ways[i].from = sockets[i];
        ways[i].to = sockets[!i];
        ways[i].delay_ns = (int64_t)(delay_us * 1e3);
        ways[i].window = window == 0 || window > ROOM ? ROOM : window;
        ways[i].bytes = malloc(ROOM);
        setsockopt(sockets[i], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        if (ways[i].bytes == NULL)
            _exit(TOOL_FAILED);
    }
    while (!ways[0].is_shut || !ways[1].is_shut) {
        struct pollfd files[2] = {{.fd = sockets[0]}, {.fd = sockets[1]}};
        int64_t next = INT64_MAX, left;
        struct timespec time;
        for (int i = 0; i < 2; i++) {
            const direction *way = &ways[i];
            if (!way->has_ended && way->read - way->acknowledged < way->window &&
                way->count - way->first < CHUNKS)
                files[i].events |= POLLIN;
            if (way->is_full)
                files[!i].events |= POLLOUT;
            next = earlier(next, next_ns(way));
        }
        left = next == INT64_MAX ? 1000000000 : next - now_ns();
        left = left < 0 ? 0 : earlier(left, 1000000000);
        time = (struct timespec){.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
        for (int i = 0; i < 2; i++)
            if (files[i].events == 0) /* an end that has hung up would be said again and again */
                files[i].fd = -1;
        if (ppoll(files, 2, &time, NULL) < 0 && errno != EINTR)
            _exit(TOOL_FAILED);
        for (int i = 0; i < 2; i++) {
            if ((files[i].events & POLLIN) != 0 &&
                (files[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0)
                taken_in(&ways[i]);
            passed_on(&ways[i], now_ns());
        }
    }
    _exit(0);
}
