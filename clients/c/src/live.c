/* SPDX-License-Identifier: Apache-2.0 */
/* A table that is replaced while others read: some places for tables, and for each place counters of
   its readers on cache lines of their own.

   Source  P. McKenney's reference counts per object that are checked again after counting (Is Parallel
           Programming Hard, ch. 9.2), spread over cache lines as those of his sleepable RCU (LWN, 2006);
           the proof below is our own.

   A reader (1) asks which place is current, (2) counts itself in there, (3) asks again, and goes back to
   (1) where the answer is another one, after it has counted itself out; later it (6) counts itself out.
   A swap (4) finds a place that is not current and (5) whose counters are all zero, closes what is there,
   opens the new table there, and (7) makes it current. It does not wait for the readers of the table that
   was current: that one is closed by a later swap or by sluice_live_reclaim, whichever finds nobody there.

   Why nobody reads what is closed. (2), (3), (5) and (7) are sequentially consistent, so they have one
   order for all threads. Let a reader do (2) at a place and (3) find it current. Where (5) precedes (2),
   the place is filled again and made current by (7) before (3), as only that makes it current: the reader
   reads the new table, whose content (7) releases and (3) acquires. Where (2) precedes (5), the swap sees
   the reader until (6), and leaves the place alone. (6) releases what the reader did and (5) acquires it,
   through whatever counting of others is in between, as each is a read-modify-write, which continues the
   release. A reader that goes back has touched nothing but the counter.

   Why a reader that never leaves blocks nobody. It keeps one place of PLACES; the others go on. Only where
   so many are kept does a swap wait, and never longer than it was asked to.

   Readers repeat only where a swap was completed between (1) and (3), and then go on with its table. */
#define _POSIX_C_SOURCE 200809L

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "table.h"

enum {
    PLACES = 16,   /* tables: the current one and those that are still being read */
    SHARDS = 32,   /* readers are spread over so many lines of counters */
    SPACING = 128, /* bytes from line to line: two cache lines, which are often fetched together */
    YIELDS = 64    /* times that a swap lets others run before it sleeps */
};

/* Counters at least two cache lines apart, wherever the caller's memory begins. */
typedef struct slt_shard {
    _Atomic uint32_t readers[PLACES]; /* 32 bits are atomic everywhere */
    unsigned char padding[SPACING - PLACES * sizeof(uint32_t)];
} slt_shard;

/* The tables lie in pages of their own, allocated when a place is first used and kept until the end. */
typedef struct __attribute__((may_alias)) slt_live {
    uint64_t seal;
    uint64_t life; /* grows with sluice_live_after_fork: tickets of another one count nothing */
    _Atomic uint32_t current; /* which of the places */
    _Atomic uint32_t writing;
    unsigned char padding[SPACING - 2 * sizeof(uint64_t) - 2 * sizeof(uint32_t)];
    sluice_table *tables[PLACES];
    slt_shard shards[SHARDS];
} slt_live;

typedef struct __attribute__((may_alias)) slt_ticket {
    uint32_t shard;
    uint32_t place;
    uint64_t life;
} slt_ticket;

/* Where a new table comes from: a file, or bytes where the path is null. */
typedef struct slt_origin {
    const char *path;
    const void *bytes;
    size_t length;
} slt_origin;

_Static_assert(sizeof(slt_live) + SPACING <= sizeof(sluice_live), "it fits, and one space behind");
_Static_assert(sizeof(slt_ticket) <= sizeof(sluice_ticket), "a ticket fits");

#define SLT_LIVE_OPEN UINT64_C(0x53c1a7e5ab1e0003)

static slt_live *open_live(sluice_live *live)
{
    slt_live *own = (slt_live *)(void *)live;
    return own && own->seal == SLT_LIVE_OPEN ? own : NULL;
}

/* A line of counters for this thread, without asking who it is: threads have their stacks far apart,
   so the page of an address on it, multiplied by 2^64 / golden ratio (Knuth, TAOCP 3, 6.4), spreads
   them. Two threads that meet share a cache line and nothing worse. */
static uint32_t shard_of(const void *address)
{
    uint64_t page = (uint64_t)(uintptr_t)address >> 12;
    return (uint32_t)((page * UINT64_C(0x9e3779b97f4a7c15)) >> 59);
}

_Static_assert(SHARDS == 1 << (64 - 59), "a hash of five bits names a shard");

/* Open a table at a place that nobody reads, in its page; on error it is closed. */
static int fill_place(slt_live *own, uint32_t place, const slt_origin *origin)
{
    sluice_table *table = own->tables[place];
    if (!table)
        table = own->tables[place] = slt_pages(sizeof *table);
    if (!table)
        return SLUICE_E_SYSTEM;
    if (origin->path)
        return sluice_table_open(table, origin->path);
    return slt_copy((slt_view *)(void *)table, origin->bytes, origin->length);
}

static void free_places(slt_live *own)
{
    for (uint32_t place = 0; place < PLACES; place++) {
        sluice_table_close(own->tables[place]);
        slt_free_pages(own->tables[place], sizeof(sluice_table));
    }
}

static void forget_readers(slt_live *own)
{
    for (unsigned i = 0; i < SHARDS; i++)
        for (uint32_t place = 0; place < PLACES; place++)
            atomic_init(&own->shards[i].readers[place], 0);
}

static int open_from(sluice_live *live, const slt_origin *origin)
{
    slt_live *own = (slt_live *)(void *)live;
    int code;
    if (!own)
        return SLUICE_E_ARGUMENT;
    memset(live, 0, sizeof *live);
    if (!origin->path && !origin->bytes)
        return SLUICE_E_ARGUMENT;
    code = fill_place(own, 0, origin);
    if (code != SLUICE_OK) {
        free_places(own);
        memset(live, 0, sizeof *live);
        return code;
    }
    atomic_init(&own->current, 0);
    atomic_init(&own->writing, 0);
    forget_readers(own);
    own->seal = SLT_LIVE_OPEN;
    return SLUICE_OK;
}

int sluice_live_open(sluice_live *live, const char *path)
{
    slt_origin origin = {path, NULL, 0};
    return open_from(live, &origin);
}

int sluice_live_open_memory(sluice_live *live, const void *bytes, size_t length)
{
    slt_origin origin = {NULL, bytes, length};
    return open_from(live, &origin);
}

const sluice_table *sluice_live_enter(sluice_live *live, sluice_ticket *ticket)
{
    slt_live *own = open_live(live);
    slt_ticket *held = (slt_ticket *)(void *)ticket;
    uint32_t shard, place;
    if (!own || !held)
        return NULL;
    shard = shard_of(ticket);
    place = atomic_load_explicit(&own->current, memory_order_relaxed);
    for (;;) {
        uint32_t now;
        atomic_fetch_add_explicit(&own->shards[shard].readers[place], 1, memory_order_seq_cst);
        now = atomic_load_explicit(&own->current, memory_order_seq_cst);
        if (now == place)
            break;
        atomic_fetch_sub_explicit(&own->shards[shard].readers[place], 1, memory_order_release);
        place = now;
    }
    held->shard = shard;
    held->place = place;
    held->life = own->life;
    return own->tables[place];
}

void sluice_live_leave(sluice_live *live, const sluice_ticket *ticket)
{
    slt_live *own = open_live(live);
    const slt_ticket *held = (const slt_ticket *)(const void *)ticket;
    if (own && held && held->life == own->life)
        atomic_fetch_sub_explicit(&own->shards[held->shard % SHARDS].readers[held->place % PLACES], 1,
                                  memory_order_release);
}

static int is_read(slt_live *own, uint32_t place)
{
    for (unsigned i = 0; i < SHARDS; i++)
        if (atomic_load_explicit(&own->shards[i].readers[place], memory_order_seq_cst) != 0)
            return 1;
    return 0;
}

/* Close the replaced tables that nobody reads. How many are still read; *unread, where it is not null,
   becomes a place for another table, or PLACES where there is none. */
static int close_unread(slt_live *own, uint32_t *unread)
{
    uint32_t current = atomic_load_explicit(&own->current, memory_order_relaxed), found = PLACES;
    int kept = 0;
    for (uint32_t place = 0; place < PLACES; place++) {
        if (place == current)
            continue;
        if (is_read(own, place)) {
            kept += slt_open_view(own->tables[place]) != NULL;
            continue;
        }
        sluice_table_close(own->tables[place]);
        found = found == PLACES ? place : found;
    }
    if (unread)
        *unread = found;
    return kept;
}

static uint64_t milliseconds(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Let others run: at first at once, then for 50 us. */
static void wait_a_little(unsigned times)
{
    struct timespec pause = {0, 50000};
    if (times < YIELDS)
        sched_yield();
    else
        nanosleep(&pause, NULL);
}

/* A place that nobody reads, waited for up to so many milliseconds; PLACES where there is none. */
static uint32_t find_place(slt_live *own, uint32_t timeout_ms)
{
    uint64_t begin = timeout_ms ? milliseconds() : 0;
    uint32_t place;
    for (unsigned times = 0;; times += times < YIELDS) {
        close_unread(own, &place);
        if (place != PLACES || timeout_ms == 0 || milliseconds() - begin >= timeout_ms)
            return place;
        wait_a_little(times);
    }
}

/* Open the new table at a place that nobody reads and make it the current one. */
static int exchange(slt_live *own, const slt_origin *origin, uint32_t timeout_ms)
{
    uint32_t place = find_place(own, timeout_ms);
    int code = place == PLACES ? SLUICE_E_IN_USE : fill_place(own, place, origin);
    if (code != SLUICE_OK)
        return code;
    atomic_store_explicit(&own->current, place, memory_order_seq_cst);
    close_unread(own, NULL);
    return SLUICE_OK;
}

static int swap_from(sluice_live *live, const slt_origin *origin, uint32_t timeout_ms)
{
    slt_live *own = open_live(live);
    int code;
    if (!own || (!origin->path && !origin->bytes))
        return SLUICE_E_ARGUMENT;
    if (atomic_exchange_explicit(&own->writing, 1, memory_order_acquire))
        return SLUICE_E_BUSY;
    code = exchange(own, origin, timeout_ms);
    atomic_store_explicit(&own->writing, 0, memory_order_release);
    return code;
}

int sluice_live_swap_within(sluice_live *live, const char *path, uint32_t timeout_ms)
{
    slt_origin origin = {path, NULL, 0};
    return swap_from(live, &origin, timeout_ms);
}

int sluice_live_swap(sluice_live *live, const char *path)
{
    return sluice_live_swap_within(live, path, SLUICE_SWAP_MS);
}

int sluice_live_try_swap(sluice_live *live, const char *path)
{
    return sluice_live_swap_within(live, path, 0);
}

int sluice_live_swap_memory(sluice_live *live, const void *bytes, size_t length,
                            uint32_t timeout_ms)
{
    slt_origin origin = {NULL, bytes, length};
    return swap_from(live, &origin, timeout_ms);
}

int sluice_live_reclaim(sluice_live *live)
{
    slt_live *own = open_live(live);
    int kept;
    if (!own)
        return SLUICE_E_ARGUMENT;
    if (atomic_exchange_explicit(&own->writing, 1, memory_order_acquire))
        return SLUICE_E_BUSY;
    kept = close_unread(own, NULL);
    atomic_store_explicit(&own->writing, 0, memory_order_release);
    return kept;
}

void sluice_live_after_fork(sluice_live *live)
{
    slt_live *own = open_live(live);
    if (!own)
        return;
    own->life++;
    forget_readers(own);
    atomic_init(&own->writing, 0);
}

void sluice_live_close(sluice_live *live)
{
    slt_live *own = open_live(live);
    if (!own)
        return;
    free_places(own);
    memset(live, 0, sizeof *live);
}
