/* Transfers: a message through several stages at once. Each line of input is "message fragment",
   both in bytes, each line of output

       message fragment ns preempted occupied:processor occupied:processor ...

   with two times in ns for each stage: how long it had a fragment, and how long its threads had a
   processor. A stage is a thread, and another for the far end of a stream. Between two stages is a
   queue of `depth` fragments; a stage has a fragment whole before it begins, and hands it on whole.
   The source has the message at the start, and the last stage's last fragment ends it. The bytes
   are new ones for every line, and are compared at the end, outside of the time. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* LOOKS: what a look costs is nanoseconds, and to be woken microseconds. ON_THE_WAY: of a stream,
   more fragments than its buffers hold. */
enum { MAX_STAGES = 16, MAX_FRAGMENTS = 1 << 16, LOOKS = 2000, ON_THE_WAY = 4096 };

/* Looks before a thread sleeps. Where there are two processors for each, threads poll, as movers do
   that own theirs: a sleeping one of a virtual machine takes 30 us to be woken. Where a processor
   may be another program's too, one that polls would wait for it for milliseconds. */
static int looks = LOOKS;

struct item {
    size_t at, bytes;
    int64_t begin_ns;
};

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct item *items;
    size_t slots, first;
    _Atomic size_t count;
};

struct part; /* of the pipeline: a stage */
typedef void work(struct part *, struct item);

struct part {
    const char *name;
    work *run;              /* the whole of it, or the near end of a stream */
    const unsigned char *in;
    unsigned char *out;     /* what the next stage reads; that of `in` where nothing is moved */
    struct queue *from, *to;
    struct queue sent;      /* to the far end */
    struct stream stream;
    struct ring *ring;
    int file;
    bool is_two, is_source, is_file;
    bool is_on_gpu;         /* where `out` is */
    pthread_t threads[2];
    int64_t occupied_ns, free_ns; /* since when it has no fragment */
    volatile uint32_t kept;
};

static void open_queue(struct queue *queue, size_t slots)
{
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    queue->items = calloc(slots, sizeof *queue->items);
    if (!queue->items)
        refuse(PROBE_FAILED, "there is no memory for %zu fragments", slots);
    queue->slots = slots;
}

static void push(struct queue *queue, struct item item)
{
    for (int i = 0; i < looks && queue->count == queue->slots; i++)
        ;
    pthread_mutex_lock(&queue->lock);
    while (queue->count == queue->slots)
        pthread_cond_wait(&queue->changed, &queue->lock);
    queue->items[(queue->first + queue->count) % queue->slots] = item;
    queue->count++;
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

static struct item pop(struct queue *queue)
{
    for (int i = 0; i < looks && !queue->count; i++)
        ;
    pthread_mutex_lock(&queue->lock);
    while (!queue->count)
        pthread_cond_wait(&queue->changed, &queue->lock);
    struct item found = queue->items[queue->first];
    queue->first = (queue->first + 1) % queue->slots;
    queue->count--;
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    return found;
}

/* --- what stages do with a fragment ---------------------------------------------------------- */

static void copy(struct part *part, struct item item)
{
    memcpy(part->out + item.at, part->in + item.at, item.bytes);
    __asm__ volatile("" : : "r"(part->out) : "memory");
}

static void copy_of_gpu(struct part *part, struct item item)
{
    gpu_copy(part->out + item.at, part->in + item.at, item.bytes);
}

static void check(struct part *part, struct item item)
{
    part->kept = checksum(part->in + item.at, item.bytes);
}

static void put(struct part *part, struct item item)
{
    if (pwrite(part->file, part->in + item.at, item.bytes, (off_t)item.at) != (ssize_t)item.bytes)
        refuse(PROBE_FAILED, "%s: %s", part->name, strerror(errno));
}

static void put_synced(struct part *part, struct item item)
{
    put(part, item);
    if (fdatasync(part->file))
        refuse(PROBE_FAILED, "%s: %s", part->name, strerror(errno));
}

static void get(struct part *part, struct item item)
{
    if (pread(part->file, part->out + item.at, item.bytes, (off_t)item.at) != (ssize_t)item.bytes)
        refuse(PROBE_FAILED, "%s: %s", part->name, strerror(errno));
}

static void send_on(struct part *part, struct item item)
{
    push(&part->sent, item);
    const unsigned char *from = part->in + item.at;
    if (!(part->ring ? ring_write(part->ring, from, item.bytes)
                     : write_all(part->stream.file[0], from, item.bytes)))
        refuse(PROBE_FAILED, "%s: the receiver has ended", part->name);
}

static void finish(struct part *part, struct item item)
{
    int64_t end = now_ns(), begin = item.begin_ns;
    if (begin < part->free_ns)
        begin = part->free_ns; /* it waited in the buffers of the stream */
    part->occupied_ns += end - begin;
    item.begin_ns = end;
    push(part->to, item);
    part->free_ns = now_ns(); /* a full queue held it up, which is no time of its own */
}

static void *near_end(void *given)
{
    struct part *part = given;
    for (;;) {
        struct item item = pop(part->from);
        item.begin_ns = now_ns();
        part->run(part, item);
        if (!part->is_two)
            finish(part, item);
    }
    return NULL;
}

static void *far_end(void *given)
{
    struct part *part = given;
    for (;;) {
        struct item item = pop(&part->sent);
        unsigned char *to = part->out + item.at;
        if (!(part->ring ? ring_read(part->ring, to, item.bytes)
                         : read_all(part->stream.file[1], to, item.bytes)))
            refuse(PROBE_FAILED, "%s: the sender has ended", part->name);
        finish(part, item);
    }
    return NULL;
}

/* --- the pipeline ---------------------------------------------------------------------------- */

static bool is_named(const char *name, const char *kind)
{
    size_t length = strcspn(name, ":,");
    return strlen(kind) == length && !strncmp(name, kind, length);
}

static bool is_among(const char *names, const char *kind)
{
    const char *more = strchr(names, ',');
    return is_named(names, kind) || (more && is_among(more + 1, kind));
}

static void open_kind(struct part *part, const struct options *asked)
{
    const char *name = part->name;
    bool is_write = !strncmp(name, "write", 5), is_read = !strncmp(name, "read", 4);
    int direct = is_named(name, "write-direct") || is_named(name, "read-direct") ? O_DIRECT : 0;
    part->is_two = true;
    part->run = send_on;
    if (is_named(name, "pipe") || is_named(name, "unix")) {
        open_pair(&part->stream, name);
    } else if (is_named(name, "tcp")) {
        open_tcp(&part->stream, place_of(name));
    } else if (is_named(name, "shm")) {
        part->ring = open_ring();
    } else {
        part->is_two = false;
        part->run = is_named(name, "memcpy")       ? copy
                    : is_named(name, "crc32")      ? check
                    : is_named(name, "h2d")        ? copy_of_gpu
                    : is_named(name, "d2h")        ? copy_of_gpu
                    : is_named(name, "write-sync") ? put_synced
                    : is_write                     ? put
                    : is_read                      ? get
                                                   : NULL;
    }
    if (!part->run)
        refuse(PROBE_NOT_HERE, "%s: such a stage has no transfers here", name);
    part->is_on_gpu = is_named(name, "h2d");
    part->is_file = is_write;
    part->is_source = is_read;
    if (is_write || is_read)
        part->file = unnamed_file(asked->path, asked->max_bytes, asked->max_bytes, direct);
}

static void start(struct part *part, void *(*run)(void *), pthread_t *thread, int cpu)
{
    pthread_attr_t with;
    pthread_attr_init(&with);
    if (cpu >= 0) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        pthread_attr_setaffinity_np(&with, sizeof one, &one);
    }
    int wrong = pthread_create(thread, &with, run, part);
    if (wrong)
        refuse(wrong == EINVAL ? PROBE_USAGE : PROBE_FAILED, "cpu %d: %s", cpu, strerror(wrong));
    pthread_attr_destroy(&with);
}

/* What a pipeline's message is in before its first stage; `is_pinned` is all memory of the host
   where a stage is of the GPU. */
struct source {
    unsigned char *host, *spare, *first; /* `first`: in the GPU's memory where stage one reads it */
    bool is_pinned;
};

static unsigned char *new_memory(const struct source *source, bool on_gpu, size_t bytes)
{
    return on_gpu ? gpu_memory(bytes) : source->is_pinned ? pinned_memory(bytes) : memory(bytes);
}

static void open_source(struct source *source, const char *names, size_t bytes)
{
    source->is_pinned = is_among(names, "h2d") || is_among(names, "d2h");
    if (source->is_pinned)
        open_gpu_driver();
    source->host = new_memory(source, false, bytes);
    source->spare = new_memory(source, false, bytes);
    source->first = is_named(names, "d2h") ? gpu_memory(bytes) : source->host;
}

static int open_parts(struct part *parts, char *names, const struct source *source,
                      struct queue *queues, const struct options *asked)
{
    int count = 0;
    char *rest = NULL;
    open_queue(&queues[0], MAX_FRAGMENTS);
    bool is_on_gpu = source->first != source->host;
    for (char *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        struct part *part = &parts[count];
        if (count++ == MAX_STAGES)
            refuse(PROBE_USAGE, "expected at most %d stages", MAX_STAGES);
        part->name = name;
        part->in = count > 1 ? parts[count - 2].out : source->first;
        open_kind(part, asked);
        if (is_on_gpu != is_named(name, "d2h"))
            refuse(PROBE_USAGE, "%s: what comes before it leaves the message in memory of the %s",
                   name, is_on_gpu ? "GPU" : "host");
        is_on_gpu = part->is_on_gpu;
        bool moves = part->is_two || part->is_source || part->run == copy ||
                     part->run == copy_of_gpu;
        part->out = moves ? new_memory(source, is_on_gpu, asked->max_bytes)
                          : (unsigned char *)part->in;
        part->from = &queues[count - 1];
        part->to = &queues[count];
        open_queue(&part->sent, ON_THE_WAY);
    }
    if (!count)
        refuse(PROBE_USAGE, "expected names of stages, as memcpy,tcp,write");
    for (int i = 1; i <= count; i++)
        open_queue(&queues[i], i < count ? asked->depth : MAX_FRAGMENTS);
    for (int i = 0; i < count; i++) {
        start(&parts[i], near_end, &parts[i].threads[0], asked->cpus[i % 2]);
        if (parts[i].is_two)
            start(&parts[i], far_end, &parts[i].threads[1], asked->cpus[(i + 1) % 2]);
    }
    return count;
}

/* Decide how threads wait, and say it: they are those of the stages and the one that asks. */
static void choose_waiting(const struct part *parts, int count, const struct options *asked)
{
    int threads = 1 + count, processors = asked->cpus[0] == asked->cpus[1] ? 1 : 2;
    cpu_set_t all;
    for (int i = 0; i < count; i++)
        threads += parts[i].is_two;
    if (asked->cpus[0] < 0)
        processors = sched_getaffinity(0, sizeof all, &all) ? 1 : CPU_COUNT(&all);
    bool may_poll = 2 * threads <= processors;
    if (may_poll)
        looks = INT_MAX;
    fact("waits", may_poll ? "polling" : "sleeping");
}

/* ns that the threads of a stage had a processor so far. */
static int64_t processor_ns(const struct part *part)
{
    int64_t found = 0;
    for (int i = 0; i <= part->is_two; i++) {
        clockid_t clock;
        struct timespec at;
        if (pthread_getcpuclockid(part->threads[i], &clock) || clock_gettime(clock, &at))
            refuse(PROBE_FAILED, "%s: its time on the processor is not known", part->name);
        found += (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
    }
    return found;
}

static int64_t all_preemptions(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_nivcsw;
}

static void fill(unsigned char *at, size_t bytes, uint64_t number)
{
    uint64_t value = number * 0x9e3779b97f4a7c15u + 1; /* xorshift64: never 0 in practice */
    for (; bytes >= 8; bytes -= 8, at += 8) {
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
        memcpy(at, &value, 8);
    }
    memcpy(at, &value, bytes);
}

/* All bytes are where the stage puts them, and in its file where it has one. */
static void compare(const struct part *part, const struct source *source, size_t bytes)
{
    unsigned char *spare = source->spare;
    if (part->is_on_gpu)
        gpu_copy(spare, part->out, bytes);
    bool is_right = !memcmp(part->is_on_gpu ? spare : part->out, source->host, bytes);
    if (part->is_file)
        is_right = is_right && pread(part->file, spare, bytes, 0) == (ssize_t)bytes &&
                   !memcmp(spare, source->host, bytes);
    if (!is_right)
        refuse(PROBE_FAILED, "%s: the message of %zu bytes is not as it was sent", part->name,
               bytes);
}

static void transfer(struct part *parts, int count, const struct source *source, size_t bytes,
                     size_t fragment)
{
    static uint64_t number;
    int64_t processor[MAX_STAGES], end_ns = 0;
    fill(source->host, bytes, ++number);
    if (source->first != source->host)
        gpu_copy(source->first, source->host, bytes);
    for (int i = 0; i < count; i++) {
        struct part *part = &parts[i];
        if (part->is_source && pwrite(part->file, source->host, bytes, 0) != (ssize_t)bytes)
            refuse(PROBE_FAILED, "%s: %s", part->name, strerror(errno));
        part->occupied_ns = part->free_ns = 0;
        processor[i] = processor_ns(part);
    }
    int64_t before = all_preemptions(), start_ns = now_ns();
    for (size_t at = 0; at < bytes; at += fragment) {
        size_t part = bytes - at < fragment ? bytes - at : fragment;
        push(parts[0].from, (struct item){.at = at, .bytes = part});
    }
    for (size_t arrived = 0; arrived < bytes;) {
        struct item item = pop(parts[count - 1].to);
        arrived += item.bytes;
        end_ns = item.begin_ns; /* when the last stage ended it */
    }
    bool preempted = all_preemptions() > before;
    printf("%zu %zu %lld %d", bytes, fragment, (long long)(end_ns - start_ns), preempted);
    for (int i = 0; i < count; i++)
        printf(" %lld:%lld", (long long)parts[i].occupied_ns,
               (long long)(processor_ns(&parts[i]) - processor[i]));
    putchar('\n');
    for (int i = 0; i < count; i++)
        compare(&parts[i], source, bytes);
}

int run_transfer(const struct options *asked)
{
    static struct part parts[MAX_STAGES];
    static struct queue queues[MAX_STAGES + 1];
    unsigned long long bytes, fragment;
    char *names = strdup(asked->name);
    static struct source source;
    if (!names)
        refuse(PROBE_FAILED, "there is no memory");
    open_source(&source, names, asked->max_bytes);
    int read, count = open_parts(parts, names, &source, queues, asked);
    choose_waiting(parts, count, asked);
    printf("# depth: %zu\n# ready: %s\n", asked->depth, asked->name);
    while ((read = scanf("%llu %llu", &bytes, &fragment)) == 2) {
        if (bytes < 1 || bytes > asked->max_bytes || fragment < 1 || fragment > bytes)
            refuse(PROBE_USAGE, "expected a message of 1 to %zu bytes, and a fragment of it",
                   asked->max_bytes);
        if ((bytes - 1) / fragment >= MAX_FRAGMENTS)
            refuse(PROBE_USAGE, "expected at most %d fragments", MAX_FRAGMENTS);
        transfer(parts, count, &source, (size_t)bytes, (size_t)fragment);
    }
    if (read != EOF)
        refuse(PROBE_USAGE, "expected two sizes in bytes a line");
    exit(0); /* with the threads that wait */
}
