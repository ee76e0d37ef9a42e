/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the mover share.

   Two worlds meet here. What a caller's thread touches is guarded by mover->lock: the list of what was submitted,
   and of each transfer its state, code and generation. All the rest belongs to the agent alone, which therefore moves
   bytes without the lock. A transfer goes from the caller to the agent by `submitted` and back by finish(). The few
   numbers that a caller reads while the agent writes them (how far a transfer is, a peer's credit) are atomic,
   relaxed: they order nothing. */
#ifndef SLUICE_MOVER_INTERNAL_H
#define SLUICE_MOVER_INTERNAL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "frame.h"
#include "sluice_mover.h"

enum {
    FRAMES = 16,          /* prepared for one write, so that small fragments share a call of the system */
    WRITE_BYTES = 65536,  /* prepared at once, beyond the first fragment */
    TURN_BYTES = 1 << 20, /* written or read in one turn of one peer, so that others have theirs */
    INPUT_BYTES = 16384,  /* of a peer that are read but not yet looked at */
    SCRATCH_BYTES = 65536,
    RECORDS = 1024,       /* messages of a peer that wait for their receive */
    BUCKETS = 64,
    EVENTS = 64           /* that one call of the system says; the others wait their turn */
};

#define SLM_DOORBELL UINT32_MAX /* in place of a peer's number */

/* --- lists ------------------------------------------------------------------------------------ */

typedef struct entry {
    struct entry *next, *before;
} entry;

#define OWNER(of, type, member) ((type *)(void *)((char *)(of) - offsetof(type, member)))

static inline void list_init(entry *list)
{
    list->next = list->before = list;
}

static inline bool list_empty(const entry *list)
{
    return list->next == list;
}

static inline void list_append(entry *list, entry *one)
{
    one->next = list;
    one->before = list->before;
    list->before->next = one;
    list->before = one;
}

/* Out of whichever list it is in; in none, it is left so. */
static inline void list_remove(entry *one)
{
    one->before->next = one->next;
    one->next->before = one->before;
    list_init(one);
}

/* --- transfers -------------------------------------------------------------------------------- */

typedef enum transfer_state { FREE, LIVE, DONE } transfer_state;

struct incoming;

/* A send or receive: one for each ticket, allocated when the mover is opened. */
typedef struct transfer {
    /* Guarded by the lock. */
    transfer_state state;
    uint32_t generation; /* distinguishes the tickets that had this place */
    int code;            /* of a DONE one */
    bool is_cancelled;   /* was asked for */
    void *left;          /* memory that is freed with it: nobody waits for it any more */
    bool is_quiet;       /* of such a one: its pack and unpack are called no more */

    /* Written before it is submitted, and by the agent from then on. */
    bool is_send;
    uint32_t peer, tag;
    unsigned char *buffer;
    uint64_t bytes; /* of the message, or of the buffer */
    sluice_mover_how how;

    /* The agent's. */
    entry place;                /* in one of the peer's lists, or the mover's submitted ones (guarded) */
    entry cancelling;           /* in the mover's list of those to be cancelled (guarded) */
    entry by_number;            /* in the peer's bucket of sends that have begun */
    uint64_t number;           /* on the connection */
    uint64_t cut_bytes;        /* up to here fragments were cut */
    uint32_t next_bytes;       /* of the fragment that waits for credit; 0: not cut yet */
    uint32_t queued;           /* fragments that are prepared and not written yet */
    int failed;                /* why the rest will not be sent; 0: it will */
    bool is_begun, is_granted, has_cut, is_cut_done;
    sluice_cut cut;
    sluice_ticket reading;     /* of the live table, while has_cut */
    struct incoming *incoming; /* the message that a receive takes */

    /* Read by waiters while the agent writes. */
    _Atomic uint64_t moved;
    _Atomic uint64_t fragments;
    _Atomic uint64_t total; /* bytes of the message, once they are known */
    _Atomic int64_t begin_ns, end_ns, busy_ns;
    _Atomic bool is_held;   /* waits for credit */
} transfer;

/* A fragment that came before its receive. */
typedef struct stored {
    struct stored *next;
    uint64_t offset;
    uint32_t bytes;
    unsigned char content[];
} stored;

_Static_assert(sizeof(stored) + 2 * sizeof(size_t) <= FRAGMENT_COST, "a fragment costs what it takes");

/* A message that is coming, or is here and nobody has asked for it. */
typedef struct incoming {
    entry place;     /* in the peer's bucket of early messages, while no receive has it */
    entry by_number; /* in the peer's bucket of messages that are not complete */
    entry granting;  /* in the peer's list of grants to be sent */
    uint64_t number;
    uint64_t bytes, received;
    uint32_t tag;
    bool is_granted;
    int64_t begin_ns;
    transfer *receive; /* null: early */
    stored *first, **last;
} incoming;

/* Where the bytes of the fragment that is being read go. */
typedef enum destination { INTO_BUFFER, INTO_STAGING, INTO_STORED, INTO_NOTHING } destination;

/* --- peers ------------------------------------------------------------------------------------ */

typedef struct frame {
    unsigned char header[FIRST_BYTES];
    uint32_t header_bytes, bytes, written; /* written: of both */
    const unsigned char *content;
    transfer *send; /* null: a frame of control */
    int64_t busy_ns;
} frame;

typedef struct peer {
    int socket; /* -1 when it has ended */
    uint32_t watched, ready; /* events that epoll is asked for, and that it said in this turn */
    uint32_t number;
    _Atomic int code, error;
    uint64_t send_buffer_bytes, receive_buffer_bytes;

    /* What is sent. */
    entry fresh, active, held; /* sends: not begun, with fragments to send, without credit for the next */
    entry numbered[BUCKETS];   /* those that have begun, by number */
    entry aborting;            /* sends whose rest will not come, which the peer has to be told */
    entry granting;            /* messages whose sender has to be told that they need no credit */
    frame frames[FRAMES];
    uint32_t frames_begin, frames_count;
    uint64_t frames_bytes;
    unsigned char *packing;   /* one fragment, where the program packs */
    bool is_packing;          /* a frame that is not written yet has it */
    uint64_t next_number;
    uint64_t records;         /* messages that may begin */
    _Atomic uint64_t credit;
    _Atomic uint64_t moved;   /* bytes that the socket took: progress, for waiters */
    bool is_writable;         /* nothing says yet that a write would take nothing */
    bool is_fresh_next;       /* turns between messages that begin and such that go on */
    bool need_sent, cannot_write;
    bool wants_bye, bye_sent, is_shut;

    /* What is received. */
    unsigned char input[INPUT_BYTES];
    uint32_t input_begin, input_end;
    incoming *message;        /* whose fragment is being read; null: a header comes next */
    destination into;
    unsigned char *at;
    stored *storing;
    uint32_t fragment_bytes, fragment_read;
    uint32_t read_now;        /* of this fragment in the read that is being looked at */
    bool is_early;
    unsigned char *staging;   /* one fragment, where the program unpacks */
    entry posted[BUCKETS];     /* receives that wait for their message, by tag */
    entry early[BUCKETS];      /* messages that wait for their receive, by tag */
    entry coming[BUCKETS];     /* messages that are not complete, by number */
    uint64_t next_coming;
    uint64_t room, room_records; /* what was granted and not used yet */
    uint64_t owed, owed_records; /* what is free again and not granted yet */
    bool is_needed;           /* the peer waits for credit */
} peer;

/* --- the mover -------------------------------------------------------------------------------- */

struct sluice_mover {
    /* Constant once it is open. */
    sluice_mover_options options;
    uint64_t window; /* credit of each peer */
    uint32_t *is_here; /* 1; in the child of a fork 0 (MADV_WIPEONFORK) */
    int doorbell;
    int watch; /* epoll: the doorbell and every peer that lives */
    pthread_t agent;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Guarded by the lock. */
    entry submitted, cancelling;
    transfer *transfers;
    uint32_t *free_places;
    uint32_t free_count;
    peer **peers;
    uint32_t peer_count;
    uint32_t waiting;       /* threads that are in sluice_mover_wait */
    bool is_sleeping;       /* the agent has to be rung for */
    bool is_ending;
    int ending;
    int64_t deadline_ns;    /* of draining */
    bool has_drained;
    bool is_traced;         /* is asked for, */
    bool traces;            /* and the agent does it */
    sluice_mover_statistics published;

    /* The agent's. */
    sluice_mover_statistics counted;
    bool is_tracing;
    bool is_saying_bye;
    int64_t read_ns;        /* what the read took that is being looked at, */
    uint64_t read_bytes;    /* and how many bytes it brought */
    unsigned char scratch[SCRATCH_BYTES];
};

static inline uint64_t relaxed(const _Atomic uint64_t *number)
{
    return atomic_load_explicit(number, memory_order_relaxed);
}

/* The agent alone writes, so that an addition need not be one instruction. */
static inline void add_to(_Atomic uint64_t *number, uint64_t more)
{
    atomic_store_explicit(number, relaxed(number) + more, memory_order_relaxed);
}

static inline void add_time(_Atomic int64_t *number, int64_t more)
{
    atomic_store_explicit(number, atomic_load_explicit(number, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

static inline void set_time(_Atomic int64_t *number, int64_t value)
{
    atomic_store_explicit(number, value, memory_order_relaxed);
}

int64_t slm_now_ns(void);

/* --- agent.c ---------------------------------------------------------------------------------- */

/* The thread. */
void *slm_agent(void *mover);

/* Hand a transfer back to whoever waits for it; it belongs to the caller from here on. */
void slm_finish(sluice_mover *mover, transfer *one, int code);

/* The peer has ended: close its socket, fail what is outstanding with it, keep messages that are here in full. */
void slm_end_peer(sluice_mover *mover, peer *one, int code, int error);

/* --- outgoing.c ------------------------------------------------------------------------------- */

void slm_begin_send(sluice_mover *mover, peer *to, transfer *send);
void slm_cancel_send(sluice_mover *mover, peer *to, transfer *send);
/* Whether there is a frame to write, or could be one. */
bool slm_has_output(sluice_mover *mover, peer *to);
/* One call of the system at most. */
void slm_write(sluice_mover *mover, peer *to);
/* The peer may be sent to no more: fail all sends with this code. */
void slm_drop_sends(sluice_mover *mover, peer *to, int code);
int slm_take_credit(peer *from, uint64_t bytes, uint64_t records);
int slm_take_grant(peer *from, uint64_t number);
/* Whether all sends have left. */
bool slm_has_left(const peer *to);

/* --- incoming.c ------------------------------------------------------------------------------- */

void slm_begin_receive(sluice_mover *mover, peer *from, transfer *receive);
void slm_cancel_receive(sluice_mover *mover, peer *from, transfer *receive);
/* One call of the system, and all frames that it brought. */
void slm_read(sluice_mover *mover, peer *from);
/* Nothing more comes: fail receives, drop what is not complete, with everything else where `all`. */
void slm_drop_incoming(sluice_mover *mover, peer *from, int code, bool all);

/* --- trace.c ---------------------------------------------------------------------------------- */

void slm_trace_sender(uint64_t bytes, int64_t busy_ns);
void slm_trace_receiver(uint64_t bytes, int64_t busy_ns);
/* The agent traces no more: its list of events is the caller's. */
void slm_trace_leave(void);
void slm_trace_forget(const sluice_mover *mover);

/* --- mover.c ---------------------------------------------------------------------------------- */

/* SLUICE_MOVER_OK where functions may be called at all. */
int slm_check(const sluice_mover *mover);

/* Guarded by the lock: the place of a ticket that is done is free again, and what was left with it. */
void slm_free_ticket(sluice_mover *mover, transfer *one);

/* Have the agent look at what changed under the lock. */
void slm_wake(sluice_mover *mover);

/* Take a ticket back without waiting for what cannot be taken back: a fragment that is half done. `memory`, from
   malloc, is what it moves, and freed when it is done with. Its pack and unpack are called no more from here on. */
void slm_leave(sluice_mover *mover, sluice_mover_ticket ticket, void *memory);

#endif
