/* Stages: each line of input is a size in bytes, each line of output "bytes ns preempted".

   A stage has the fragment when it begins and the next stage may have it when it ends. Of two
   processes the time is from the first byte's sending to the last byte's being in the receiver's
   memory, by the one clock of the machine. What is checked or prepared is outside of it. */
#include "probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH_NS = 4000, MAX_BATCH = 4096 };
static const size_t COLD_BYTES = (size_t)256 << 20; /* more than caches hold */
static const size_t FILE_BYTES = (size_t)64 << 20;

struct sample {
    double ns;
    bool preempted;
};

/* What a stage keeps between samples. */
struct state {
    unsigned char *from, *to;
    size_t span, at;    /* of the memory or the file that is walked through */
    int file;
    uint64_t number;    /* of the message */
    int child, orders, reports;
    struct stream stream;
    struct ring *ring;
    int64_t timer;
    volatile uint32_t kept;
};

struct stage {
    const char *name, *about;
    void (*open)(struct state *, const struct options *);
    struct sample (*run)(struct state *, size_t bytes);
};

/* --- memory --------------------------------------------------------------------------------- */

static size_t next_place(struct state *state, size_t bytes)
{
    if (state->at + bytes > state->span)
        state->at = 0;
    size_t at = state->at;
    state->at += (bytes + PAGE - 1) / PAGE * PAGE;
    return at;
}

static void open_memory(struct state *state, const struct options *asked)
{
    state->span = asked->cold ? COLD_BYTES : asked->max_bytes;
    if (state->span < asked->max_bytes)
        state->span = asked->max_bytes;
    state->from = memory(state->span);
    state->to = memory(state->span);
    if (!asked->cold)
        state->span = 0; /* always the same place */
}

typedef void work(struct state *, size_t at, size_t bytes);

static void copy(struct state *state, size_t at, size_t bytes)
{
    memcpy(state->to + at, state->from + at, bytes);
    __asm__ volatile("" : : "r"(state->to) : "memory");
}

static void check(struct state *state, size_t at, size_t bytes)
{
    state->kept = checksum(state->from + at, bytes);
}

/* Short work is done several times in one timed section, as the clock has steps of its own. */
static struct sample timed(struct state *state, size_t bytes, work *done)
{
    struct sample found;
    int times = 1;
    bool may_repeat = !state->span;
    if (may_repeat) {
        int64_t start = now_ns();
        done(state, 0, bytes);
        int64_t once = now_ns() - start;
        times = once > 0 ? (int)(BATCH_NS / once) : MAX_BATCH;
        times = times < 1 ? 1 : times > MAX_BATCH ? MAX_BATCH : times;
    }
    size_t at = state->span ? next_place(state, bytes) : 0;
    int64_t before = own_preemptions(), start = now_ns();
    for (int i = 0; i < times; i++)
        done(state, at, bytes);
    int64_t took = now_ns() - start - state->timer;
    found.ns = (double)(took > 0 ? took : 0) / times;
    found.preempted = own_preemptions() > before;
    return found;
}

static struct sample run_copy(struct state *state, size_t bytes)
{
    return timed(state, bytes, copy);
}

static struct sample run_check(struct state *state, size_t bytes)
{
    return timed(state, bytes, check);
}

/* --- two processes -------------------------------------------------------------------------- */

struct order {
    uint64_t bytes, number;
};

struct report {
    int64_t end_ns, preemptions;
    uint64_t is_right;
};

static bool send_bytes(struct state *state, size_t bytes)
{
    return state->ring ? ring_write(state->ring, state->from, bytes)
                       : write_all(state->stream.file[0], state->from, bytes);
}

static bool receive_bytes(struct state *state, size_t bytes)
{
    return state->ring ? ring_read(state->ring, state->to, bytes)
                       : read_all(state->stream.file[1], state->to, bytes);
}

static _Noreturn void be_receiver(struct state *state, int orders, int reports)
{
    struct order order;
    while (read_all(orders, &order, sizeof order)) {
        struct report report = {0, own_preemptions(), 1};
        if (!write_all(reports, &report, sizeof report)) /* it is about to receive */
            _exit(0);
        bool is_whole = receive_bytes(state, order.bytes);
        report.end_ns = now_ns();
        report.preemptions = own_preemptions() - report.preemptions;
        report.is_right = is_whole && is_marked(state->to, order.bytes, order.number);
        if (!write_all(reports, &report, sizeof report))
            _exit(0);
    }
    _exit(0);
}

static void open_two(struct state *state, const struct options *asked)
{
    int orders[2], reports[2];
    state->from = memory(asked->max_bytes);
    state->to = memory(asked->max_bytes);
    if (pipe2(orders, O_CLOEXEC) || pipe2(reports, O_CLOEXEC))
        refuse(PROBE_FAILED, "pipe: %s", strerror(errno));
    state->child = fork_end(asked);
    if (!state->child) {
        close(orders[1]);
        close(reports[0]);
        if (!state->ring)
            close(state->stream.file[0]);
        be_receiver(state, orders[0], reports[1]);
    }
    close(orders[0]);
    close(reports[1]);
    if (!state->ring)
        close(state->stream.file[1]);
    state->orders = orders[1];
    state->reports = reports[0];
}

static void open_pair_stage(struct state *state, const struct options *asked)
{
    open_pair(&state->stream, asked->name);
    open_two(state, asked);
}

static void open_tcp_stage(struct state *state, const struct options *asked)
{
    open_tcp(&state->stream, place_of(asked->name));
    open_two(state, asked);
}

static void open_shared(struct state *state, const struct options *asked)
{
    state->ring = open_ring();
    open_two(state, asked);
}

static struct sample run_two(struct state *state, size_t bytes)
{
    struct order order = {bytes, ++state->number};
    struct report ready, done;
    mark(state->from, bytes, order.number);
    if (!write_all(state->orders, &order, sizeof order) ||
        !read_all(state->reports, &ready, sizeof ready))
        refuse(PROBE_FAILED, "the receiver has ended");
    int64_t before = own_preemptions(), start = now_ns();
    bool is_sent = send_bytes(state, bytes);
    if (!is_sent || !read_all(state->reports, &done, sizeof done))
        refuse(PROBE_FAILED, "the receiver has ended");
    if (!done.is_right)
        refuse(PROBE_FAILED, "a message of %zu bytes did not arrive as it was sent", bytes);
    struct sample found = {(double)(done.end_ns - start - state->timer),
                           own_preemptions() > before || done.preemptions > 0};
    return found;
}

/* --- two machines ---------------------------------------------------------------------------- */

static void open_far(struct state *state, const struct options *asked)
{
    if (strcmp(asked->name, "tcp"))
        refuse(PROBE_USAGE, "%s: only tcp goes to another machine", asked->name);
    state->from = memory(asked->max_bytes);
    for (size_t i = 0; i < asked->max_bytes; i++)
        state->from[i] = (unsigned char)(i * 2654435761u >> 13); /* no byte is like its neighbours */
    state->file = connect_to(asked, FAR_STAGE);
}

/* By this machine's clock alone: until the acknowledgement is back. */
static struct sample run_far(struct state *state, size_t bytes)
{
    bool is_preempted;
    int64_t before = own_preemptions();
    int64_t took = far_message(state->file, state->from, bytes, ++state->number, &is_preempted);
    struct sample found = {(double)(took - state->timer),
                           own_preemptions() > before || is_preempted};
    return found;
}

static const struct stage FAR = {"tcp", "a TCP connection to another machine", open_far, run_far};

/* --- files ---------------------------------------------------------------------------------- */

static void open_file(struct state *state, const struct options *asked, int flags)
{
    state->from = memory(asked->max_bytes);
    memset(state->from, 7, asked->max_bytes);
    state->span = asked->max_bytes * 4 > FILE_BYTES ? asked->max_bytes * 4 : FILE_BYTES;
    state->file = unnamed_file(asked->path, state->span, asked->max_bytes, flags);
}

static void open_buffered(struct state *state, const struct options *asked)
{
    open_file(state, asked, 0);
}

static void open_direct(struct state *state, const struct options *asked)
{
    open_file(state, asked, O_DIRECT);
}

typedef ssize_t transfer(struct state *, size_t bytes, size_t at);

static ssize_t put(struct state *state, size_t bytes, size_t at)
{
    return pwrite(state->file, state->from, bytes, (off_t)at);
}

static ssize_t put_synced(struct state *state, size_t bytes, size_t at)
{
    ssize_t done = put(state, bytes, at);
    return fdatasync(state->file) ? -1 : done;
}

static ssize_t get(struct state *state, size_t bytes, size_t at)
{
    return pread(state->file, state->from, bytes, (off_t)at);
}

static struct sample timed_file(struct state *state, size_t bytes, transfer *done)
{
    size_t at = next_place(state, bytes);
    int64_t before = own_preemptions(), start = now_ns();
    ssize_t moved = done(state, bytes, at);
    int64_t took = now_ns() - start - state->timer;
    if (moved < 0 && errno == EINVAL)
        refuse(PROBE_USAGE, "%zu bytes: direct transfers are of multiples of %d bytes", bytes, PAGE);
    if (moved < 0)
        refuse(PROBE_FAILED, "%zu bytes: %s", bytes, strerror(errno));
    if ((size_t)moved != bytes)
        refuse(PROBE_FAILED, "%zu bytes: cut short after %zd: the disk, a quota or a limit is reached",
               bytes, moved);
    struct sample found = {(double)took, own_preemptions() > before};
    return found;
}

static struct sample run_write(struct state *state, size_t bytes)
{
    return timed_file(state, bytes, put);
}

static struct sample run_write_synced(struct state *state, size_t bytes)
{
    return timed_file(state, bytes, put_synced);
}

static struct sample run_read(struct state *state, size_t bytes)
{
    return timed_file(state, bytes, get);
}

/* --- GPU ------------------------------------------------------------------------------------ */

static void open_to_gpu(struct state *state, const struct options *asked)
{
    open_gpu_driver();
    state->from = pinned_memory(asked->max_bytes);
    state->to = gpu_memory(asked->max_bytes);
}

static void open_from_gpu(struct state *state, const struct options *asked)
{
    open_gpu_driver();
    state->from = gpu_memory(asked->max_bytes);
    state->to = pinned_memory(asked->max_bytes);
}

static void copy_of_gpu(struct state *state, size_t at, size_t bytes)
{
    gpu_copy(state->to + at, state->from + at, bytes);
}

static struct sample run_of_gpu(struct state *state, size_t bytes)
{
    return timed(state, bytes, copy_of_gpu);
}

/* --- the loop ------------------------------------------------------------------------------- */

static const struct stage STAGES[] = {
    {"memcpy", "a copy in memory", open_memory, run_copy},
    {"crc32", "a checksum over memory", open_memory, run_check},
    {"pipe", "a pipe to another process", open_pair_stage, run_two},
    {"unix", "a Unix stream socket to another process", open_pair_stage, run_two},
    {"tcp", "a TCP connection over loopback", open_tcp_stage, run_two},
    {"shm", "a ring in shared memory to another process", open_shared, run_two},
    {"write", "a write into a file, which the page cache takes", open_buffered, run_write},
    {"write-sync", "a write into a file, and fdatasync", open_buffered, run_write_synced},
    {"write-direct", "a write past the page cache", open_direct, run_write},
    {"read", "a read of a file that the page cache has", open_buffered, run_read},
    {"read-direct", "a read past the page cache", open_direct, run_read},
    {"h2d", "a copy from pinned memory to the GPU", open_to_gpu, run_of_gpu},
    {"d2h", "a copy from the GPU to pinned memory", open_from_gpu, run_of_gpu},
};
enum { STAGES_COUNT = sizeof STAGES / sizeof *STAGES };

void list_stages(void)
{
    bool has_gpu = has_gpu_driver();
    for (int i = 0; i < STAGES_COUNT; i++)
        printf("stage\t%s\t%s\n", STAGES[i].name,
               STAGES[i].run == run_of_gpu && !has_gpu ? NO_GPU : STAGES[i].about);
}

int run_stage(const struct options *asked)
{
    static struct state state;
    const struct stage *stage = NULL;
    unsigned long long bytes;
    size_t length = strcspn(asked->name, ":");
    for (int i = 0; i < STAGES_COUNT; i++)
        if (strlen(STAGES[i].name) == length && !strncmp(STAGES[i].name, asked->name, length))
            stage = &STAGES[i];
    if (!stage)
        refuse(PROBE_USAGE, "%s: there is no such stage", asked->name);
    if (asked->host)
        stage = &FAR;
    state.timer = timer_ns();
    stage->open(&state, asked);
    printf("# timer_ns: %lld\n# ready: %s\n", (long long)state.timer, stage->name);
    int read;
    while ((read = scanf("%llu", &bytes)) == 1) {
        if (bytes < 1 || bytes > asked->max_bytes)
            refuse(PROBE_USAGE, "expected 1 to %zu bytes", asked->max_bytes);
        struct sample found = stage->run(&state, (size_t)bytes);
        printf("%llu %.3f %d\n", bytes, found.ns > 0.0 ? found.ns : 0.0, found.preempted);
    }
    if (read != EOF)
        refuse(PROBE_USAGE, "expected a size in bytes a line");
    return 0;
}
