#include "probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int64_t now_ns(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

int64_t own_preemptions(void)
{
    struct rusage used;
    getrusage(RUSAGE_THREAD, &used);
    return used.ru_nivcsw;
}

int64_t preemptions_of(int process)
{
    char path[64], line[256];
    long long found = -1;
    snprintf(path, sizeof path, "/proc/%d/status", process);
    FILE *status = fopen(path, "r");
    if (!status)
        return -1;
    while (fgets(line, sizeof line, status))
        if (sscanf(line, "nonvoluntary_ctxt_switches: %lld", &found) == 1)
            break;
    fclose(status);
    return found;
}

void pin_to(int cpu)
{
    cpu_set_t one;
    if (cpu < 0)
        return;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one))
        refuse(PROBE_USAGE, "cpu %d: %s", cpu, strerror(errno));
}

void refuse(int status, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputc('\n', stderr);
    exit(status);
}

void fact(const char *name, const char *value)
{
    printf("# %s: %s\n", name, value);
}

bool write_all(int file, const void *from, size_t bytes)
{
    const unsigned char *at = from;
    while (bytes) {
        ssize_t done = write(file, at, bytes);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        at += done;
        bytes -= (size_t)done;
    }
    return true;
}

bool read_all(int file, void *to, size_t bytes)
{
    unsigned char *at = to;
    while (bytes) {
        ssize_t done = read(file, at, bytes);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        at += done;
        bytes -= (size_t)done;
    }
    return true;
}

/* Whoever spins on memory would never see that the other end has gone. */
static void end_with_the_other(int signal_number)
{
    static const char said[] = "the other end has ended\n";
    (void)signal_number;
    ssize_t written = write(STDERR_FILENO, said, sizeof said - 1);
    _exit(written < 0 ? PROBE_NOT_HERE : PROBE_FAILED);
}

int fork_end(const struct options *asked)
{
    int parent = getpid();
    fflush(NULL);
    signal(SIGCHLD, end_with_the_other);
    int child = fork();
    if (child < 0)
        refuse(PROBE_FAILED, "fork: %s", strerror(errno));
    if (child)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0); /* it ended before the line above */
    pin_to(asked->cpus[1]);
    return 0;
}

void mark(unsigned char *message, size_t bytes, uint64_t number)
{
    size_t length = bytes < sizeof number ? bytes : sizeof number;
    uint64_t last = ~number;
    memcpy(message + bytes - length, &last, length);
    memcpy(message, &number, length); /* a short message keeps this one */
}

bool is_marked(const unsigned char *message, size_t bytes, uint64_t number)
{
    unsigned char expected[2 * sizeof number];
    size_t length = bytes < sizeof expected ? bytes : sizeof expected;
    mark(expected, length, number);
    size_t half = length < sizeof number ? length : sizeof number;
    return !memcmp(message, expected, half) &&
           !memcmp(message + bytes - half, expected + length - half, half);
}

int64_t timer_ns(void)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < 10000; i++) {
        int64_t start = now_ns();
        int64_t took = now_ns() - start;
        least = took < least ? took : least;
    }
    return least;
}

const char *place_of(const char *name)
{
    const char *colon = strchr(name, ':');
    return colon ? colon + 1 : NULL;
}

/* Sockets that this thread makes from now on are in the namespace of this file. */
static void enter(int file, const char *name)
{
    if (file < 0 || setns(file, CLONE_NEWNET))
        refuse(PROBE_NOT_HERE, "network namespace %s: %s", name, strerror(errno));
    close(file);
}

static void enter_named(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "/run/netns/%s", name);
    enter(open(path, O_RDONLY | O_CLOEXEC), name);
}

static int stream_socket(void)
{
    int found = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (found < 0)
        refuse(PROBE_FAILED, "tcp: %s", strerror(errno));
    return found;
}

void open_tcp(struct stream *stream, const char *place)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    char near[64], far[64], text[64], rest;
    int one = 1, home = -1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (place) {
        if (sscanf(place, "%63[^/]/%63[^/]/%63[0-9.]%c", near, far, text, &rest) != 3 ||
            inet_pton(AF_INET, text, &address.sin_addr) != 1)
            refuse(PROBE_USAGE, "%s: expected near/far/address, as a/b/10.0.0.2", place);
        home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
        enter_named(far);
    }
    int listener = stream_socket();
    if (bind(listener, (struct sockaddr *)&address, sizeof address) ||
        listen(listener, 1) || getsockname(listener, (struct sockaddr *)&address, &length))
        refuse(PROBE_FAILED, "tcp: %s", strerror(errno));
    if (place)
        enter_named(near);
    stream->file[0] = stream_socket();
    if (connect(stream->file[0], (struct sockaddr *)&address, sizeof address))
        refuse(PROBE_FAILED, "tcp: %s", strerror(errno));
    if (place)
        enter(home, "of this process");
    stream->file[1] = accept(listener, NULL, NULL);
    if (stream->file[1] < 0)
        refuse(PROBE_FAILED, "tcp: %s", strerror(errno));
    close(listener);
    for (int end = 0; end < 2; end++)
        setsockopt(stream->file[end], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}
