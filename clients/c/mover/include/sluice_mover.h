/* SPDX-License-Identifier: Apache-2.0 */
/* Sluice's reference mover: messages over connected stream sockets, in the fragments of a table, moved by a
   thread of its own while the program calculates.

       sluice_mover *mover;
       sluice_mover_open(&mover, NULL);
       sluice_mover_add_peer(mover, socket, &peer);           a connected TCP or Unix socket, adopted
       sluice_mover_receive(mover, peer, tag, halo, bytes, NULL, &arriving);
       sluice_mover_send(mover, peer, tag, edge, bytes, NULL, &leaving);
       ... calculate what does not need the halo ...
       sluice_mover_wait(mover, arriving, -1, NULL);
       sluice_mover_wait(mover, leaving, -1, NULL);
       sluice_mover_close(mover, SLUICE_MOVER_DRAIN, 1000);

   It is a reference and a measuring instrument, for one host or a network that is trusted: no encryption,
   no reconnecting, no discovery, and an interface that may change until 1.0. Users of MPI, UCX or NCCL keep
   them. docs/mover.md says what it is for and how it works.

   Deadlock  An agent that never blocks but in epoll_wait, and reads whatever is readable, lets every accepted send
             complete while its peer's agent lives and has room: whatever the order of sends and receives, the
             sizes of fragments and of socket buffers. Room for messages that come before their receive is
             bounded by credits (early_bytes); who has none waits, and sluice_mover_wait says so with
             SLUICE_MOVER_E_STALLED. It never hangs silently.
   Threads   Every function may be called by any thread at any time, but for sluice_mover_close, behind which
             no other call may come. There is one lock, held for some tens of instructions and never across a call of
             the system that could block; the agent moves bytes without it. All signals are blocked in the agent.
   Memory    Everything is allocated when the mover is opened and a peer added, but for messages that come early:
             at most early_bytes and 1024 records of 160 bytes a peer. A peer cannot make it allocate more,
             whatever it sends. A mover's own fragments that are packed or unpacked take one buffer of
             max_fragment_bytes a peer and direction.
   Signals   None is raised (MSG_NOSIGNAL) and none is needed; EINTR is handled.
   Files     A socket that is added belongs to the mover and is closed by it. O_NONBLOCK is not touched: the file
             may be shared with another process. FD_CLOEXEC and TCP_NODELAY are set.
   Fork      A mover is its process's alone: in a child every function gives SLUICE_MOVER_E_FORK, but
             sluice_mover_close, which gives back memory and files there and does not disturb the parent.
   Errors    0 is success, errors are negative and none is one of sluice.h. No function prints, none ends the program.

   Compiles as C11 and as C++11 and later. Linux (eventfd). */
#ifndef SLUICE_MOVER_H
#define SLUICE_MOVER_H

#include <stddef.h>
#include <stdint.h>

#include "sluice.h"

#define SLUICE_MOVER_VERSION_MAJOR 0
#define SLUICE_MOVER_VERSION_MINOR 1
#define SLUICE_MOVER_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* What every function that returns int returns. */
enum sluice_mover_code {
    SLUICE_MOVER_OK = 0,
    SLUICE_MOVER_E_ARGUMENT = -32,  /* a null pointer, a value out of range, a peer that was not added, or a
                                       ticket whose result was taken already */
    SLUICE_MOVER_E_SYSTEM = -33,    /* the operating system refused; errno says why */
    SLUICE_MOVER_E_MEMORY = -34,    /* there was no memory for it */
    SLUICE_MOVER_E_TIMEOUT = -35,   /* not yet: the ticket stays what it is */
    SLUICE_MOVER_E_STALLED = -36,   /* nothing moved for stall_ms: the report says why; the ticket stays */
    SLUICE_MOVER_E_PEER = -37,      /* the peer ended, died or could not be reached */
    SLUICE_MOVER_E_PROTOCOL = -38,  /* the peer sent what no mover sends; it is left alone from then on */
    SLUICE_MOVER_E_TRUNCATED = -39, /* the message was longer than the buffer, and is lost */
    SLUICE_MOVER_E_CANCELLED = -40, /* taken back by sluice_mover_cancel, or by its sender */
    SLUICE_MOVER_E_CLOSED = -41,    /* the mover was closed */
    SLUICE_MOVER_E_LIMIT = -42,     /* no more peers, or no more tickets until some are waited for */
    SLUICE_MOVER_E_FORK = -43,      /* the mover belongs to the parent process */
    SLUICE_MOVER_E_CALLBACK = -44,  /* pack or unpack said no */
    SLUICE_MOVER_E_BUSY = -45,      /* another mover of this process is tracing */
    SLUICE_MOVER_E_CLOCK = -46      /* the peer is on another machine: its times cannot be compared */
};

/* --- opening ---------------------------------------------------------------------------------- */

/* A mover. What is in it is the library's own. */
typedef struct sluice_mover sluice_mover;

/* How a mover works; a field of 0 is the default. A later version may have more at its end: `size` says how
   much of it the caller knows. */
typedef struct sluice_mover_options {
    uint64_t size;                 /* set by the caller: sizeof(sluice_mover_options) */
    sluice_live *table;            /* what cuts messages; null: fragment_bytes does. It stays the caller's, who may
                                      swap it at any time and closes it behind the mover. A message is cut by the
                                      table that was current when it began, which stays in memory meanwhile */
    uint64_t fragment_bytes;       /* without a table, and for messages outside its range: 4096, as in Strumpen94 */
    uint64_t max_fragment_bytes;   /* 4 MiB, at most 2^30: longer fragments are cut again, and a longer one that a peer
                                      sends is refused. All movers that talk have to agree on it */
    uint64_t early_bytes;          /* 64 MiB: room for messages that come before their receive, a fragment being
                                      counted with 64 bytes more than it has; each of max_peers gets an equal share
                                      as its credit */
    uint64_t send_buffer_bytes;    /* SO_SNDBUF and SO_RCVBUF of the sockets, 0: as they are. What the kernel */
    uint64_t receive_buffer_bytes; /* granted, sluice_mover_peer_state says */
    uint32_t max_peers;            /* 16, at most 1024 */
    uint32_t max_tickets;          /* 4096, at most 2^20: sends and receives whose result was not taken yet */
    uint32_t stall_ms;             /* 10 000: how long nothing may move before a wait says so. A program whose peers
                                      calculate longer between messages asks for more */
    uint32_t never_stall;          /* 1: waits never say so, and end by their own timeout alone */
} sluice_mover_options;

/* Open a mover and start its agent. `options` may be null. */
SLUICE_API int sluice_mover_open(sluice_mover **mover, const sluice_mover_options *options);

/* Adopt a connected stream socket, TCP or Unix, at whose other end is a mover too: *peer is its number, from 0 up.
   A number is never used again. Where this fails the socket stays the caller's. */
SLUICE_API int sluice_mover_add_peer(sluice_mover *mover, int socket, uint32_t *peer);

/* How to end. */
enum sluice_mover_ending {
    SLUICE_MOVER_ABORT = 0, /* at once; peers may lose what they were sent but had not read yet */
    SLUICE_MOVER_DRAIN = 1  /* when all sends have left and every peer knows */
};

/* End the agent, close the sockets, give back the memory; null is no error. Tickets that are outstanding are lost:
   threads that wait for them get SLUICE_MOVER_E_CLOSED. Draining takes at most `timeout_ms`: SLUICE_MOVER_E_TIMEOUT
   where sends were left then; the mover is closed all the same. In the child of a fork SLUICE_MOVER_E_FORK: the
   child's files are closed and its memory given back, but for that of early messages, which the parent's agent may have been
   writing when the child was made. */
SLUICE_API int sluice_mover_close(sluice_mover *mover, int ending, uint32_t timeout_ms);

/* --- messages --------------------------------------------------------------------------------- */

/* A send or receive that was asked for. Never 0. */
typedef uint64_t sluice_mover_ticket;

/* Called by the agent for one fragment, in the order of the message: fill `fragment` with its bytes from `offset` on,
   as they travel. Other than 0 gives the message up (SLUICE_MOVER_E_CALLBACK here, CANCELLED at the other end). It may
   call no function of the mover, and nothing moves while it runs. */
typedef int (*sluice_mover_pack)(void *context, void *fragment, uint64_t offset, uint64_t bytes);

/* The same at the other end, when the fragment is whole. */
typedef int (*sluice_mover_unpack)(void *context, const void *fragment, uint64_t offset,
                                   uint64_t bytes);

/* How one message is treated; all may be zero. */
typedef struct sluice_mover_how {
    uint64_t size;               /* set by the caller: sizeof(sluice_mover_how) */
    sluice_mover_pack pack;      /* of a send: makes each fragment; the buffer may then be null */
    sluice_mover_unpack unpack;  /* of a receive: takes each fragment; the buffer may then be null */
    void *context;               /* is given to it */
    uint64_t fragment_bytes;     /* of a send: cut it into fragments of so many bytes, whatever the table says */
} sluice_mover_how;

/* Send `bytes` bytes with this tag, any number. Returns at once, whatever the peer does. The bytes have to stay as they are
   until the ticket is done, which is when the socket has taken all of them: the buffer is free then, and
   nothing is said of their arrival. Messages of one peer and tag arrive in the order in which they were sent; those of
   several tags share the connection fragment by fragment, so that a short one passes a long one. SLUICE_MOVER_E_LIMIT
   where no ticket is free. `how` may be null. */
SLUICE_API int sluice_mover_send(sluice_mover *mover, uint32_t peer, uint32_t tag,
                                 const void *from, uint64_t bytes, const sluice_mover_how *how,
                                 sluice_mover_ticket *ticket);

/* Receive the next message of this peer and tag into a buffer of `bytes` bytes; the message may be shorter. Returns at
   once. Where the message is there already it is copied, once; what comes later goes into the buffer directly. */
SLUICE_API int sluice_mover_receive(sluice_mover *mover, uint32_t peer, uint32_t tag, void *to,
                                    uint64_t bytes, const sluice_mover_how *how,
                                    sluice_mover_ticket *ticket);

/* What is known of a ticket. */
typedef struct sluice_mover_report {
    uint64_t size;          /* set by the caller: sizeof(sluice_mover_report) */
    int32_t code;           /* as it was returned */
    uint32_t is_send;
    uint32_t peer;
    uint32_t tag;
    uint64_t message_bytes; /* of a receive: of the buffer until the message's beginning is there */
    uint64_t moved_bytes;   /* given to the socket, or received */
    uint64_t fragments;     /* that they were */
    uint64_t credit_bytes;  /* what the peer would take now of messages that nobody waits for there */
    int64_t begin_ns;       /* CLOCK_MONOTONIC when the agent began with the first fragment; 0: not yet */
    int64_t end_ns;         /* and when it was through with the last; 0: not yet */
    int64_t busy_ns;        /* what the agent spent on it: packing and writing; of a receive, for each
                               fragment, the read that brought its last byte, and unpacking */
} sluice_mover_report;

/* Wait until the ticket is done and take its result: SLUICE_MOVER_OK, or why the message failed. The ticket is used up
   then. SLUICE_MOVER_E_TIMEOUT where it is not done within `timeout_ms` (below 0: however long it takes), and
   SLUICE_MOVER_E_STALLED where for stall_ms nothing moved: of a message without credit, of a receive, or of all
   that is sent to this peer. Both leave the ticket as it is: wait again, cancel it, or close. `report` may be null. */
SLUICE_API int sluice_mover_wait(sluice_mover *mover, sluice_mover_ticket ticket, int timeout_ms,
                                 sluice_mover_report *report);

/* The same without waiting. */
SLUICE_API int sluice_mover_test(sluice_mover *mover, sluice_mover_ticket ticket,
                                 sluice_mover_report *report);

/* Ask for a ticket to be taken back; it has to be waited for all the same, which then gives SLUICE_MOVER_E_CANCELLED, or
   SLUICE_MOVER_OK where it was too late: for a receive when its message has begun, for a send when all of it
   has been cut. A fragment that is being written is finished first. The receive at the other end, if the message has met
   one, gets SLUICE_MOVER_E_CANCELLED too; one that comes later gets the next message. */
SLUICE_API int sluice_mover_cancel(sluice_mover *mover, sluice_mover_ticket ticket);

/* --- what it did ------------------------------------------------------------------------------ */

/* Counters since the mover was opened. A later version may have more at its end. */
typedef struct sluice_mover_statistics {
    uint64_t size; /* set by the caller: sizeof(sluice_mover_statistics) */
    uint64_t messages_sent, messages_received;
    uint64_t fragments_sent, fragments_received;
    uint64_t bytes_sent, bytes_received; /* of messages, without headers */
    uint64_t writes, reads, polls;       /* calls of the system */
    uint64_t held;                       /* how often a message had to wait for credit */
    uint64_t early_bytes, max_early_bytes; /* held for receives to come: now, and at most */
    uint64_t sender_ns, receiver_ns;     /* as busy_ns of the reports, of all messages */
} sluice_mover_statistics;

/* Counters of this mover; *statistics->size has to be set before. */
SLUICE_API int sluice_mover_get_statistics(sluice_mover *mover,
                                           sluice_mover_statistics *statistics);

/* One peer. A later version may have more at its end. */
typedef struct sluice_mover_peer {
    uint64_t size;                 /* set by the caller: sizeof(sluice_mover_peer) */
    int32_t code;                  /* SLUICE_MOVER_OK while it lives, else why it does not */
    int32_t error;                 /* errno where the system said why, else 0 */
    uint64_t credit_bytes;         /* what it would take now of messages that nobody waits for there */
    uint64_t send_buffer_bytes;    /* SO_SNDBUF and SO_RCVBUF as the kernel granted them when it was added. */
    uint64_t receive_buffer_bytes; /* Linux doubles what it is asked and charges its own overhead to it */
} sluice_mover_peer;

/* The state of this peer; peer_state->size has to be set before. */
SLUICE_API int sluice_mover_peer_state(sluice_mover *mover, uint32_t peer,
                                       sluice_mover_peer *peer_state);

/* --- measuring -------------------------------------------------------------------------------- */

/* From now on log what each fragment took: the stages `sender` (pack and write) and `receiver` (the read that made it
   whole, and unpack), which run in one thread and are one stage each. One mover of a process at a time:
   SLUICE_MOVER_E_BUSY. */
SLUICE_API int sluice_mover_trace_begin(sluice_mover *mover);

/* Stop logging and write `path` in the project's direct CSV (docs/measurements.md), a row a fragment, by
   sluice_trace.h; and where `events_path` is not null, also every event with its beginning and its end
   (`stage,bytes,begin_ns,end_ns`), which is what a picture is drawn from. SLUICE_MOVER_E_SYSTEM where a file
   could not be written. */
SLUICE_API int sluice_mover_trace_end(sluice_mover *mover, const char *path,
                                      const char *events_path);

/* One measured message: unpipelined, of one fragment. Microseconds of one clock. */
typedef struct sluice_mover_sample {
    uint64_t message_bytes;
    uint64_t repetition;
    double sender_us;   /* packing and writing */
    double wire_us;     /* all else: total - sender - receiver */
    double receiver_us; /* the last read and unpacking */
    double total_us;    /* from the sender's beginning to the receiver's end */
} sluice_mover_sample;

/* Is given each sample; other than 0 ends the calibration with SLUICE_MOVER_E_CALLBACK. */
typedef int (*sluice_mover_sampled)(void *context, const sluice_mover_sample *sample);

/* Measure the stages of the way to a peer, which calls sluice_mover_calibrate_reply with the same tag meanwhile:
   `repetitions` messages of each of the sizes, every one in one fragment and alone on its way, behind a rest as long
   as the one before it took (100 ms at most). A size of 0, above
   max_fragment_bytes or above half of what a peer gets of early_bytes is SLUICE_MOVER_E_ARGUMENT. The times are
   differences of CLOCK_MONOTONIC, which processes of one machine share; SLUICE_MOVER_E_CLOCK where the peer is on
   another one, or says that it was through before the sender began. `how` may be null, and its pack and unpack (of
   the peer's own) belong to the stages. `timeout_ms` is for each message, and for each of the three
   notes that go with it. After SLUICE_MOVER_E_TIMEOUT or STALLED a message may be half done: the mover keeps what it
   needs, pack and unpack are called no more, and the tag is of no use with this peer. */
SLUICE_API int sluice_mover_calibrate(sluice_mover *mover, uint32_t peer, uint32_t tag,
                                      const uint64_t *sizes, size_t count, uint64_t repetitions,
                                      const sluice_mover_how *how, int timeout_ms,
                                      sluice_mover_sampled sampled, void *context);

/* The other end of it; returns when the calibration is over. */
SLUICE_API int sluice_mover_calibrate_reply(sluice_mover *mover, uint32_t peer, uint32_t tag,
                                            const sluice_mover_how *how, int timeout_ms);

/* --- texts ------------------------------------------------------------------------------------ */

/* What a code means, in a few words of English without a full stop; never null. Those of sluice.h too. */
SLUICE_API const char *sluice_mover_error_text(int code);

/* A report as a sentence without a full stop, cut to `room` bytes with its ending zero:
   "stalled: send to peer 1, tag 7: 4096 of 8192 bytes, credit 0 bytes". Its length without the zero, uncut; 0 where an
   argument is null. */
SLUICE_API size_t sluice_mover_describe(const sluice_mover_report *report, char *text, size_t room);

/* The library's version, as "0.1.0". */
SLUICE_API const char *sluice_mover_version(void);

#ifdef __cplusplus
}
#endif

#endif
