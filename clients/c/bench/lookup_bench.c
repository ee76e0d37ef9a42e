/* SPDX-License-Identifier: Apache-2.0 */
/* How long a lookup takes, beside what libraries do today: a constant, and a chain of ifs.

       lookup_bench TABLE.slt SIZES

   SIZES is a text file of message sizes in bytes, one a line, in the order in which they are to be
   looked up; sizes outside the table's range are passed over. One JSON object goes to standard
   output; every figure of time is nanoseconds:

     table, min_message_bytes, max_message_bytes, cut_count, repeat_count, file_bytes
                        what was read
     sizes, passes      how many sizes are used, how often all of them are looked up
     constant_ns, if_chain_ns, repeat_ns, live_ns, schedule_ns, cut_ns, open_ns
                        each {"median", "best", "worst"} over the passes, of the mean of one pass
                        for one lookup; live is repeat between sluice_live_enter and leave,
                        schedule fills an array, cut is the iterator, open is
                        sluice_table_from_memory, once a pass
     cold_array_ns, cold_repeat_ns, cold_schedule_ns
                        {"median", "best", "worst"} of single lookups, each after 64 MiB of other memory
                        were written, in turns: of an array that has a size for each of 400 classes, of
                        the repeated size, of a schedule
     cold_ratio         the medians: the repeated size over the array
     schedule_fit       {"per_fragment_ns", "per_call_ns"}: least squares of the time of a schedule
                        over its number of fragments, one point for each number that occurs, weighted
                        by how often; the sizes of one number are looked up together for it
     schedule_counts    [{"fragments", "sizes", "ns", "allowed_ns"}]: those points, each with
                        2 ns a fragment + 25 ns beside it
     fragments          {"mean", "max"} over the sizes
     checksum           the sum of all that was looked up, so that nothing is optimised away

   Every lookup is timed within a pass over all sizes, after one pass that is not timed; the loop's
   own cost is in all figures, the constant's above all. */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sluice.h"

enum { PASSES = 31, MIN_LOOKUPS = 4096, COLD = 301, FLUSHED_BYTES = 64 << 20, LINE = 64, CLASSES = 400 };

typedef struct workload {
    const sluice_table *table;
    const uint64_t *sizes;
    size_t count;
    uint64_t *room; /* as many fragments as any message has */
    size_t capacity;
    const unsigned char *file;
    size_t file_bytes;
    sluice_live *live;
} workload;

typedef uint64_t lookup(const workload *work);

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* --- what is timed ---------------------------------------------------------------------------- */

/* What a library does that has one setting; volatile, as a setting read at start-up is not known to
   the compiler. */
static uint64_t constant(const workload *work)
{
    static const volatile uint64_t setting = 65536;
    uint64_t sum = 0;
    for (size_t i = 0; i < work->count; i++) {
        uint64_t size = work->sizes[i];
        sum += size < setting ? size : setting;
    }
    return sum;
}

/* What one does that distinguishes sizes. */
static __attribute__((noinline)) uint64_t if_chain_of(uint64_t size)
{
    if (size <= 1024) return size;
    if (size <= 8192) return 1024;
    if (size <= 16384) return 2048;
    if (size <= 32768) return 4096;
    if (size <= 65536) return 8192;
    if (size <= 131072) return 16384;
    if (size <= 262144) return 32768;
    if (size <= 524288) return 65536;
    if (size <= 1048576) return 131072;
    if (size <= 4194304) return 262144;
    if (size <= 16777216) return 524288;
    return 1048576;
}

static uint64_t if_chain(const workload *work)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < work->count; i++)
        sum += if_chain_of(work->sizes[i]);
    return sum;
}

static uint64_t repeat(const workload *work)
{
    uint64_t sum = 0, size = 0;
    for (size_t i = 0; i < work->count; i++)
        if (sluice_repeat(work->table, work->sizes[i], &size) == SLUICE_OK)
            sum += size;
    return sum;
}

static uint64_t live_repeat(const workload *work)
{
    uint64_t sum = 0, size = 0;
    for (size_t i = 0; i < work->count; i++) {
        sluice_ticket ticket;
        const sluice_table *table = sluice_live_enter(work->live, &ticket);
        if (sluice_repeat(table, work->sizes[i], &size) == SLUICE_OK)
            sum += size;
        sluice_live_leave(work->live, &ticket);
    }
    return sum;
}

static uint64_t schedule(const workload *work)
{
    uint64_t sum = 0;
    size_t fragments;
    for (size_t i = 0; i < work->count; i++)
        if (sluice_schedule(work->table, work->sizes[i], work->room, work->capacity, &fragments) ==
            SLUICE_OK)
            sum += work->room[fragments - 1];
    return sum;
}

static uint64_t cut(const workload *work)
{
    uint64_t sum = 0, size = 0;
    sluice_cut reader;
    for (size_t i = 0; i < work->count; i++)
        if (sluice_cut_begin(&reader, work->table, work->sizes[i]) == SLUICE_OK)
            while (sluice_cut_next(&reader, &size) == 1)
                sum += size;
    return sum;
}

/* --- timing ----------------------------------------------------------------------------------- */

typedef struct figures {
    double median, best, worst;
} figures;

static int ascending(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static figures summary(double *times, size_t count)
{
    figures found;
    qsort(times, count, sizeof *times, ascending);
    found.median = times[count / 2];
    found.best = times[0];
    found.worst = times[count - 1];
    return found;
}

/* The mean of one lookup in each pass, and their summary. Few sizes are looked up several times in
   one pass, so that reading the clock costs nothing. */
static figures measure(lookup *function, const workload *work, uint64_t *checksum)
{
    double times[PASSES];
    size_t rounds = MIN_LOOKUPS / work->count + 1;
    *checksum += function(work);
    for (size_t pass = 0; pass < PASSES; pass++) {
        double begin = now_ns();
        for (size_t round = 0; round < rounds; round++)
            *checksum += function(work);
        times[pass] = (now_ns() - begin) / (double)(rounds * work->count);
    }
    return summary(times, PASSES);
}

static figures measure_open(const workload *work)
{
    double times[PASSES];
    for (size_t pass = 0; pass < PASSES; pass++) {
        sluice_table table;
        double begin = now_ns();
        sluice_table_from_memory(&table, work->file, work->file_bytes);
        times[pass] = now_ns() - begin;
        sluice_table_close(&table);
    }
    return summary(times, PASSES);
}

static void print_figures(const char *name, figures found)
{
    printf("  \"%s\": {\"median\": %.3f, \"best\": %.3f, \"worst\": %.3f},\n", name, found.median,
           found.best, found.worst);
}

/* --- where nothing is in a cache --------------------------------------------------------------- */

/* What an array takes, the least that a library could do: one line of memory, by the leading bits of the
   size. In a page of its own, as a library's function is: not beside the loop that has just run. */
static __attribute__((noinline, aligned(4096))) int array_size(const uint64_t *sizes, uint64_t message,
                                                               uint64_t *size)
{
    unsigned zeros = (unsigned)__builtin_clzll(message);
    uint64_t at = ((uint64_t)(63 - zeros) << 3) + ((message << zeros) >> 60) - 8;
    if (at >= CLASSES)
        return SLUICE_E_RANGE;
    *size = sizes[at];
    return SLUICE_OK;
}

static void flush(unsigned char *memory, uint64_t *checksum)
{
    for (size_t at = 0; at < FLUSHED_BYTES; at += LINE)
        *checksum += ++memory[at];
}

/* The time of one lookup of each kind, and nothing else of the loop. */
static void measure_cold(const workload *work, uint64_t *checksum)
{
    static double times[3][COLD];
    static const char *const names[3] = {"cold_array_ns", "cold_repeat_ns", "cold_schedule_ns"};
    uint64_t *sizes = calloc(CLASSES, sizeof *sizes), size = 0;
    unsigned char *memory = calloc(FLUSHED_BYTES, 1);
    figures found[3];
    size_t fragments = 0;
    for (size_t pass = 0; sizes && memory && pass < COLD; pass++) {
        for (size_t turn = 0; turn < 3; turn++) {
            size_t kind = (pass + turn) % 3;
            uint64_t message = work->sizes[pass % work->count];
            double begin;
            flush(memory, checksum);
            now_ns();
            begin = now_ns();
            if (kind == 0)
                array_size(sizes, message, &size);
            else if (kind == 1)
                sluice_repeat(work->table, message, &size);
            else
                sluice_schedule(work->table, message, work->room, work->capacity, &fragments);
            times[kind][pass] = now_ns() - begin;
            *checksum += size + fragments;
        }
    }
    for (size_t kind = 0; kind < 3; kind++) {
        found[kind] = summary(times[kind], COLD);
        print_figures(names[kind], found[kind]);
    }
    printf("  \"cold_ratio\": %.3f,\n", found[1].median / found[0].median);
    free(memory);
    free(sizes);
}

/* --- by the number of fragments --------------------------------------------------------------- */

typedef struct sized {
    uint64_t size;
    size_t fragments;
    size_t order;
} sized;

static int by_fragments(const void *one, const void *other)
{
    const sized *a = one, *b = other;
    if (a->fragments != b->fragments)
        return a->fragments < b->fragments ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

static sized *sorted_sizes(const workload *work)
{
    sized *sizes = calloc(work->count, sizeof *sizes);
    for (size_t i = 0; sizes && i < work->count; i++) {
        sizes[i].size = work->sizes[i];
        sizes[i].order = i;
        sluice_schedule(work->table, work->sizes[i], work->room, work->capacity,
                        &sizes[i].fragments);
    }
    if (sizes)
        qsort(sizes, work->count, sizeof *sizes, by_fragments);
    return sizes;
}

typedef struct sums {
    double weight, x, y, xx, xy;
} sums;

static void add_point(sums *all, double weight, double x, double y)
{
    all->weight += weight;
    all->x += weight * x;
    all->y += weight * y;
    all->xx += weight * x * x;
    all->xy += weight * x * y;
}

/* Print the points and the line through them. */
static int print_by_fragments(const workload *work, uint64_t *checksum)
{
    sized *sorted = sorted_sizes(work);
    uint64_t *group = calloc(work->count, sizeof *group);
    sums all = {0, 0, 0, 0, 0};
    double slope, spread;
    if (!sorted || !group)
        return 0;
    printf("  \"schedule_counts\": [");
    for (size_t begin = 0, end; begin < work->count; begin = end) {
        workload part = *work;
        double fragments = (double)sorted[begin].fragments, ns;
        for (end = begin; end < work->count && sorted[end].fragments == sorted[begin].fragments;
             end++)
            group[end - begin] = sorted[end].size;
        part.sizes = group;
        part.count = end - begin;
        ns = measure(schedule, &part, checksum).median;
        add_point(&all, (double)part.count, fragments, ns);
        printf("%s\n    {\"fragments\": %zu, \"sizes\": %zu, \"ns\": %.3f, \"allowed_ns\": %.1f}",
               begin ? "," : "", sorted[begin].fragments, part.count, ns, 2 * fragments + 25);
    }
    spread = all.weight * all.xx - all.x * all.x;
    slope = spread > 0 ? (all.weight * all.xy - all.x * all.y) / spread : 0;
    printf("\n  ],\n  \"schedule_fit\": {\"per_fragment_ns\": %.4f, \"per_call_ns\": %.3f},\n", slope,
           (all.y - slope * all.x) / all.weight);
    printf("  \"fragments\": {\"mean\": %.3f, \"max\": %zu},\n", all.x / all.weight,
           sorted[work->count - 1].fragments);
    free(sorted);
    free(group);
    return 1;
}

/* --- input and output ------------------------------------------------------------------------- */

/* The sizes of the file that are in the table's range. */
static uint64_t *read_sizes(const char *path, const sluice_description *about, size_t *count)
{
    FILE *file = fopen(path, "r");
    uint64_t *sizes = NULL, *more;
    char line[64], *end;
    size_t room = 0;
    *count = 0;
    while (file && fgets(line, sizeof line, file)) {
        uint64_t size;
        errno = 0;
        size = strtoull(line, &end, 10);
        if (end == line || errno || size < about->min_message_bytes ||
            size > about->max_message_bytes)
            continue;
        if (*count == room) {
            room = room ? 2 * room : 1024;
            more = realloc(sizes, room * sizeof *sizes);
            if (!more)
                break;
            sizes = more;
        }
        sizes[(*count)++] = size;
    }
    if (file)
        fclose(file);
    return sizes;
}

static unsigned char *read_file(const char *path, size_t length)
{
    FILE *file = fopen(path, "rb");
    unsigned char *bytes = malloc(length);
    if (!file || !bytes || fread(bytes, 1, length, file) != length) {
        free(bytes);
        bytes = NULL;
    }
    if (file)
        fclose(file);
    return bytes;
}

static int report(const workload *work, const sluice_description *about, const char *path)
{
    uint64_t checksum = 0;
    printf("{\n  \"table\": \"%s\",\n  \"min_message_bytes\": %llu,\n"
           "  \"max_message_bytes\": %llu,\n",
           about->profile[0] ? about->profile : path, (unsigned long long)about->min_message_bytes,
           (unsigned long long)about->max_message_bytes);
    printf("  \"cut_count\": %llu,\n  \"repeat_count\": %llu,\n  \"file_bytes\": %llu,\n",
           (unsigned long long)about->cut_count, (unsigned long long)about->repeat_count,
           (unsigned long long)about->file_bytes);
    printf("  \"sizes\": %zu,\n  \"passes\": %d,\n", work->count, PASSES);
    print_figures("constant_ns", measure(constant, work, &checksum));
    print_figures("if_chain_ns", measure(if_chain, work, &checksum));
    print_figures("repeat_ns", measure(repeat, work, &checksum));
    print_figures("live_ns", measure(live_repeat, work, &checksum));
    print_figures("schedule_ns", measure(schedule, work, &checksum));
    print_figures("cut_ns", measure(cut, work, &checksum));
    print_figures("open_ns", measure_open(work));
    measure_cold(work, &checksum);
    if (!print_by_fragments(work, &checksum))
        return 1;
    printf("  \"checksum\": %llu\n}\n", (unsigned long long)checksum);
    return 0;
}

int main(int argc, char **argv)
{
    static sluice_live live;
    sluice_table table;
    sluice_description about;
    workload work = {&table, NULL, 0, NULL, 0, NULL, 0, &live};
    int code = argc == 3 ? sluice_table_open(&table, argv[1]) : SLUICE_E_ARGUMENT;
    if (code != SLUICE_OK) {
        fprintf(stderr, "usage: lookup_bench TABLE.slt SIZES (%s)\n", sluice_error_text(code));
        return 2;
    }
    about.size = sizeof about;
    sluice_table_describe(&table, &about);
    work.sizes = read_sizes(argv[2], &about, &work.count);
    work.capacity = (size_t)about.max_schedule_fragments;
    work.room = calloc(work.capacity, sizeof *work.room);
    work.file_bytes = (size_t)about.file_bytes;
    work.file = read_file(argv[1], work.file_bytes);
    if (work.count == 0 || !work.room || !work.file ||
        sluice_live_open(&live, argv[1]) != SLUICE_OK) {
        fprintf(stderr, "lookup_bench: no memory, or no size of the file is in the table's range\n");
        return 2;
    }
    code = report(&work, &about, argv[1]);
    sluice_live_close(&live);
    sluice_table_close(&table);
    free((void *)(uintptr_t)work.sizes);
    free((void *)(uintptr_t)work.file);
    free(work.room);
    return code;
}
