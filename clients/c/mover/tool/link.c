/* SPDX-License-Identifier: Apache-2.0 */
/* Processes, the sockets between them, the clock, and movers as the tool wants them. */
#include "tool.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The table of this process, if it has one: movers keep a pointer to it. */
static sluice_live live;

int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void sleep_us(double us)
{
    const int64_t until = now_ns() + (int64_t)(us * 1e3);
    const struct timespec time = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR) {
    }
}

static int64_t processor_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

void spin_us(double us)
{
    const int64_t until = processor_ns() + (int64_t)(us * 1e3);
    if (us <= 0.0)
        return;
    while (processor_ns() < until) {
    }
}

void pin_to(int cpu)
{
    cpu_set_t one;
    if (cpu < 0)
        return;
    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0)
        refuse(TOOL_NOT_HERE, "CPU %d: %s", cpu, strerror(errno));
}

static int converted(void *context, void *fragment, uint64_t offset, uint64_t bytes)
{
    const conversion *by = context;
    memset(fragment, (int)(offset % 251), bytes);
    spin_us(by->us_each + by->ns_per_byte * (double)bytes / 1e3);
    return 0;
}

static int converted_back(void *context, const void *fragment, uint64_t offset, uint64_t bytes)
{
    const conversion *by = context;
    spin_us(by->us_each + by->ns_per_byte * (double)bytes / 1e3);
    return ((const unsigned char *)fragment)[bytes - 1] != offset % 251;
}

/* The bytes are there to be checked: a fragment's are all the same, and its own. */
sluice_mover_how converting(conversion *by, const tool_options *asked, bool is_pack)
{
    sluice_mover_how how = {.size = sizeof how, .context = by};
    by->ns_per_byte = is_pack ? asked->pack_ns : asked->unpack_ns;
    by->us_each = is_pack ? asked->pack_each_us : asked->unpack_each_us;
    /* Both or none: what one end makes the other one checks. */
    if (asked->pack_ns + asked->unpack_ns + asked->pack_each_us + asked->unpack_each_us > 0.0) {
        how.pack = is_pack ? converted : NULL;
        how.unpack = is_pack ? NULL : converted_back;
    }
    return how;
}

void done(int code, const char *what)
{
    if (code != SLUICE_MOVER_OK)
        refuse(TOOL_FAILED, "%s: %s", what, sluice_mover_error_text(code));
}

/* --- sockets ---------------------------------------------------------------------------------- */

static void enter(int file, const char *name)
{
    if (file < 0 || setns(file, CLONE_NEWNET) != 0)
        refuse(TOOL_NOT_HERE, "network namespace %s: %s", name, strerror(errno));
    close(file);
}

static void enter_named(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "/run/netns/%s", name);
    enter(open(path, O_RDONLY | O_CLOEXEC), name);
}

/* Before it is connected: the window is agreed on then. */
static void set_buffers(int socket, uint64_t bytes)
{
    const int asked = (int)bytes;
    if (bytes > 0 && (setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &asked, sizeof asked) != 0 ||
                      setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &asked, sizeof asked) != 0))
        refuse(TOOL_FAILED, "the socket's buffers: %s", strerror(errno));
}

static int tcp_socket(uint64_t buffer_bytes)
{
    const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0)
        refuse(TOOL_FAILED, "tcp: %s", strerror(errno));
    set_buffers(made, buffer_bytes);
    return made;
}

static void connect_tcp(const tool_options *asked, int ends[2])
{
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof place;
    char near[64], far[64], text[64], rest;
    int listener, home = -1;
    if (asked->between != NULL) {
        if (sscanf(asked->between, "%63[^/]/%63[^/]/%63[0-9.]%c", near, far, text, &rest) != 3 ||
            inet_pton(AF_INET, text, &place.sin_addr) != 1)
            refuse(TOOL_USAGE, "--between: expected NEAR/FAR/ADDRESS, as a/b/10.0.0.2");
        home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
        enter_named(far);
    }
    listener = tcp_socket(asked->buffer_bytes);
    if (bind(listener, (struct sockaddr *)&place, length) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&place, &length) != 0)
        refuse(TOOL_FAILED, "tcp: %s", strerror(errno));
    if (asked->between != NULL)
        enter_named(near);
    ends[0] = tcp_socket(asked->buffer_bytes);
    if (connect(ends[0], (struct sockaddr *)&place, length) != 0)
        refuse(TOOL_FAILED, "tcp: %s", strerror(errno));
    ends[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (ends[1] < 0)
        refuse(TOOL_FAILED, "tcp: %s", strerror(errno));
    close(listener);
    if (asked->between != NULL)
        enter(home, "of this process");
}

void connect_pair(const tool_options *asked, int ends[2])
{
    if (asked->delay_us > 0.0) {
        int near[2], far[2];
        if (asked->between != NULL)
            refuse(TOOL_USAGE, "--delay: between namespaces the way is as it is");
        connect_tcp(asked, near);
        connect_tcp(asked, far);
        if (start_process() == 0) {
            close(near[0]);
            close(far[1]);
            delay_between((const int[]){near[1], far[0]}, asked->delay_us, asked->buffer_bytes);
        }
        close(near[1]);
        close(far[0]);
        ends[0] = near[0];
        ends[1] = far[1];
        return;
    }
    if (asked->is_tcp || asked->between != NULL) {
        connect_tcp(asked, ends);
        return;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        refuse(TOOL_FAILED, "a pair of sockets: %s", strerror(errno));
    set_buffers(ends[0], asked->buffer_bytes);
    set_buffers(ends[1], asked->buffer_bytes);
}

/* --- movers ----------------------------------------------------------------------------------- */

sluice_mover *open_mover(const tool_options *asked, uint32_t peers, uint64_t bytes)
{
    sluice_mover_options options = {.size = sizeof options};
    sluice_mover *mover;
    options.fragment_bytes = asked->fragment_bytes;
    options.max_fragment_bytes = asked->max_fragment_bytes;
    options.max_peers = peers;
    options.never_stall = 1;
    /* Two messages of fragments of one byte each at most: nothing here waits for credit. */
    options.early_bytes = peers * (2 * bytes + 64 * (bytes + 64) + (4u << 20));
    if (asked->table != NULL) {
        const int code = sluice_live_open(&live, asked->table);
        if (code != SLUICE_OK)
            refuse(TOOL_USAGE, "--table %s: %s", asked->table, sluice_error_text(code));
        options.table = &live;
    }
    done(sluice_mover_open(&mover, &options), "opening a mover");
    return mover;
}

void finish_mover(sluice_mover *mover)
{
    done(sluice_mover_close(mover, SLUICE_MOVER_DRAIN, 60000), "closing");
    sluice_live_close(&live);
}

/* --- processes -------------------------------------------------------------------------------- */

int start_process(void)
{
    const int parent = getpid();
    int child;
    fflush(stdout);
    child = fork();
    if (child < 0)
        refuse(TOOL_FAILED, "a process: %s", strerror(errno));
    if (child == 0) {
        /* What sleeps for a device wakes up on time. */
        prctl(PR_SET_TIMERSLACK, 1);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
            _exit(TOOL_FAILED);
    }
    return child;
}

void await_processes(const int *processes, int count)
{
    for (int i = 0; i < count; i++) {
        int status = 0;
        while (waitpid(processes[i], &status, 0) < 0 && errno == EINTR) {
        }
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            refuse(WIFEXITED(status) ? WEXITSTATUS(status) : TOOL_FAILED, "a process failed");
    }
}
