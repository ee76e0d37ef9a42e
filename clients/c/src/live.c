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

   Why a reader that never leaves blocks nobody. It keeps one place of SLT_PLACES; the others go on. Only where
   so many are kept does a swap wait, and never longer than it was asked to.

   Readers repeat only where a swap was completed between (1) and (3), and then go on with its table. */
#include "table.h"

#include <sched.h>
#include <time.h>

enum {
    SLT_PLACES = 16,   /* tables: the current one and those that are still being read */
    SLT_SHARDS = 32,   /* readers are spread over so many lines of counters */
    SLT_SPACING = 128, /* bytes from line to line: two cache lines, which are often fetched together */
    SLT_YIELDS = 64    /* times that a swap lets others run before it sleeps */
};

/* Counters at least two cache lines apart, wherever the caller's memory begins. */
typedef struct slt_shard {
    uint32_t readers[SLT_PLACES]; /* 32 bits are atomic everywhere */
    unsigned char padding[SLT_SPACING - SLT_PLACES * sizeof(uint32_t)];
} slt_shard;

/* The tables lie in pages of their own, allocated when a place is first used and kept until the end. */
typedef struct __attribute__((may_alias)) slt_live {
    uint64_t seal;
    uint64_t life; /* grows with sluice_live_after_fork: tickets of another one count nothing */
    uint32_t current; /* which of the places */
    uint32_t writing;
    unsigned char padding[SLT_SPACING - 2 * sizeof(uint64_t) - 2 * sizeof(uint32_t)];
    sluice_table *tables[SLT_PLACES];
    slt_shard shards[SLT_SHARDS];
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

static_assert(sizeof(slt_live) + SLT_SPACING <= sizeof(sluice_live), "it fits, and one space behind");
static_assert(sizeof(slt_ticket) <= sizeof(sluice_ticket), "a ticket fits");

#define SLT_LIVE_OPEN UINT64_C(0x53c1a7e5ab1e0003)

static slt_live *slt_open_live(sluice_live *live)
{
    slt_live *own = (slt_live *)(void *)live;
    return own && own->seal == SLT_LIVE_OPEN ? own : NULL;
}

/* A line of counters for this thread, without asking who it is: threads have their stacks far apart,
   so the page of an address on it, multiplied by 2^64 / golden ratio (Knuth, TAOCP 3, 6.4), spreads
   them. Two threads that meet share a cache line and nothing worse. */
static uint32_t slt_shard_of(const void *address)
{
    uint64_t page = (uint64_t)(uintptr_t)address >> 12;
    return (uint32_t)((page * UINT64_C(0x9e3779b97f4a7c15)) >> 59);
}

static_assert(SLT_SHARDS == 1 << (64 - 59), "a hash of five bits names a shard");

/* Open a table at a place that nobody reads, in its page; on error it is closed. */
static int slt_fill_place(slt_live *own, uint32_t place, const slt_origin *origin)
{
    sluice_table *table = own->tables[place];
    if (!table)
        table = own->tables[place] = (sluice_table *)slt_pages(sizeof *table);
    if (!table)
        return SLUICE_E_SYSTEM;
    if (origin->path)
        return sluice_table_open(table, origin->path);
    return slt_copy((slt_view *)(void *)table, origin->bytes, origin->length);
}

static void slt_free_places(slt_live *own)
{
    for (uint32_t place = 0; place < SLT_PLACES; place++) {
        sluice_table_close(own->tables[place]);
        slt_free_pages(own->tables[place], sizeof(sluice_table));
    }
}

static void slt_forget_readers(slt_live *own)
{
    for (unsigned i = 0; i < SLT_SHARDS; i++)
        for (uint32_t place = 0; place < SLT_PLACES; place++)
            __atomic_store_n(&own->shards[i].readers[place], 0, __ATOMIC_RELAXED);
}

static int slt_open_live_from(sluice_live *live, const slt_origin *origin)
{
    slt_live *own = (slt_live *)(void *)live;
    int code;
    if (!own)
        return SLUICE_E_ARGUMENT;
    memset(live, 0, sizeof *live);
    if (!origin->path && !origin->bytes)
        return SLUICE_E_ARGUMENT;
    code = slt_fill_place(own, 0, origin);
    if (code != SLUICE_OK) {
        slt_free_places(own);
        memset(live, 0, sizeof *live);
        return code;
    }
    __atomic_store_n(&own->current, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&own->writing, 0, __ATOMIC_RELAXED);
    slt_forget_readers(own);
    own->seal = SLT_LIVE_OPEN;
    return SLUICE_OK;
}

int sluice_live_open(sluice_live *live, const char *path)
{
    slt_origin origin = {path, NULL, 0};
    return slt_open_live_from(live, &origin);
}

int sluice_live_open_memory(sluice_live *live, const void *bytes, size_t length)
{
    slt_origin origin = {NULL, bytes, length};
    return slt_open_live_from(live, &origin);
}

const sluice_table *sluice_live_enter(sluice_live *live, sluice_ticket *ticket)
{
    slt_live *own = slt_open_live(live);
    slt_ticket *held = (slt_ticket *)(void *)ticket;
    uint32_t shard, place;
    if (!own || !held)
        return NULL;
    shard = slt_shard_of(ticket);
    place = __atomic_load_n(&own->current, __ATOMIC_RELAXED);
    for (;;) {
        uint32_t now;
        __atomic_fetch_add(&own->shards[shard].readers[place], 1, __ATOMIC_SEQ_CST);
        now = __atomic_load_n(&own->current, __ATOMIC_SEQ_CST);
        if (now == place)
            break;
        __atomic_fetch_sub(&own->shards[shard].readers[place], 1, __ATOMIC_RELEASE);
        place = now;
    }
    held->shard = shard;
    held->place = place;
    held->life = own->life;
    return own->tables[place];
}

void sluice_live_leave(sluice_live *live, const sluice_ticket *ticket)
{
    slt_live *own = slt_open_live(live);
    const slt_ticket *held = (const slt_ticket *)(const void *)ticket;
    if (own && held && held->life == own->life)
        __atomic_fetch_sub(&own->shards[held->shard % SLT_SHARDS].readers[held->place % SLT_PLACES], 1,
                                  __ATOMIC_RELEASE);
}

static int slt_is_read(slt_live *own, uint32_t place)
{
    for (unsigned i = 0; i < SLT_SHARDS; i++)
        if (__atomic_load_n(&own->shards[i].readers[place], __ATOMIC_SEQ_CST) != 0)
            return 1;
    return 0;
}

/* Close the replaced tables that nobody reads. How many are still read; *unread, where it is not null,
   becomes a place for another table, or SLT_PLACES where there is none. */
static int slt_close_unread(slt_live *own, uint32_t *unread)
{
    uint32_t current = __atomic_load_n(&own->current, __ATOMIC_RELAXED), found = SLT_PLACES;
    int kept = 0;
    for (uint32_t place = 0; place < SLT_PLACES; place++) {
        if (place == current)
            continue;
        if (slt_is_read(own, place)) {
            kept += slt_open_view(own->tables[place]) != NULL;
            continue;
        }
        sluice_table_close(own->tables[place]);
        if (found == SLT_PLACES)
            found = place;
    }
    if (unread)
        *unread = found;
    return kept;
}

static uint64_t slt_milliseconds(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Let others run: at first at once, then for 50 us. */
static void slt_wait_a_little(unsigned times)
{
    struct timespec pause = {0, 50000};
    if (times < SLT_YIELDS)
        sched_yield();
    else
        nanosleep(&pause, NULL);
}

/* A place that nobody reads, waited for up to so many milliseconds; SLT_PLACES where there is none. */
static uint32_t slt_find_place(slt_live *own, uint32_t timeout_ms)
{
    uint64_t begin = timeout_ms ? slt_milliseconds() : 0;
    uint32_t place;
    for (unsigned times = 0;; times += times < SLT_YIELDS) {
        slt_close_unread(own, &place);
        if (place != SLT_PLACES || timeout_ms == 0 || slt_milliseconds() - begin >= timeout_ms)
            return place;
        slt_wait_a_little(times);
    }
}

/* Open the new table at a place that nobody reads and make it the current one. */
static int slt_exchange(slt_live *own, const slt_origin *origin, uint32_t timeout_ms)
{
    uint32_t place = slt_find_place(own, timeout_ms);
    int code;
    if (place == SLT_PLACES)
        return SLUICE_E_IN_USE;
    code = slt_fill_place(own, place, origin);
    if (code != SLUICE_OK)
        return code;
    __atomic_store_n(&own->current, place, __ATOMIC_SEQ_CST);
    slt_close_unread(own, NULL);
    return SLUICE_OK;
}

static int slt_swap_live_from(sluice_live *live, const slt_origin *origin, uint32_t timeout_ms)
{
    slt_live *own = slt_open_live(live);
    int code;
    if (!own || (!origin->path && !origin->bytes))
        return SLUICE_E_ARGUMENT;
    if (__atomic_exchange_n(&own->writing, 1, __ATOMIC_ACQUIRE))
        return SLUICE_E_BUSY;
    code = slt_exchange(own, origin, timeout_ms);
    __atomic_store_n(&own->writing, 0, __ATOMIC_RELEASE);
    return code;
}

int sluice_live_swap_within(sluice_live *live, const char *path, uint32_t timeout_ms)
{
    slt_origin origin = {path, NULL, 0};
    return slt_swap_live_from(live, &origin, timeout_ms);
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
    return slt_swap_live_from(live, &origin, timeout_ms);
}

int sluice_live_reclaim(sluice_live *live)
{
    slt_live *own = slt_open_live(live);
    int kept;
    if (!own)
        return SLUICE_E_ARGUMENT;
    if (__atomic_exchange_n(&own->writing, 1, __ATOMIC_ACQUIRE))
        return SLUICE_E_BUSY;
    kept = slt_close_unread(own, NULL);
    __atomic_store_n(&own->writing, 0, __ATOMIC_RELEASE);
    return kept;
}

void sluice_live_after_fork(sluice_live *live)
{
    slt_live *own = slt_open_live(live);
    if (!own)
        return;
    own->life++;
    slt_forget_readers(own);
    __atomic_store_n(&own->writing, 0, __ATOMIC_RELAXED);
}

void sluice_live_close(sluice_live *live)
{
    slt_live *own = slt_open_live(live);
    if (!own)
        return;
    slt_free_places(own);
    memset(live, 0, sizeof *live);
}
