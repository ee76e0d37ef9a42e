/* A table that is replaced while others read: two tables and two counters of readers for each of
   some cache lines.

   Source  P. Ramalhete and A. Correia, Brief announcement: Left-Right, DISC 2015 (concurrency
           without waiting for readers); the counters in pairs are those of P. McKenney's sleepable
           RCU (LWN, 2006).

   A reader (1) counts itself in, in the counter of the current phase on its cache line, (2) asks which
   table is current, and later (3) counts itself out of the counter that it counted itself into. The
   writer opens the new file in the table that nobody reads, (4) makes it the current one, and (5)
   waits until each counter has been zero once; then nobody reads the old one, and it is closed.

   Why nobody does. (1), (2), (4) and the loads of (5) are sequentially consistent, so they have one
   order for all threads. A reader that got the old table did (2) before (4), hence (1) before (4),
   hence before (5): the writer sees it counted in, whatever its phase, until it counts itself out.
   (3) releases what the reader did and (5) acquires it, through whatever counting of others is in
   between (each is a read-modify-write, which continues the release): its reads are over before the
   mapping is given back. (4) releases the new table's content and (2) acquires it.

   Why there are two phases. The counter of one phase might never be zero while readers come and go.
   The writer first waits for the phase that no new reader takes, then sends new readers there, then
   waits for the other one, so that it waits only for readers that were there before. A reader's view
   of the phase may be old; that is not wrong, for both phases are waited for. So it is relaxed.

   Readers do one read-modify-write when they enter and one when they leave, whatever others do: wait-
   free where the machine has a fetch-and-add (x86-64, ARMv8.1), lock-free elsewhere. */
#define _POSIX_C_SOURCE 200809L

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "table.h"

enum {
    SHARDS = 32,   /* readers are spread over so many pairs of counters */
    SPACING = 128, /* bytes from pair to pair: two cache lines, which are often fetched together */
    SPINS = 64,    /* looks at a counter before the writer lets others run */
    YIELDS = 64    /* times that it does before it sleeps */
};

/* Counters at least two cache lines apart, wherever the caller's memory begins. */
typedef struct slt_shard {
    _Atomic uint32_t readers[2]; /* of each phase; 32 bits are atomic everywhere */
    unsigned char padding[SPACING - 2 * sizeof(uint32_t)];
} slt_shard;

typedef struct __attribute__((may_alias)) slt_live {
    uint64_t seal;
    _Atomic uint32_t current; /* which of the tables */
    _Atomic uint32_t phase;
    _Atomic uint32_t writing;
    unsigned char padding[SPACING - sizeof(uint64_t) - 3 * sizeof(uint32_t)];
    sluice_table tables[2];
    slt_shard shards[SHARDS];
} slt_live;

typedef struct __attribute__((may_alias)) slt_ticket {
    uint64_t shard;
    uint64_t phase;
} slt_ticket;

_Static_assert(sizeof(slt_live) + SPACING <= sizeof(sluice_live), "it fits, and one space behind");
_Static_assert(sizeof(slt_ticket) <= sizeof(sluice_ticket), "a ticket fits");

#define SLT_LIVE_OPEN UINT64_C(0x53c1a7e5ab1e0003)

static slt_live *open_live(sluice_live *live)
{
    slt_live *own = (slt_live *)(void *)live;
    return own && own->seal == SLT_LIVE_OPEN ? own : NULL;
}

/* A pair of counters for this thread, without asking who it is: threads have their stacks far apart,
   so the page of an address on it, multiplied by 2^64 / golden ratio (Knuth, TAOCP 3, 6.4), spreads
   them. Two threads that meet share a cache line and nothing worse. */
static uint64_t shard_of(const void *address)
{
    uint64_t page = (uint64_t)(uintptr_t)address >> 12;
    return (page * UINT64_C(0x9e3779b97f4a7c15)) >> 59;
}

_Static_assert(SHARDS == 1 << (64 - 59), "a hash of five bits names a shard");

int sluice_live_open(sluice_live *live, const char *path)
{
    slt_live *own = (slt_live *)(void *)live;
    int code;
    if (!own)
        return SLUICE_E_ARGUMENT;
    memset(live, 0, sizeof *live);
    code = sluice_table_open(&own->tables[0], path);
    if (code != SLUICE_OK)
        return code;
    atomic_init(&own->current, 0);
    atomic_init(&own->phase, 0);
    atomic_init(&own->writing, 0);
    for (unsigned i = 0; i < SHARDS; i++) {
        atomic_init(&own->shards[i].readers[0], 0);
        atomic_init(&own->shards[i].readers[1], 0);
    }
    own->seal = SLT_LIVE_OPEN;
    return SLUICE_OK;
}

const sluice_table *sluice_live_enter(sluice_live *live, sluice_ticket *ticket)
{
    slt_live *own = open_live(live);
    slt_ticket *held = (slt_ticket *)(void *)ticket;
    if (!own || !held)
        return NULL;
    held->shard = shard_of(ticket);
    held->phase = atomic_load_explicit(&own->phase, memory_order_relaxed) & 1;
    atomic_fetch_add_explicit(&own->shards[held->shard].readers[held->phase], 1,
                              memory_order_seq_cst);
    return &own->tables[atomic_load_explicit(&own->current, memory_order_seq_cst)];
}

void sluice_live_leave(sluice_live *live, const sluice_ticket *ticket)
{
    slt_live *own = open_live(live);
    const slt_ticket *held = (const slt_ticket *)(const void *)ticket;
    if (own && held)
        atomic_fetch_sub_explicit(&own->shards[held->shard % SHARDS].readers[held->phase & 1], 1,
                                  memory_order_release);
}

/* Let others run: first at once, then after a while of 50 us. */
static void wait_a_little(unsigned times)
{
    struct timespec pause = {0, 50000};
    if (times >= SPINS + YIELDS)
        nanosleep(&pause, NULL);
    else if (times >= SPINS)
        sched_yield();
}

/* Wait until the phase's counter has been zero once on every cache line. */
static void wait_for_phase(slt_live *own, uint32_t phase)
{
    for (unsigned i = 0; i < SHARDS; i++) {
        unsigned times = 0;
        while (atomic_load_explicit(&own->shards[i].readers[phase], memory_order_seq_cst) != 0)
            wait_a_little(times < SPINS + YIELDS ? times++ : times);
    }
}

/* Wait until nobody has a table that stopped being the current one before this call. */
static void wait_for_readers(slt_live *own)
{
    uint32_t phase = atomic_load_explicit(&own->phase, memory_order_relaxed);
    wait_for_phase(own, phase ^ 1);
    atomic_store_explicit(&own->phase, phase ^ 1, memory_order_relaxed);
    wait_for_phase(own, phase);
}

/* Open the file in the table that nobody reads and exchange the two. */
static int exchange(slt_live *own, const char *path)
{
    uint32_t old = atomic_load_explicit(&own->current, memory_order_relaxed);
    int code = sluice_table_open(&own->tables[old ^ 1], path);
    if (code != SLUICE_OK)
        return code;
    atomic_store_explicit(&own->current, old ^ 1, memory_order_seq_cst);
    wait_for_readers(own);
    sluice_table_close(&own->tables[old]);
    return SLUICE_OK;
}

int sluice_live_swap(sluice_live *live, const char *path)
{
    slt_live *own = open_live(live);
    int code;
    if (!own || !path)
        return SLUICE_E_ARGUMENT;
    if (atomic_exchange_explicit(&own->writing, 1, memory_order_acquire))
        return SLUICE_E_BUSY;
    code = exchange(own, path);
    atomic_store_explicit(&own->writing, 0, memory_order_release);
    return code;
}

void sluice_live_close(sluice_live *live)
{
    slt_live *own = open_live(live);
    if (!own)
        return;
    sluice_table_close(&own->tables[0]);
    sluice_table_close(&own->tables[1]);
    memset(live, 0, sizeof *live);
}
