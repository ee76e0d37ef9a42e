/* A link between two network namespaces, with a rate and a delay: slow_link A B BYTES_PER_S DELAY_US
 *
 * Makes a device "slow0" in each; what is written to one is read from the other, each direction by
 * itself: packets leave one behind the other at the rate, and arrive the delay later. No burst
 * passes. Prints "ready", and ends when its standard input does.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { PACKET = 9216, SLOTS = 4096 };

struct packet {
    int64_t due_ns;
    ssize_t length;
    char bytes[PACKET];
};

struct direction {
    int from, to;
    int64_t free_ns; /* when the last packet has left */
    unsigned first, next;
    struct packet *packets;
};

static int64_t now_ns(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int device_in(const char *space)
{
    char path[128];
    struct ifreq asked = {.ifr_name = "slow0", .ifr_flags = IFF_TUN | IFF_NO_PI};
    snprintf(path, sizeof path, "/run/netns/%s", space);
    int names = open(path, O_RDONLY | O_CLOEXEC);
    if (names < 0 || setns(names, CLONE_NEWNET))
        fail(space);
    close(names);
    int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    if (device < 0 || ioctl(device, TUNSETIFF, &asked))
        fail("/dev/net/tun");
    return device;
}

/* Takes what has been sent, while there is room: a full link leaves it to the sender's queue. */
static void take(struct direction *way, double ns_per_byte, int64_t delay_ns)
{
    while (way->next - way->first < SLOTS) {
        struct packet *packet = &way->packets[way->next % SLOTS];
        packet->length = read(way->from, packet->bytes, PACKET);
        if (packet->length <= 0)
            return;
        int64_t begin = now_ns();
        if (begin < way->free_ns)
            begin = way->free_ns;
        way->free_ns = begin + (int64_t)(packet->length * ns_per_byte);
        packet->due_ns = way->free_ns + delay_ns;
        way->next++;
    }
}

/* Hands on what is due; returns when the next packet is. */
static int64_t give(struct direction *way, int64_t latest_ns)
{
    while (way->first != way->next) {
        struct packet *packet = &way->packets[way->first % SLOTS];
        if (packet->due_ns > now_ns())
            return packet->due_ns < latest_ns ? packet->due_ns : latest_ns;
        if (write(way->to, packet->bytes, packet->length) < 0 && errno != EIO)
            fail("write");
        way->first++;
    }
    return latest_ns;
}

int main(int count, char **words)
{
    if (count != 5) {
        fputs("slow_link A B BYTES_PER_S DELAY_US\n", stderr);
        return 2;
    }
    double ns_per_byte = 1e9 / atof(words[3]);
    int64_t delay_ns = (int64_t)(1e3 * atof(words[4]));
    int a = device_in(words[1]), b = device_in(words[2]);
    struct direction ways[2] = {{.from = a, .to = b}, {.from = b, .to = a}};
    for (int way = 0; way < 2; way++)
        if (!(ways[way].packets = malloc(SLOTS * sizeof(struct packet))))
            fail("malloc");
    puts("ready");
    fflush(stdout);
    for (;;) {
        int64_t until_ns = now_ns() + 100000000;
        for (int way = 0; way < 2; way++) {
            take(&ways[way], ns_per_byte, delay_ns);
            until_ns = give(&ways[way], until_ns);
        }
        int64_t wait_ns = until_ns - now_ns();
        struct timespec wait = {0, wait_ns > 0 ? wait_ns : 0};
        struct pollfd polled[3] = {{.fd = 0, .events = POLLIN}, {.fd = a}, {.fd = b}};
        for (int way = 0; way < 2; way++)
            if (ways[way].next - ways[way].first < SLOTS)
                polled[1 + way].events = POLLIN;
        if (ppoll(polled, 3, &wait, NULL) < 0 && errno != EINTR)
            fail("poll");
        if (polled[0].revents)
            return 0;
    }
}
