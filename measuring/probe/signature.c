/* LogP signatures of a transport: the time of a burst of requests with computation between them.

   Source    Culler, Liu, Martin and Yoshikawa, "Assessing Fast Network Interfaces" (IEEE Micro,
             1996): issue M requests, each followed by a computation of D; replies that are there
             are taken before each request, the others behind the timed section.
   Lines     in: "burst M D", "trip", "receive", "compute D" (D in ns); out: the same word and its
             figures, and whether either end was preempted.
   Traps     every issue polls, the first too; a request never blocks on a full transport, else both
             directions fill up; the replier makes no system call for bookkeeping. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REPLY_BYTES = 8, RING_SLOTS = 1024, LINE_BYTES = 64, SETTLE_NS = 50000, STOP = -1 };

struct slots {
    _Alignas(LINE_BYTES) _Atomic uint64_t put;
    _Alignas(LINE_BYTES) _Atomic uint64_t taken;
    _Alignas(LINE_BYTES) unsigned char bytes[];
};

/* One end: requests go out and replies come in, or the other way round. */
struct end {
    int out, in;
    struct slots *out_ring, *in_ring;
    size_t out_bytes, in_bytes;   /* of a message */
    unsigned char *out_message, *in_message;
    size_t sent, received;        /* bytes of the message that is under way */
    const struct library *library; /* which moves them; NULL: files and rings do */
    int64_t idle_ns, since_ns;    /* how long it may wait for a far end, 0: for ever; since when */
};

/* The simulated network: spins for the overheads, and keeps when replies are there. */
struct simulated {
    double o_s, o_r, gap, latency;
    int64_t arrives[RING_SLOTS];
    uint64_t sent, taken;
    int64_t last_sent, last_reply;
};

struct link {
    struct end end;
    struct simulated *simulated;
    uint64_t sent, replied;
    size_t window;
    int child;
};

static void spin_until(int64_t end_ns)
{
    while (now_ns() < end_ns)
        ;
}

static void spin_ns(int64_t ns)
{
    spin_until(now_ns() + ns);
}

/* --- messages over files and rings ----------------------------------------------------------- */

static size_t slot_of(size_t bytes)
{
    return (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

static bool put_slot(struct slots *ring, const unsigned char *message, size_t bytes)
{
    uint64_t at = atomic_load_explicit(&ring->put, memory_order_relaxed);
    if (at - atomic_load_explicit(&ring->taken, memory_order_acquire) == RING_SLOTS)
        return false;
    memcpy(ring->bytes + at % RING_SLOTS * slot_of(bytes), message, bytes);
    atomic_store_explicit(&ring->put, at + 1, memory_order_release);
    return true;
}

static bool take_slot(struct slots *ring, unsigned char *message, size_t bytes)
{
    uint64_t at = atomic_load_explicit(&ring->taken, memory_order_relaxed);
    if (atomic_load_explicit(&ring->put, memory_order_acquire) == at)
        return false;
    memcpy(message, ring->bytes + at % RING_SLOTS * slot_of(bytes), bytes);
    atomic_store_explicit(&ring->taken, at + 1, memory_order_release);
    return true;
}

/* Go on with the message that is under way; true when all of it is through. */
static bool send_some(struct end *end)
{
    if (end->library)
        return end->library->send_some(end->out_message, end->out_bytes);
    if (end->out_ring)
        return put_slot(end->out_ring, end->out_message, end->out_bytes);
    ssize_t done = write(end->out, end->out_message + end->sent, end->out_bytes - end->sent);
    if (done < 0 && errno != EAGAIN && errno != EINTR)
        refuse(PROBE_FAILED, "write: %s", strerror(errno));
    end->sent += done > 0 ? (size_t)done : 0;
    if (end->sent < end->out_bytes)
        return false;
    end->sent = 0;
    return true;
}

static int receive_some(struct end *end)
{
    if (end->library)
        return end->library->receive_some(end->in_message, end->in_bytes);
    if (end->in_ring)
        return take_slot(end->in_ring, end->in_message, end->in_bytes);
    ssize_t done = read(end->in, end->in_message + end->received, end->in_bytes - end->received);
    if (!done)
        return STOP;
    if (done < 0 && errno != EAGAIN && errno != EINTR)
        refuse(PROBE_FAILED, "read: %s", strerror(errno));
    end->received += done > 0 ? (size_t)done : 0;
    if (end->received < end->in_bytes)
        return 0;
    end->received = 0;
    return 1;
}

/* Where the other end would not see that this one has ended. */
static void close_end(const struct end *end, bool is_replier)
{
    if (end->library && end->library->close)
        end->library->close(is_replier);
}

/* A far end that hangs, or whose machine has gone, closes nothing. */
static bool waits_too_long(const struct end *end)
{
    return end->idle_ns && now_ns() - end->since_ns > end->idle_ns;
}

static _Noreturn void be_replier(struct end *end)
{
    uint64_t number = 0;
    for (;;) {
        int have = receive_some(end);
        if (have == STOP) {
            close_end(end, true);
            _exit(0);
        }
        if (!have && waits_too_long(end))
            _exit(PROBE_FAILED);
        if (!have)
            continue;
        if (end->idle_ns)
            end->since_ns = now_ns();
        if (!is_marked(end->in_message, end->in_bytes, ++number))
            _exit(PROBE_FAILED);
        put_number(end->out_message, number);
        while (!send_some(end))
            if (waits_too_long(end))
                _exit(PROBE_FAILED);
    }
}

/* --- opening --------------------------------------------------------------------------------- */

static void set_unblocking(int file)
{
    if (fcntl(file, F_SETFL, fcntl(file, F_GETFL) | O_NONBLOCK))
        refuse(PROBE_FAILED, "fcntl: %s", strerror(errno));
}

static unsigned char *buffer(size_t bytes)
{
    unsigned char *found = calloc(1, bytes);
    if (!found)
        refuse(PROBE_FAILED, "there is no memory for %zu bytes", bytes);
    return found;
}

static struct slots *shared_slots(size_t bytes)
{
    size_t total = sizeof(struct slots) + RING_SLOTS * slot_of(bytes);
    struct slots *found =
        mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED)
        refuse(PROBE_FAILED, "shared memory: %s", strerror(errno));
    memset(found, 0, total);
    return found;
}

/* Buffers of the end that asks, or with `is_replier` of the one that answers. */
static void allot(struct end *end, size_t request_bytes, bool is_replier)
{
    end->out_bytes = is_replier ? REPLY_BYTES : request_bytes;
    end->in_bytes = is_replier ? request_bytes : REPLY_BYTES;
    end->out_message = buffer(end->out_bytes);
    end->in_message = buffer(end->in_bytes);
}

static void fork_replier(struct link *link, const struct options *asked, struct end replier)
{
    allot(&link->end, asked->max_bytes, false);
    link->child = fork_end(asked);
    if (link->child)
        return;
    allot(&replier, asked->max_bytes, true);
    if (!replier.in_ring) {
        close(link->end.out);
        if (link->end.in != link->end.out)
            close(link->end.in);
        set_unblocking(replier.in);
        set_unblocking(replier.out);
    }
    be_replier(&replier);
}

static void open_files(struct link *link, const struct options *asked, struct end replier)
{
    fork_replier(link, asked, replier);
    close(replier.in);
    if (replier.out != replier.in)
        close(replier.out);
    set_unblocking(link->end.in);
    set_unblocking(link->end.out);
}

static void open_pipes(struct link *link, const struct options *asked)
{
    int there[2], back[2];
    if (pipe2(there, O_CLOEXEC) || pipe2(back, O_CLOEXEC))
        refuse(PROBE_FAILED, "pipe: %s", strerror(errno));
    link->end.out = there[1];
    link->end.in = back[0];
    open_files(link, asked, (struct end){.in = there[0], .out = back[1]});
}

static void open_stream(struct link *link, const struct options *asked, struct stream stream)
{
    link->end.out = link->end.in = stream.file[0];
    open_files(link, asked, (struct end){.in = stream.file[1], .out = stream.file[1]});
}

static void open_unix(struct link *link, const struct options *asked)
{
    struct stream stream;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream.file))
        refuse(PROBE_FAILED, "unix: %s", strerror(errno));
    open_stream(link, asked, stream);
}

static void open_loopback(struct link *link, const struct options *asked)
{
    struct stream stream;
    open_tcp(&stream, NULL);
    open_stream(link, asked, stream);
}

void reply_to(int file, size_t bytes, int64_t idle_ns)
{
    struct end replier = {.in = file, .out = file, .idle_ns = idle_ns, .since_ns = now_ns()};
    allot(&replier, bytes, true);
    set_unblocking(file);
    be_replier(&replier);
}

static void open_far(struct link *link, const struct options *asked)
{
    if (strcmp(asked->name, "tcp"))
        refuse(PROBE_USAGE, "%s: only tcp goes to another machine", asked->name);
    link->end.out = link->end.in = connect_to(asked, FAR_SIGNATURE);
    allot(&link->end, asked->max_bytes, false);
    set_unblocking(link->end.in);
}

static void open_rings(struct link *link, const struct options *asked)
{
    link->end.out_ring = shared_slots(asked->max_bytes);
    link->end.in_ring = shared_slots(REPLY_BYTES);
    fork_replier(link, asked,
                 (struct end){.in_ring = link->end.out_ring, .out_ring = link->end.in_ring});
}

#ifdef PROBE_LIBRARY
static void open_library(struct link *link, const struct options *asked)
{
    bool is_replier = false;
    link->child = LIBRARY.open(asked, &is_replier);
    link->end.library = &LIBRARY;
    allot(&link->end, asked->max_bytes, is_replier);
    if (!is_replier)
        return;
    pin_to(asked->cpus[1]);
    be_replier(&link->end);
}
#endif

/* Myrinet of Culler et al. 1996, Table 4, both ends; in this process. */
static void open_simulated(struct link *link, const struct options *asked)
{
    static struct simulated myrinet = {2000.0, 2600.0, 12400.0, 11100.0, {0}, 0, 0, 0, 0};
    link->simulated = &myrinet;
    link->end.out_bytes = asked->max_bytes;
    link->end.out_message = buffer(asked->max_bytes);
}

/* --- requests and replies -------------------------------------------------------------------- */

static bool send_simulated(struct simulated *network)
{
    int64_t start = now_ns();
    if (start < network->last_sent + (int64_t)network->gap ||
        network->sent - network->taken == RING_SLOTS)
        return false;
    spin_until(start + (int64_t)network->o_s); /* what was looked at before is part of it */
    network->last_sent = start;
    int64_t there = start + (int64_t)(network->o_s + network->latency);
    int64_t ready = there + (int64_t)(network->o_r + network->o_s + network->latency);
    int64_t free = network->last_reply + (int64_t)network->gap;
    network->last_reply = ready > free ? ready : free;
    network->arrives[network->sent++ % RING_SLOTS] = network->last_reply;
    return true;
}

static bool take_simulated(struct simulated *network)
{
    if (network->taken == network->sent)
        return false;
    int64_t start = now_ns();
    if (start < network->arrives[network->taken % RING_SLOTS])
        return false;
    spin_until(start + (int64_t)network->o_r);
    network->taken++;
    return true;
}

static bool take_reply(struct link *link)
{
    if (link->simulated) {
        bool is_there = take_simulated(link->simulated);
        link->replied += is_there;
        return is_there;
    }
    int have = receive_some(&link->end);
    if (have == STOP)
        refuse(PROBE_FAILED, "the replier has ended");
    if (!have)
        return false;
    uint64_t number = get_number(link->end.in_message);
    if (number != ++link->replied)
        refuse(PROBE_FAILED, "reply %llu came in place of %llu", (unsigned long long)number,
               (unsigned long long)link->replied);
    return true;
}

static bool send_request(struct link *link)
{
    return link->simulated ? send_simulated(link->simulated) : send_some(&link->end);
}

static void issue(struct link *link)
{
    while (take_reply(link))
        ;
    while (link->sent - link->replied >= link->window)
        take_reply(link);
    mark(link->end.out_message, link->end.out_bytes, link->sent + 1);
    while (!send_request(link))
        take_reply(link);
    link->sent++;
}

static void await_replies(struct link *link)
{
    int64_t since = now_ns();
    while (link->replied < link->sent) {
        if (take_reply(link))
            since = now_ns();
        else if (now_ns() - since > 5000000000)
            refuse(PROBE_FAILED, "no reply came for 5 s");
    }
}

/* --- what is timed ---------------------------------------------------------------------------- */

static int64_t timed_burst(struct link *link, unsigned long messages, int64_t computation_ns)
{
    int64_t start = now_ns();
    for (unsigned long i = 0; i < messages; i++) {
        issue(link);
        if (computation_ns)
            spin_ns(computation_ns);
    }
    return now_ns() - start;
}

static int64_t timed_trip(struct link *link)
{
    int64_t start = now_ns();
    issue(link);
    await_replies(link);
    return now_ns() - start;
}

/* A reply that has been there for a while. */
static int64_t timed_receive(struct link *link)
{
    issue(link);
    spin_ns(SETTLE_NS);
    int64_t start = now_ns();
    bool is_there = take_reply(link);
    int64_t took = now_ns() - start;
    await_replies(link);
    return is_there ? took : -1;
}

/* What a computation of so many ns takes, the clock's own steps included; the least of some means,
 * since whoever is preempted in one computes for a time slice longer. */
static double computed_ns(int64_t ns)
{
    enum { MEANS = 10, TIMES = 20 };
    int64_t least = INT64_MAX;
    for (int mean = 0; mean < MEANS; mean++) {
        int64_t start = now_ns();
        for (int i = 0; i < TIMES; i++)
            spin_ns(ns);
        int64_t took = now_ns() - start;
        least = took < least ? took : least;
    }
    return (double)least / TIMES;
}

static int64_t preemptions(const struct link *link)
{
    return own_preemptions() + (link->child ? preemptions_of(link->child) : 0);
}

static const struct transport {
    const char *name, *about;
    void (*open)(struct link *, const struct options *);
} TRANSPORTS[] = {
    {"shm", "messages in shared memory, to another process", open_rings},
    {"pipe", "messages over two pipes", open_pipes},
    {"unix", "messages over a Unix stream socket", open_unix},
    {"tcp", "messages over TCP, loopback or --host", open_loopback},
#ifdef PROBE_LIBRARY
    {PROBE_LIBRARY, "a library that moves messages", open_library},
#endif
    {"sim", "a simulated Myrinet of 1996: checks the measurement", open_simulated},
};
enum { TRANSPORTS_COUNT = sizeof TRANSPORTS / sizeof *TRANSPORTS };

void list_transports(void)
{
    for (int i = 0; i < TRANSPORTS_COUNT; i++)
        printf("transport\t%s\t%s\n", TRANSPORTS[i].name, TRANSPORTS[i].about);
}

static void answer(struct link *link, int64_t timer, const char *word, unsigned long messages,
                   long long ns)
{
    int64_t before = preemptions(link), took;
    if (!strcmp(word, "burst"))
        took = timed_burst(link, messages, ns);
    else if (!strcmp(word, "trip"))
        took = timed_trip(link);
    else
        took = timed_receive(link);
    await_replies(link);
    int is_preempted = preemptions(link) > before || took < 0;
    took = took > timer ? took - timer : 0;
    printf("%s %lu %lld %lld %d\n", word, messages, ns, (long long)took, is_preempted);
}

int run_signature(const struct options *asked)
{
    static struct link link;
    const struct transport *transport = NULL;
    char line[128], word[16];
    for (int i = 0; i < TRANSPORTS_COUNT; i++)
        if (!strcmp(TRANSPORTS[i].name, asked->name))
            transport = &TRANSPORTS[i];
    if (!transport)
        refuse(PROBE_USAGE, "%s: there is no such transport", asked->name);
    int64_t timer = timer_ns();
    link.window = asked->window;
    (asked->host ? open_far : transport->open)(&link, asked);
    printf("# timer_ns: %lld\n", (long long)timer);
    fact("ready", transport->name);
    while (fgets(line, sizeof line, stdin)) {
        unsigned long messages = 1;
        long long ns = 0;
        int read = sscanf(line, "%15s", word);
        bool is_burst = read == 1 && !strcmp(word, "burst");
        bool is_compute = read == 1 && !strcmp(word, "compute");
        if (is_burst)
            read = sscanf(line, "%*s %lu %lld", &messages, &ns) - 1;
        if (is_compute)
            read = sscanf(line, "%*s %lld", &ns);
        bool is_known = is_burst || is_compute || !strcmp(word, "trip") || !strcmp(word, "receive");
        if (read != 1 || !is_known || messages < 1 || messages > 1u << 24 || ns < 0 ||
            ns > 1000000000)
            refuse(PROBE_USAGE, "expected: burst M D, trip, receive or compute D");
        if (is_compute)
            printf("compute %lld %.3f\n", ns, computed_ns(ns));
        else
            answer(&link, timer, word, messages, ns);
    }
    close_end(&link.end, false);
    return 0;
}
