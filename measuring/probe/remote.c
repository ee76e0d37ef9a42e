/* Two machines: a listener that serves one peer at a time, and the greeting of both sides.

   Greeting  the peer sends 64 bytes: "SLUICE-PROBE-" and a version (16), the token (32), what it
             wants (8) and the most bytes of a message (8); the listener answers with its own
             name and version (16) and a verdict (8). Numbers are little-endian on every machine.
   Clocks    each machine has its own, and nothing here compares them: all times are of the side
             that asks, from its sending to an answer's being back.
   Traps     whoever connects may be a port scanner: nothing is allocated before the token was
             right, and every wait ends. A blocking read has a limit of its own (SO_RCVTIMEO), and
             what comes in drops has one in all. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NAME_BYTES = 16, TOKEN_BYTES = 32, GREETING_BYTES = 64, VERDICT_BYTES = 24 };
enum { MESSAGE_S = 20, MAX_WAITING = 16, ORDER_BYTES = 16 };
#ifndef GREETING_S /* tests wait for less */
#define GREETING_S 5
#endif
#ifndef IDLE_S
#define IDLE_S 60
#endif
enum verdict { WELCOME, WRONG_VERSION, WRONG_TOKEN, TOO_LARGE, BUSY, UNKNOWN_KIND };
static const char NAME[NAME_BYTES] = "SLUICE-PROBE-1";
static const size_t NAME_PREFIX = 13; /* what follows is the version */

static int64_t in_seconds(int seconds)
{
    return now_ns() + (int64_t)seconds * 1000000000;
}

void put_number(unsigned char *to, uint64_t number)
{
    for (int i = 0; i < 8; i++)
        to[i] = (unsigned char)(number >> 8 * i);
}

uint64_t get_number(const unsigned char *from)
{
    uint64_t found = 0;
    for (int i = 0; i < 8; i++)
        found |= (uint64_t)from[i] << 8 * i;
    return found;
}

typedef ssize_t step(int file, unsigned char *at, size_t bytes);

static ssize_t read_step(int file, unsigned char *at, size_t bytes)
{
    return read(file, at, bytes);
}

static ssize_t write_step(int file, unsigned char *at, size_t bytes)
{
    return write(file, at, bytes);
}

/* All bytes before a time of now_ns; false at the end of the stream, and too late. */
static bool all_until(int file, unsigned char *at, size_t bytes, int64_t end_ns, step *done)
{
    while (bytes) {
        ssize_t moved = done(file, at, bytes);
        if (moved < 0 && errno == EINTR)
            continue;
        if (moved <= 0)
            return false; /* EAGAIN too: the socket's own limit */
        at += moved;
        bytes -= (size_t)moved;
        if (bytes && now_ns() > end_ns)
            return false;
    }
    return true;
}

static bool read_until(int file, void *to, size_t bytes, int seconds)
{
    return all_until(file, to, bytes, in_seconds(seconds), read_step);
}

static bool write_until(int file, unsigned char *from, size_t bytes, int seconds)
{
    return all_until(file, from, bytes, in_seconds(seconds), write_step);
}

static void set_limits(int file, int seconds)
{
    struct timeval limit = {.tv_sec = seconds};
    int one = 1;
    if (setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) ||
        setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit))
        refuse(PROBE_FAILED, "tcp: %s", strerror(errno));
    setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static struct addrinfo *addresses(const char *host, int port, int flags)
{
    struct addrinfo *found, wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = flags};
    char text[16];
    snprintf(text, sizeof text, "%d", port);
    int wrong = getaddrinfo(host, text, &wanted, &found);
    if (wrong)
        refuse(PROBE_USAGE, "%s: %s", host, gai_strerror(wrong));
    return found;
}

/* 32 characters; not among the words of the command line, which every user of a machine can see. */
static const char *token(void)
{
    const char *found = getenv("SLUICE_MEASURE_TOKEN");
    if (!found || strlen(found) != TOKEN_BYTES)
        refuse(PROBE_USAGE, "SLUICE_MEASURE_TOKEN: expected %d characters", TOKEN_BYTES);
    return found;
}

/* --- the side that asks ---------------------------------------------------------------------- */

static void check_verdict(const struct options *asked, const unsigned char *answer)
{
    const char *host = asked->host;
    if (memcmp(answer, NAME, NAME_PREFIX))
        refuse(PROBE_FAILED, "%s: what listens there is no probe", host);
    switch (memcmp(answer, NAME, NAME_BYTES) ? WRONG_VERSION : get_number(answer + NAME_BYTES)) {
    case WELCOME:
        return;
    case WRONG_VERSION:
        refuse(PROBE_FAILED, "%s: the listener is of another version, use the same on both sides",
               host);
    case WRONG_TOKEN:
        refuse(PROBE_FAILED, "%s: the listener has another token", host);
    case TOO_LARGE:
        refuse(PROBE_FAILED, "%s: the listener takes no messages of %zu bytes", host,
               asked->max_bytes);
    case BUSY:
        refuse(PROBE_FAILED, "%s: the listener measures with another machine", host);
    default:
        refuse(PROBE_FAILED, "%s: the listener does not know what was asked", host);
    }
}

int connect_to(const struct options *asked, enum far_kind kind)
{
    struct addrinfo *found = addresses(asked->host, asked->port, 0), *one;
    unsigned char greeting[GREETING_BYTES] = {0}, answer[VERDICT_BYTES];
    int file = -1, why = 0;
    for (one = found; one && file < 0; one = one->ai_next) {
        int made = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (made < 0)
            continue;
        set_limits(made, GREETING_S); /* the limit of sending is that of connecting too */
        if (connect(made, one->ai_addr, one->ai_addrlen)) {
            why = errno == EINPROGRESS ? ETIMEDOUT : errno;
            close(made);
        } else {
            file = made;
        }
    }
    freeaddrinfo(found);
    if (file < 0)
        refuse(PROBE_FAILED, "%s port %d: %s", asked->host, asked->port, strerror(why));
    memcpy(greeting, NAME, NAME_BYTES);
    memcpy(greeting + NAME_BYTES, token(), TOKEN_BYTES);
    put_number(greeting + NAME_BYTES + TOKEN_BYTES, kind);
    put_number(greeting + NAME_BYTES + TOKEN_BYTES + 8, asked->max_bytes);
    if (!write_until(file, greeting, sizeof greeting, GREETING_S) ||
        !read_until(file, answer, sizeof answer, GREETING_S))
        refuse(PROBE_FAILED, "%s: no answer: the listener has ended, or it is no probe",
               asked->host);
    check_verdict(asked, answer);
    set_limits(file, MESSAGE_S);
    return file;
}

/* One message and its acknowledgement: what it took here, and whether the far side was preempted. */
int64_t far_message(int file, unsigned char *from, size_t bytes, uint64_t number, bool *preempted)
{
    unsigned char order[ORDER_BYTES], answer[8], report[16];
    put_number(order, bytes);
    put_number(order + 8, number);
    mark(from, bytes, number);
    uint32_t expected = checksum(from, bytes);
    if (!write_until(file, order, sizeof order, MESSAGE_S) ||
        !read_until(file, answer, sizeof answer, MESSAGE_S)) /* it is about to receive */
        refuse(PROBE_FAILED, "the far side has ended, or does not answer");
    int64_t start = now_ns();
    bool is_there = write_until(file, from, bytes, MESSAGE_S) &&
                    read_until(file, answer, sizeof answer, MESSAGE_S);
    int64_t took = now_ns() - start;
    if (!is_there || !read_until(file, report, sizeof report, MESSAGE_S))
        refuse(PROBE_FAILED, "the far side has ended, or does not answer");
    if (get_number(answer) != number || get_number(report) != expected)
        refuse(PROBE_FAILED, "a message of %zu bytes did not arrive as it was sent", bytes);
    *preempted = get_number(report + 8) > 0;
    return took;
}

/* --- the listener ---------------------------------------------------------------------------- */

/* Orders until the peer goes: "ready", the message, its number back at once, then the report. */
static void receive_messages(int file, size_t max_bytes)
{
    unsigned char order[ORDER_BYTES], *to = memory(max_bytes), answer[8], report[16];
    set_limits(file, IDLE_S);
    while (read_until(file, order, sizeof order, IDLE_S)) {
        uint64_t bytes = get_number(order), number = get_number(order + 8);
        if (bytes < 1 || bytes > max_bytes)
            return;
        put_number(answer, number);
        int64_t before = own_preemptions();
        if (!write_until(file, answer, sizeof answer, MESSAGE_S) ||
            !read_until(file, to, bytes, MESSAGE_S) ||
            !write_until(file, answer, sizeof answer, MESSAGE_S))
            return;
        put_number(report + 8, (uint64_t)(own_preemptions() - before));
        put_number(report, checksum(to, bytes)); /* behind the acknowledgement: it takes time */
        if (!write_until(file, report, sizeof report, MESSAGE_S))
            return;
    }
}

static bool is_token(const unsigned char *shown, const char *expected)
{
    unsigned char differs = 0; /* as long for a wrong first character as for a wrong last one */
    for (int i = 0; i < TOKEN_BYTES; i++)
        differs |= (unsigned char)(shown[i] ^ (unsigned char)expected[i]);
    return !differs;
}

/* The lock is of this process: it is free again however that ends. A peer that has just gone, as
   between two sizes of a signature, is waited for. */
static bool is_alone(int lock)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int64_t end_ns = in_seconds(GREETING_S) - (int64_t)GREETING_S * 500000000;
    while (fcntl(lock, F_SETLK, &whole)) {
        if (now_ns() > end_ns)
            return false;
        poll(NULL, 0, 10);
    }
    return true;
}

static enum verdict verdict_on(const struct options *asked, const unsigned char *greeting, int lock)
{
    uint64_t kind = get_number(greeting + NAME_BYTES + TOKEN_BYTES);
    uint64_t bytes = get_number(greeting + NAME_BYTES + TOKEN_BYTES + 8);
    if (memcmp(greeting, NAME, NAME_BYTES))
        return WRONG_VERSION;
    if (!is_token(greeting + NAME_BYTES, token()))
        return WRONG_TOKEN;
    if (kind != FAR_STAGE && kind != FAR_SIGNATURE)
        return UNKNOWN_KIND;
    if (bytes < 1 || bytes > asked->max_bytes)
        return TOO_LARGE;
    return is_alone(lock) ? WELCOME : BUSY;
}

static _Noreturn void serve(const struct options *asked, int file, const char *peer, int lock)
{
    static const char *const WORDS[] = {"measures", "refused: another version",
                                        "refused: wrong token", "refused: messages too large",
                                        "refused: another machine measures",
                                        "refused: unknown question"};
    unsigned char greeting[GREETING_BYTES], answer[VERDICT_BYTES];
    set_limits(file, GREETING_S);
    if (!read_until(file, greeting, sizeof greeting, GREETING_S) ||
        memcmp(greeting, NAME, NAME_PREFIX)) {
        printf("peer %s: refused: no greeting of a probe\n", peer);
        exit(0);
    }
    enum verdict verdict = verdict_on(asked, greeting, lock);
    printf("peer %s: %s\n", peer, WORDS[verdict]);
    memcpy(answer, NAME, NAME_BYTES);
    put_number(answer + NAME_BYTES, verdict);
    if (!write_until(file, answer, sizeof answer, GREETING_S) || verdict != WELCOME)
        exit(0);
    dup2(STDOUT_FILENO, STDERR_FILENO); /* what ends this is among the listener's lines */
    pin_to(asked->cpus[1]);
    size_t bytes = (size_t)get_number(greeting + NAME_BYTES + TOKEN_BYTES + 8);
    if (get_number(greeting + NAME_BYTES + TOKEN_BYTES) == FAR_STAGE)
        receive_messages(file, bytes);
    else
        reply_to(file, bytes, (int64_t)IDLE_S * 1000000000);
    exit(0);
}

static int open_listener(const struct options *asked)
{
    struct addrinfo *found = addresses(asked->name, asked->port, AI_PASSIVE | AI_NUMERICHOST);
    int one = 1, made = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0 || setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
        bind(made, found->ai_addr, found->ai_addrlen) || listen(made, MAX_WAITING))
        refuse(PROBE_NOT_HERE, "%s port %d: %s", asked->name, asked->port, strerror(errno));
    freeaddrinfo(found);
    return made;
}

static int port_of(int listener)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    char port[16] = "0";
    if (!getsockname(listener, (struct sockaddr *)&address, &length))
        getnameinfo((struct sockaddr *)&address, length, NULL, 0, port, sizeof port,
                    NI_NUMERICSERV);
    return atoi(port);
}

/* A process for whoever connects, so that who says nothing keeps nobody waiting. */
static void take_peer(const struct options *asked, int listener, int lock, int *waiting)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    char peer[64] = "unknown";
    int file = accept4(listener, (struct sockaddr *)&address, &length, SOCK_CLOEXEC);
    if (file < 0)
        return;
    getnameinfo((struct sockaddr *)&address, length, peer, sizeof peer, NULL, 0, NI_NUMERICHOST);
    int parent = getpid(), child = *waiting < MAX_WAITING ? fork() : -1;
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(0);
        close(listener);
        serve(asked, file, peer, lock);
    }
    *waiting += child > 0;
    close(file);
}

int run_listener(const struct options *asked)
{
    int listener = open_listener(asked), waiting = 0, lock = memfd_create("lock", MFD_CLOEXEC);
    token();
    if (lock < 0)
        refuse(PROBE_FAILED, "memfd: %s", strerror(errno));
    printf("# port: %d\n# max_bytes: %zu\n# ready: listen\n", port_of(listener), asked->max_bytes);
    for (;;) {
        struct pollfd wanted[] = {{.fd = listener, .events = POLLIN},
                                  {.fd = STDIN_FILENO, .events = POLLIN}};
        poll(wanted, 2, 1000);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            waiting--;
        if (wanted[1].revents) /* whoever asked for it has gone */
            return 0;
        if (wanted[0].revents)
            take_peer(asked, listener, lock, &waiting);
    }
}
