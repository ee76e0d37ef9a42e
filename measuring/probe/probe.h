/* What all parts of the probe share: one clock, pinning, preemption, refusals, exact transfers. */
#ifndef SLUICE_PROBE_H
#define SLUICE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROBE_USAGE = 2, PROBE_NOT_HERE = 3, PROBE_FAILED = 4 };

/* What was asked for on the command line. */
struct options {
    const char *name;      /* of the stage or the transport */
    const char *path;      /* a folder, for files */
    size_t max_bytes;      /* of a message */
    size_t window;         /* messages without a reply, at most */
    int cpus[2];           /* of the two ends; -1: not pinned */
    bool cold;             /* copies come from memory and not from a cache */
    size_t depth;          /* fragments between two stages of a transfer, at most */
    const char *host;      /* of the far side's listener; NULL: both ends are here */
    int port;
};

/* Nanoseconds of CLOCK_MONOTONIC, which all processes of a machine share. */
int64_t now_ns(void);

/* Involuntary context switches of this thread, and of another process: it was preempted so often. */
int64_t own_preemptions(void);
int64_t preemptions_of(int process);

/* Run on this CPU alone; -1 leaves the process where it is. */
void pin_to(int cpu);

/* End with one line on standard error and this status. */
_Noreturn void refuse(int status, const char *format, ...);

/* A line "# name: value" on standard output. */
void fact(const char *name, const char *value);

/* All bytes, through signals and partial transfers; false at the end of the stream. */
bool write_all(int file, const void *from, size_t bytes);
bool read_all(int file, void *to, size_t bytes);

/* A child that ends when its parent does, pinned to the second CPU; 0 in the child. */
int fork_end(const struct options *asked);

/* The pattern of message `number` at its beginning and its end, and whether it is there. */
void mark(unsigned char *message, size_t bytes, uint64_t number);
bool is_marked(const unsigned char *message, size_t bytes, uint64_t number);

/* The least time in ns that a timed section with nothing in it takes. */
int64_t timer_ns(void);

/* Both ends of a stream: 0 is the first process's, 1 the second's; the other one's is closed. */
struct stream {
    int file[2];
};
/* Over loopback, or at a place: "near/far/address", two network namespaces and the far one's IPv4
   address. place_of: of a stage's name what follows the colon, or NULL. */
void open_tcp(struct stream *stream, const char *place);
const char *place_of(const char *name);
void open_pair(struct stream *stream, const char *kind); /* "pipe" or "unix" */

/* Shared with a process that is forked after. */
struct ring *open_ring(void);
bool ring_write(struct ring *ring, const unsigned char *from, size_t bytes);
bool ring_read(struct ring *ring, unsigned char *to, size_t bytes);

/* Whole pages, each of which is there. */
enum { PAGE = 4096 };
unsigned char *memory(size_t bytes);

/* The first GPU. After open_gpu_driver, which refuses where there is none: memory of the GPU, memory
   of the host that it reaches by itself, and a copy between them, done on return. */
#define NO_GPU "not here: there is no libcuda.so.1, which a GPU's driver brings"
bool has_gpu_driver(void);
void open_gpu_driver(void);
unsigned char *gpu_memory(size_t bytes);
unsigned char *pinned_memory(size_t bytes);
void gpu_copy(void *to, const void *from, size_t bytes);

uint32_t checksum(const unsigned char *from, size_t bytes);

/* A file without a name: nothing stays behind, however this ends. It is filled in steps. */
int unnamed_file(const char *folder, size_t bytes, size_t step, int flags);

/* A library that moves messages, for which the probe is compiled: mpi.c or ucx.c, or none. */
struct library {
    /* The process of the other end, or of a replier nothing of use. */
    int (*open)(const struct options *asked, bool *is_replier);
    /* Messages are begun and tested: true, or 1, when one is through, and -1 when the other end
       has no more. */
    bool (*send_some)(const unsigned char *message, size_t bytes);
    int (*receive_some)(unsigned char *message, size_t bytes);
    void (*close)(bool is_replier); /* NULL: the other end sees by itself that this one has gone */
};
#if defined PROBE_MPI
#define PROBE_LIBRARY "mpi"
#elif defined PROBE_UCX
#define PROBE_LIBRARY "ucx"
#endif
#ifdef PROBE_LIBRARY
extern const struct library LIBRARY;
#endif

/* Numbers between machines are little-endian. */
void put_number(unsigned char *to, uint64_t number);
uint64_t get_number(const unsigned char *from);

/* A connection to the listener at asked->host, greeted. */
enum far_kind { FAR_STAGE = 1, FAR_SIGNATURE = 2 };
int connect_to(const struct options *asked, enum far_kind kind);
int64_t far_message(int file, unsigned char *from, size_t bytes, uint64_t number, bool *preempted);
/* Answers requests of a peer until it goes, or nothing comes for so long. */
void reply_to(int file, size_t bytes, int64_t idle_ns);

int run_listener(const struct options *asked);
/* Run a program for this parent; all of it ends when either does. */
int run_kept(int parent, char **words);
int run_stage(const struct options *asked);
int run_signature(const struct options *asked);
int run_transfer(const struct options *asked);
void list_stages(void);
void list_transports(void);

#endif
