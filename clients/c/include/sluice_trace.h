/* SPDX-License-Identifier: Apache-2.0 */
/* Sluice: a mover logs how long its own stages take, and `sluice fit` reads what it wrote.

       #define SLUICE_TRACE_IMPLEMENTATION   in exactly one file of the program
       #include <sluice_trace.h>

       SLUICE_TRACE_BEGIN(copy_in);
       ... one fragment through the stage ...
       SLUICE_TRACE_END_OF(copy_in, fragment_bytes, message, fragment);

       sluice_trace_write("stages.csv");     at the end, when no thread traces any more

   Both macros stand in one block; the stage's name is any C identifier, and may be used in many
   places and by many threads. A mover carries the numbers of message and fragment in its header,
   each at most 2^48, every pair once. Where it has none, SLUICE_TRACE_END(copy_in, fragment_bytes) logs times
   alone, which do not tell what overlaps. With SLUICE_TRACE_OFF all are nothing.

   Compiler  C99 or C++11 with GNU threads (gcc, clang), and POSIX clocks: -std=gnu11, or
             _POSIX_C_SOURCE 199309L and above before the first header.
   Memory    A ring of SLUICE_TRACE_EVENTS events (56 bytes each) a thread, allocated and touched at
             the thread's first event, or before by sluice_trace_thread(). A full ring loses its
             oldest events, and the file says how many.
   Threads   No lock: a ring is its thread's own, and is put into a list by one atomic exchange.
   Cost      Two readings of CLOCK_MONOTONIC and some nanoseconds an event. The thread's processor
             time, a call of the kernel, is read around the time of a stage where it is worth it:
             where the stage's last event in this thread took SLUICE_TRACE_LONG_NS (50 us) or more,
             and else once a message, at most once in so long.
   File      The project's direct CSV (docs/measurements.md). Where all events have numbers, a row a
             fragment, with <stage>_begin_ns from the first event on, and <stage>_busy_ns, the
             processor time or -1; a stage that has not seen it, or whose event is lost, is empty.
             Else a row a fragment that every stage has seen: the i-th fragment of a size in one
             stage is the i-th in the others, by their beginnings: stages keep their order. Times are
             in microseconds and contain one reading of the clock, which a comment states.
   Errors    Functions return 0 or an errno. An event without memory for its ring is dropped. */
#ifndef SLUICE_TRACE_H
#define SLUICE_TRACE_H

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef SLUICE_TRACE_EVENTS
#define SLUICE_TRACE_EVENTS 65536u /* a power of two */
#endif
#define SLUICE_TRACE_STAGES 64
#ifndef SLUICE_TRACE_LONG_NS
#define SLUICE_TRACE_LONG_NS 50000u
#endif
#define SLUICE_TRACE_NO_NUMBER UINT64_MAX
#define SLUICE_TRACE_SITES 64u /* a power of two */

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sluice_trace_event {
    const char *stage;
    uint64_t bytes;
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t message; /* SLUICE_TRACE_NO_NUMBER: neither this nor the fragment */
    uint64_t fragment;
    int64_t busy_ns; /* -1: not read */
} sluice_trace_event;

/* What a thread knows of a stage. Two stages that share one have their processor time read more or
   less often than they should, and nothing else. */
typedef struct sluice_trace_site {
    uint64_t message;
    uint64_t read_ns; /* when processor time was last read */
    int is_due;       /* whether it is read around the next event */
} sluice_trace_site;

typedef struct sluice_trace_ring {
    struct sluice_trace_ring *next;
    sluice_trace_event *events;
    uint64_t written;
    sluice_trace_site sites[SLUICE_TRACE_SITES];
} sluice_trace_ring;

extern __thread sluice_trace_ring *sluice_trace_mine;

/* Allocate this thread's ring now. Returns ENOMEM where there is no memory for it. */
int sluice_trace_thread(void);

/* Write what all threads have traced, and begin anew. For one thread, while no other traces. */
int sluice_trace_write(const char *path);

static inline uint64_t sluice_trace_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline int64_t sluice_trace_thread_ns(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0)
        return -1;
    return (int64_t)now.tv_sec * 1000000000 + (int64_t)now.tv_nsec;
}

static inline sluice_trace_site *sluice_trace_site_of(sluice_trace_ring *ring, const char *stage)
{
    const uintptr_t at = (uintptr_t)stage;
    return &ring->sites[(at ^ (at >> 6)) & (SLUICE_TRACE_SITES - 1u)];
}

/* The thread's processor time where it is due, else -1. Before the clock, so that no time has this
   call in it. */
static inline int64_t sluice_trace_busy(const char *stage)
{
    sluice_trace_ring *ring = sluice_trace_mine;
    if (ring == NULL || !sluice_trace_site_of(ring, stage)->is_due)
        return -1;
    return sluice_trace_thread_ns();
}

static inline sluice_trace_event *sluice_trace_next(void)
{
    sluice_trace_ring *ring = sluice_trace_mine;
    if (ring == NULL) {
        if (sluice_trace_thread() != 0)
            return NULL;
        ring = sluice_trace_mine;
    }
    return &ring->events[ring->written++ & (SLUICE_TRACE_EVENTS - 1u)];
}

static inline void sluice_trace_add(const char *stage, uint64_t bytes, uint64_t begin_ns)
{
    const uint64_t end_ns = sluice_trace_now();
    sluice_trace_event *event = sluice_trace_next();
    if (event == NULL)
        return;
    event->stage = stage;
    event->bytes = bytes;
    event->begin_ns = begin_ns;
    event->end_ns = end_ns;
    event->message = SLUICE_TRACE_NO_NUMBER;
}

static inline void sluice_trace_add_of(const char *stage, uint64_t bytes, uint64_t begin_ns,
                                       int64_t busy_from_ns, uint64_t message, uint64_t fragment)
{
    const uint64_t end_ns = sluice_trace_now();
    const int64_t busy_to_ns = busy_from_ns < 0 ? -1 : sluice_trace_thread_ns();
    sluice_trace_event *event = sluice_trace_next();
    sluice_trace_site *site;
    if (event == NULL)
        return;
    event->stage = stage;
    event->bytes = bytes;
    event->begin_ns = begin_ns;
    event->end_ns = end_ns;
    event->message = message;
    event->fragment = fragment;
    event->busy_ns = busy_to_ns < 0 ? -1 : busy_to_ns - busy_from_ns;
    site = sluice_trace_site_of(sluice_trace_mine, stage);
    if (busy_from_ns >= 0)
        site->read_ns = end_ns;
    site->is_due = end_ns - begin_ns >= SLUICE_TRACE_LONG_NS ||
                   (message != site->message && end_ns - site->read_ns >= SLUICE_TRACE_LONG_NS);
    site->message = message;
}

#ifdef __GNUC__
#define SLUICE_TRACE_UNUSED __attribute__((unused))
#else
#define SLUICE_TRACE_UNUSED
#endif

#ifdef SLUICE_TRACE_OFF
#define SLUICE_TRACE_BEGIN(stage) ((void)0)
#define SLUICE_TRACE_END(stage, bytes) ((void)(bytes))
#define SLUICE_TRACE_END_OF(stage, bytes, message, fragment) \
    ((void)(bytes), (void)(message), (void)(fragment))
#else
#define SLUICE_TRACE_BEGIN(stage)                                                            \
    const int64_t sluice_trace_busy_##stage SLUICE_TRACE_UNUSED = sluice_trace_busy(#stage); \
    const uint64_t sluice_trace_begin_##stage = sluice_trace_now()
#define SLUICE_TRACE_END(stage, bytes) \
    sluice_trace_add(#stage, (uint64_t)(bytes), sluice_trace_begin_##stage)
#define SLUICE_TRACE_END_OF(stage, bytes, message, fragment)                   \
    sluice_trace_add_of(#stage, (uint64_t)(bytes), sluice_trace_begin_##stage, \
                        sluice_trace_busy_##stage, (uint64_t)(message), (uint64_t)(fragment))
#endif

#ifdef SLUICE_TRACE_IMPLEMENTATION

__thread sluice_trace_ring *sluice_trace_mine;
static sluice_trace_ring *sluice_trace_rings;

int sluice_trace_thread(void)
{
    sluice_trace_ring *ring;
    if (sluice_trace_mine != NULL)
        return 0;
    ring = (sluice_trace_ring *)malloc(sizeof *ring);
    if (ring == NULL)
        return ENOMEM;
    ring->events = (sluice_trace_event *)malloc(SLUICE_TRACE_EVENTS * sizeof *ring->events);
    if (ring->events == NULL) {
        free(ring);
        return ENOMEM;
    }
    /* Touched, so that no event waits for the kernel to find a page. */
    memset(ring->events, 0, SLUICE_TRACE_EVENTS * sizeof *ring->events);
    ring->written = 0;
    memset(ring->sites, 0, sizeof ring->sites);
    ring->next = __atomic_load_n(&sluice_trace_rings, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&sluice_trace_rings, &ring->next, ring, 0,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
    sluice_trace_mine = ring;
    return 0;
}

/* Stages of one name are one stage, whichever file of the program has the name. */
typedef struct sluice_trace_list {
    const char *names[SLUICE_TRACE_STAGES];
    uint64_t first_ns[SLUICE_TRACE_STAGES];
    int count;
} sluice_trace_list;

static int sluice_trace_place(sluice_trace_list *list, const char *stage)
{
    int place;
    for (place = 0; place < list->count; place++)
        if (list->names[place] == stage || strcmp(list->names[place], stage) == 0)
            return place;
    if (place == SLUICE_TRACE_STAGES)
        return -1;
    list->names[place] = stage;
    list->first_ns[place] = UINT64_MAX;
    list->count++;
    return place;
}

static int sluice_trace_order(const void *left, const void *right)
{
    const sluice_trace_event *a = (const sluice_trace_event *)left;
    const sluice_trace_event *b = (const sluice_trace_event *)right;
    const int names = strcmp(a->stage, b->stage);
    if (names != 0)
        return names;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    return a->begin_ns < b->begin_ns ? -1 : a->begin_ns > b->begin_ns;
}

static uint64_t sluice_trace_clock_ns(void)
{
    uint64_t best = UINT64_MAX;
    int turn;
    for (turn = 0; turn < 1000; turn++) {
        const uint64_t first = sluice_trace_now();
        const uint64_t taken = sluice_trace_now() - first;
        best = taken < best ? taken : best;
    }
    return best;
}

/* `from` and `to` bound each stage's events, sorted by size and beginning. */
static int sluice_trace_rows(FILE *file, const sluice_trace_event *events, const size_t *from,
                             const size_t *to, const int *order, int stages)
{
    size_t at[SLUICE_TRACE_STAGES];
    uint64_t before = 0, repetition = 0;
    int j;
    for (j = 0; j < stages; j++)
        at[j] = from[j];
    for (;;) {
        uint64_t bytes = 0;
        int all_same = 1;
        for (j = 0; j < stages; j++) {
            if (at[j] == to[j])
                return ferror(file) ? EIO : 0;
            bytes = events[at[j]].bytes > bytes ? events[at[j]].bytes : bytes;
        }
        for (j = 0; j < stages; j++) {
            if (events[at[j]].bytes != bytes) { /* a size that another stage has not seen */
                at[j]++;
                all_same = 0;
            }
        }
        if (!all_same)
            continue;
        repetition = bytes == before ? repetition + 1 : 0;
        before = bytes;
        fprintf(file, "%" PRIu64 ",%" PRIu64, bytes, repetition);
        for (j = 0; j < stages; j++) {
            const sluice_trace_event *event = &events[at[order[j]]++];
            fprintf(file, ",%.3f", (double)(event->end_ns - event->begin_ns) / 1000.0);
        }
        fputc('\n', file);
    }
}

static int sluice_trace_by_number(const void *left, const void *right)
{
    const sluice_trace_event *a = (const sluice_trace_event *)left;
    const sluice_trace_event *b = (const sluice_trace_event *)right;
    if (a->message != b->message)
        return a->message < b->message ? -1 : 1;
    if (a->fragment != b->fragment)
        return a->fragment < b->fragment ? -1 : 1;
    return a->begin_ns < b->begin_ns ? -1 : a->begin_ns > b->begin_ns;
}

typedef struct sluice_trace_row {
    uint64_t bytes;
    uint64_t repetition;
    size_t first; /* of its events */
} sluice_trace_row;

static int sluice_trace_by_bytes(const void *left, const void *right)
{
    const sluice_trace_row *a = (const sluice_trace_row *)left;
    const sluice_trace_row *b = (const sluice_trace_row *)right;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

static int sluice_trace_by_first(const void *left, const void *right)
{
    const sluice_trace_row *a = (const sluice_trace_row *)left;
    const sluice_trace_row *b = (const sluice_trace_row *)right;
    return a->first < b->first ? -1 : a->first > b->first;
}

/* A row for each fragment of the events, which are sorted by number. Null without memory. */
static sluice_trace_row *sluice_trace_fragments(const sluice_trace_event *events, size_t count,
                                                size_t *num_rows)
{
    sluice_trace_row *rows = (sluice_trace_row *)malloc((count + 1) * sizeof *rows);
    size_t i, n = 0;
    if (rows == NULL)
        return NULL;
    for (i = 0; i < count; i++) {
        if (i == 0 || events[i].message != events[i - 1].message ||
            events[i].fragment != events[i - 1].fragment) {
            rows[n].bytes = 0;
            rows[n].repetition = 0;
            rows[n++].first = i;
        }
        if (events[i].bytes > rows[n - 1].bytes)
            rows[n - 1].bytes = events[i].bytes;
    }
    qsort(rows, n, sizeof *rows, sluice_trace_by_bytes);
    for (i = 1; i < n; i++)
        rows[i].repetition = rows[i].bytes == rows[i - 1].bytes ? rows[i - 1].repetition + 1 : 0;
    qsort(rows, n, sizeof *rows, sluice_trace_by_first);
    *num_rows = n;
    return rows;
}

/* One fragment: its events by stage, the first one where a stage has several. */
static void sluice_trace_fragment(FILE *file, const sluice_trace_row *row,
                                  const sluice_trace_event *const *of_stage, int stages,
                                  const sluice_trace_event *event, uint64_t origin_ns)
{
    int j;
    fprintf(file, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, row->bytes, row->repetition,
            event->message, event->fragment);
    for (j = 0; j < stages; j++) {
        fputc(',', file);
        if (of_stage[j] != NULL)
            fprintf(file, "%.3f", (double)(of_stage[j]->end_ns - of_stage[j]->begin_ns) / 1000.0);
    }
    for (j = 0; j < stages; j++) {
        if (of_stage[j] != NULL)
            fprintf(file, ",%" PRIu64 ",%" PRId64, of_stage[j]->begin_ns - origin_ns,
                    of_stage[j]->busy_ns);
        else
            fprintf(file, ",,");
    }
    fputc('\n', file);
}

/* `order` has the places of `list` in the order of columns. */
static int sluice_trace_numbered_rows(FILE *file, sluice_trace_event *events, size_t count,
                                      sluice_trace_list *list, const int *order)
{
    const sluice_trace_event *of_stage[SLUICE_TRACE_STAGES];
    int column_of[SLUICE_TRACE_STAGES], j;
    size_t i, n, num_rows = 0;
    uint64_t origin_ns = UINT64_MAX, repeated = 0;
    sluice_trace_row *rows;
    qsort(events, count, sizeof *events, sluice_trace_by_number);
    rows = sluice_trace_fragments(events, count, &num_rows);
    if (rows == NULL)
        return ENOMEM;
    for (j = 0; j < list->count; j++) {
        column_of[order[j]] = j;
        if (list->first_ns[j] < origin_ns)
            origin_ns = list->first_ns[j];
    }
    for (n = 0; n < num_rows; n++) {
        const size_t end = n + 1 < num_rows ? rows[n + 1].first : count;
        for (j = 0; j < list->count; j++)
            of_stage[j] = NULL;
        for (i = rows[n].first; i < end; i++) {
            const int column = column_of[sluice_trace_place(list, events[i].stage)];
            if (of_stage[column] == NULL)
                of_stage[column] = &events[i];
            else
                repeated++;
        }
        sluice_trace_fragment(file, &rows[n], of_stage, list->count, &events[rows[n].first],
                              origin_ns);
    }
    free(rows);
    if (repeated > 0)
        fprintf(file, "# %" PRIu64 " events are left out: their stage had the fragment before\n",
                repeated);
    return ferror(file) ? EIO : 0;
}

/* How many events have no number. */
static uint64_t sluice_trace_numberless(const sluice_trace_event *events, size_t count)
{
    uint64_t found = 0;
    size_t i;
    for (i = 0; i < count; i++)
        found += events[i].message == SLUICE_TRACE_NO_NUMBER;
    return found;
}

static int sluice_trace_table(FILE *file, sluice_trace_event *events, size_t count, uint64_t lost)
{
    sluice_trace_list list;
    size_t from[SLUICE_TRACE_STAGES], to[SLUICE_TRACE_STAGES], i;
    int order[SLUICE_TRACE_STAGES], j, k;
    const uint64_t numberless = sluice_trace_numberless(events, count);
    const int is_numbered = count > 0 && numberless == 0;
    list.count = 0;
    qsort(events, count, sizeof *events, sluice_trace_order);
    for (i = 0; i < count; i++) {
        const int place = sluice_trace_place(&list, events[i].stage);
        if (place < 0)
            return E2BIG;
        if (i == 0 || strcmp(events[i - 1].stage, events[i].stage) != 0)
            from[place] = i;
        to[place] = i + 1;
        if (events[i].begin_ns < list.first_ns[place])
            list.first_ns[place] = events[i].begin_ns;
    }
    for (j = 0; j < list.count; j++) { /* in the order in which the stages began */
        for (k = j; k > 0 && list.first_ns[order[k - 1]] > list.first_ns[j]; k--)
            order[k] = order[k - 1];
        order[k] = j;
    }
    fprintf(file, "# stage times of fragments, traced by the mover; clock: CLOCK_MONOTONIC\n");
    fprintf(file, "# one reading of the clock, %" PRIu64 " ns, is in each time\n",
            sluice_trace_clock_ns());
    if (lost > 0)
        fprintf(file, "# %" PRIu64 " older events were lost: a ring holds %u\n", lost,
                (unsigned)SLUICE_TRACE_EVENTS);
    if (numberless > 0 && numberless < count)
        fprintf(file, "# no begins: %" PRIu64 " of %zu events have no number\n", numberless, count);
    fprintf(file, is_numbered ? "message_bytes,repetition,message,fragment"
                              : "message_bytes,repetition");
    for (j = 0; j < list.count; j++)
        fprintf(file, ",%s_us", list.names[order[j]]);
    for (j = 0; is_numbered && j < list.count; j++)
        fprintf(file, ",%s_begin_ns,%s_busy_ns", list.names[order[j]], list.names[order[j]]);
    fputc('\n', file);
    if (is_numbered)
        return sluice_trace_numbered_rows(file, events, count, &list, order);
    return list.count == 0 ? 0 : sluice_trace_rows(file, events, from, to, order, list.count);
}

int sluice_trace_write(const char *path)
{
    sluice_trace_ring *ring, *rings = __atomic_load_n(&sluice_trace_rings, __ATOMIC_ACQUIRE);
    sluice_trace_event *events;
    size_t count = 0;
    uint64_t lost = 0;
    FILE *file;
    int failed;
    for (ring = rings; ring != NULL; ring = ring->next)
        count += ring->written < SLUICE_TRACE_EVENTS ? ring->written : SLUICE_TRACE_EVENTS;
    events = (sluice_trace_event *)malloc((count + 1) * sizeof *events);
    if (events == NULL)
        return ENOMEM;
    count = 0;
    for (ring = rings; ring != NULL; ring = ring->next) {
        const uint64_t held =
            ring->written < SLUICE_TRACE_EVENTS ? ring->written : SLUICE_TRACE_EVENTS;
        lost += ring->written - held;
        memcpy(events + count, ring->events, held * sizeof *events);
        count += held;
    }
    file = fopen(path, "w");
    if (file == NULL) {
        failed = errno;
        free(events);
        return failed;
    }
    failed = sluice_trace_table(file, events, count, lost);
    if (fclose(file) != 0 && failed == 0)
        failed = errno;
    free(events);
    for (ring = rings; failed == 0 && ring != NULL; ring = ring->next)
        ring->written = 0;
    return failed;
}

#endif /* SLUICE_TRACE_IMPLEMENTATION */

#ifdef __cplusplus
}
#endif
#endif
