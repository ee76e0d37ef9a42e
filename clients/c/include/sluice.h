/* SPDX-License-Identifier: Apache-2.0 */
/* Sluice: how to cut a message into fragments, looked up in a compiled table file (.slt).

   The table file is made by `sluice table` or read from the service; docs/format.md describes it
   byte by byte. This library reads such a file, checks all of it once, and then answers by message
   size in tens of nanoseconds:

       sluice_table table;
       uint64_t size;
       if (sluice_table_open(&table, "profile.slt") != SLUICE_OK) { ... the built-in default ... }
       if (sluice_repeat(&table, message_bytes, &size) == SLUICE_OK) { ... fragments of `size` ... }

   Memory    All of it is the caller's: the structures below, wherever the caller puts them, and the
             arrays that are filled. Nothing is allocated by malloc; a file is read into pages of the
             library's own, or into a buffer of the caller's (sluice_table_load).
   Threads   A table that is open is only read; any number of threads may look up in it without a
             lock. Opening and closing it is for one thread, while no other uses it. A table that is
             replaced while others read is a sluice_live.
   Errors    0 is success, errors are negative. A function that fails leaves what its pointers show
             to as it was, except where this header says otherwise. No function prints, none ends
             the program, none changes a global variable; errno is set with SLUICE_E_SYSTEM only.
   Hostile   A file is refused unless it keeps every rule of docs/format.md. Afterwards it may be
   files     overwritten, shortened, replaced or removed: an open table does not depend on it.
   Numbers   Lookups are done in integers; every implementation gives the same bytes.
   Debugging Compiled with SLUICE_CHECKED, the library checks each answer before it gives it: that it
             sums to the message and keeps the limits. One that does not is SLUICE_E_INVALID. That can
             only be one of a mapped file that somebody overwrote.

   Compiles as C11 and as C++11 and later. */
#ifndef SLUICE_H
#define SLUICE_H

#include <stddef.h>
#include <stdint.h>

#define SLUICE_VERSION_MAJOR 0
#define SLUICE_VERSION_MINOR 1
#define SLUICE_VERSION_PATCH 0

/* What stands before every function. A program that includes sluice.c itself may define it, as `static`
   for instance. */
#if defined(_WIN32)
#error "libsluice reads files by POSIX's calls"
#elif defined(SLUICE_API)
#elif defined(SLUICE_BUILDING) && defined(__GNUC__)
#define SLUICE_API __attribute__((visibility("default")))
#else
#define SLUICE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What every function that returns int returns. */
enum sluice_code {
    SLUICE_OK = 0,
    SLUICE_E_ARGUMENT = -1,  /* a null pointer, or a table that is not open */
    SLUICE_E_SYSTEM = -2,    /* the operating system refused; errno says why */
    SLUICE_E_FORMAT = -3,    /* no table file: other first bytes, or no regular file */
    SLUICE_E_VERSION = -4,   /* a table file of a version that this library does not know */
    SLUICE_E_TRUNCATED = -5, /* shorter or longer than its header says */
    SLUICE_E_CHECKSUM = -6,  /* damaged: the checksum is wrong */
    SLUICE_E_INVALID = -7,   /* a rule of docs/format.md is broken */
    SLUICE_E_RANGE = -8,     /* the message is outside the table's range */
    SLUICE_E_CAPACITY = -9,  /* the caller's array or buffer is too short */
    SLUICE_E_NO_REPEAT = -10, /* the limits admit no size that is repeated for this message */
    SLUICE_E_BUSY = -11,     /* another thread is swapping this live table */
    SLUICE_E_CHANGED = -12,  /* the file changed while it was read: try again */
    SLUICE_E_IN_USE = -13    /* every table that a swap could use is still being read */
};

/* --- a table ---------------------------------------------------------------------------------- */

/* An open table, 2 KiB: pointers into the file and an index. Its content is the library's own.
   A table whose bytes are all zero is a closed one. */
typedef struct sluice_table {
    uint64_t opaque[256];
} sluice_table;

/* What a table is for. Sizes are bytes. A later version may have more at its end: `size` says how much
   of it the caller knows, and the library writes no more. */
typedef struct sluice_description {
    uint64_t size;                   /* set by the caller: sizeof(sluice_description) */
    uint64_t min_message_bytes;      /* messages from here ... */
    uint64_t max_message_bytes;      /* ... to here, inclusive */
    double relative_gap;             /* the tolerance that was asked for; see sluice_certificate */
    uint64_t min_fragment_bytes;     /* the constraints that every cut keeps: from 1 */
    uint64_t max_fragment_bytes;     /* 0: none */
    uint64_t alignment_bytes;        /* from 1; every fragment but the last is a multiple of it */
    uint64_t max_fragments;          /* 0: none */
    uint64_t fragment_cap;           /* the compiler's own cap on the number of fragments */
    uint64_t max_schedule_fragments; /* most fragments of any message in the range:
                                        an array of so many is never too short */
    uint64_t cut_count;              /* records in the file */
    uint64_t repeat_count;
    uint64_t file_bytes;
    uint32_t revision;           /* of the profile; 0 where it has no name */
    uint32_t checksum;           /* the file's own CRC-32 */
    char profile[72];            /* the profile's name, zero-terminated; "" for none */
} sluice_description;

/* The longest file that is read into pages, bytes: 256 MiB. Tables have a few KiB; a longer file is
   no reason to fill the memory. */
#define SLUICE_MAX_READ_BYTES ((size_t)1 << 28)

/* Open a table file: read it into pages of its own and check everything that docs/format.md lists
   under Validation, once. Takes time linear in the file (about a millisecond for a megabyte).

   The table does not depend on the file any more: whoever overwrites, shortens, replaces or removes
   it does not reach this table. Where that happens while it is being read, SLUICE_E_CHANGED,
   SLUICE_E_CHECKSUM or another error says so. Only a regular file is taken; a directory, a pipe or a
   device gives SLUICE_E_FORMAT and is not waited for; a file of more than SLUICE_MAX_READ_BYTES gives
   SLUICE_E_CAPACITY. On any error the table is closed. */
SLUICE_API int sluice_table_open(sluice_table *table, const char *path);

/* Flags of sluice_table_open_with. */
enum sluice_open_flag {
    SLUICE_OPEN_MAPPED = 1 /* DANGEROUS: map the file instead of reading it */
};

/* The same with flags, the sum of some of the above or 0; SLUICE_E_ARGUMENT for others.

   SLUICE_OPEN_MAPPED is for tables of many megabytes that many processes share, and only where nobody
   writes to the file: where somebody overwrites a mapped file in place, lookups stay inside the
   mapping and end, but what they say is worth nothing; where somebody shortens it, and on network file
   systems where somebody replaces it, touching it raises SIGBUS, which no library can prevent. */
SLUICE_API int sluice_table_open_with(sluice_table *table, const char *path, uint32_t flags);

/* The same as sluice_table_open, into `buffer` of `capacity` bytes, which stays the caller's and has
   to stay unchanged until the table is closed; SLUICE_E_CAPACITY where the file is longer. Where
   `buffer` is null and `capacity` 0, sluice_table_open itself. */
SLUICE_API int sluice_table_load(sluice_table *table, const char *path, void *buffer,
                                 size_t capacity);

/* The same from bytes that are in memory already, at any address. The caller keeps them, and keeps
   them unchanged, until the table is closed. */
SLUICE_API int sluice_table_from_memory(sluice_table *table, const void *bytes, size_t length);

/* Close a table and give back its pages. Null and a table that is closed already are no error.
   No thread may be looking up in it. errno is left as it was. */
SLUICE_API void sluice_table_close(sluice_table *table);

/* What the table is for. description->size has to be set before; SLUICE_E_ARGUMENT where it is less than 8.
   Afterwards it is how many bytes were written. */
SLUICE_API int sluice_table_describe(const sluice_table *table, sluice_description *description);

/* Where a table of this name lies, for programs that are not told: a path, ended by zero, in path[0] ...
   A name is as those of profiles are: [a-z0-9][a-z0-9._-]*, at most 64. Looked for in this order:

     SLUICE_TABLE                    of the environment: a file, which is the table of every name, or a
                                     folder, in which NAME.slt is; where it is set, nothing else is asked
     $XDG_CONFIG_HOME/sluice/NAME.slt, or where that is not set $HOME/.config/sluice/NAME.slt
     /etc/sluice/NAME.slt

   In a program that has more rights than who started it (setuid) the environment is not asked.
   SLUICE_E_SYSTEM, and ENOENT, where there is none; SLUICE_E_CAPACITY where the path is longer than
   `capacity` - 1. Whether it is a table, sluice_table_open says. */
SLUICE_API int sluice_table_find(const char *name, char *path, size_t capacity);

/* What is wrong with a file. A later version may have more at its end. */
typedef struct sluice_fault {
    uint64_t size;    /* set by the caller: sizeof(sluice_fault) */
    const char *rule; /* the rule of docs/format.md that is broken, as it would be kept; never null */
    uint64_t offset;  /* of the first byte that breaks it, from the file's beginning */
    int32_t code;     /* what opening the file gives */
} sluice_fault;

/* Why a file is refused, for messages and logs: the code that sluice_table_open gives for it, and at
   which byte which rule is broken first. Reads and checks it anew. SLUICE_OK where nothing is wrong. */
SLUICE_API int sluice_explain(sluice_fault *fault, const char *path);

/* The same of bytes in memory. */
SLUICE_API int sluice_explain_memory(sluice_fault *fault, const void *bytes, size_t length);

/* --- lookups ---------------------------------------------------------------------------------- */

/* The best size to repeat for this message: floor(B / s) fragments of s = *size_bytes, and then what
   is left, if anything. s may exceed the message, which is then sent whole. SLUICE_E_RANGE outside
   the table's range, SLUICE_E_NO_REPEAT where no size can be repeated within the limits. */
SLUICE_API int sluice_repeat(const sluice_table *table, uint64_t message_bytes,
                             uint64_t *size_bytes);

/* The best schedule for this message: *fragments sizes into fragment_bytes[0] ..., in sending order.
   They sum to the message exactly and keep the constraints.

   Where `capacity` is less than the number of fragments: SLUICE_E_CAPACITY, *fragments says how many
   there are, and nothing is written to the array. With capacity 0 the array may be null. Otherwise
   only the first *fragments entries of the array are written. */
SLUICE_API int sluice_schedule(const sluice_table *table, uint64_t message_bytes,
                               uint64_t *fragment_bytes, size_t capacity, size_t *fragments);

/* A schedule read one fragment after the other, without an array. Its content is the library's own.
   It may be copied, and dropped at any time; the table has to stay open meanwhile. */
typedef struct sluice_cut {
    uint64_t opaque[16];
} sluice_cut;

/* Begin reading the schedule for this message. */
SLUICE_API int sluice_cut_begin(sluice_cut *cut, const sluice_table *table, uint64_t message_bytes);

/* 1 and the next fragment's size; 0 at the end, *fragment_bytes left as it was; below 0 a code. */
SLUICE_API int sluice_cut_next(sluice_cut *cut, uint64_t *fragment_bytes);

/* What the file's maker proved for this message: the latency of the schedule is at most
   (1 + *cut_gap) times a lower bound over every schedule of the class, and that of the repeated size
   at most (1 + *repeat_gap) times one over every repeated size (0 where there is none). The class
   and the proof are in docs/format.md. Either pointer may be null. */
SLUICE_API int sluice_certificate(const sluice_table *table, uint64_t message_bytes,
                                  double *cut_gap, double *repeat_gap);

/* --- a table that is replaced while others read ----------------------------------------------- */

/* Places for 16 tables, of which one is current, and counters of readers on cache lines of their own;
   9 KiB. Its content is the library's own; it may not be copied or moved while it is open. Tables lie
   in pages of the library's own. Reading never waits and takes no lock. It is for the threads of one
   process: not for memory that processes share. */
typedef struct sluice_live {
    uint64_t opaque[1152];
} sluice_live;

/* What a reader holds between enter and leave. Its content is the library's own. */
typedef struct sluice_ticket {
    uint64_t opaque[2];
} sluice_ticket;

/* Open a live table with this file, read as sluice_table_open does, before any other thread uses it.
   On error it is closed. */
SLUICE_API int sluice_live_open(sluice_live *live, const char *path);

/* The same from bytes in memory, as those that one process read and sent to others. They are copied. */
SLUICE_API int sluice_live_open_memory(sluice_live *live, const void *bytes, size_t length);

/* What sluice_live_swap waits at most, milliseconds. */
#define SLUICE_SWAP_MS 1000

/* Replace the current table by this file, while others read. The file is read and checked before
   anything changes; where it is refused, the code says why and the old table stays. Otherwise new
   readers see the new table at once. Readers of the old one go on with it; its memory is given back by
   the first later swap or sluice_live_reclaim that finds nobody there. A swap waits only where readers
   are in all 15 other tables: SLUICE_E_IN_USE where they still are after SLUICE_SWAP_MS. So a reader
   that never leaves keeps one table and blocks nobody. Of two threads that swap at once, one gets
   SLUICE_E_BUSY. Not to be called in a signal handler. */
SLUICE_API int sluice_live_swap(sluice_live *live, const char *path);

/* The same without waiting at all. */
SLUICE_API int sluice_live_try_swap(sluice_live *live, const char *path);

/* The same, waiting for at most so many milliseconds. */
SLUICE_API int sluice_live_swap_within(sluice_live *live, const char *path, uint32_t timeout_ms);

/* The same from bytes in memory, which are copied. */
SLUICE_API int sluice_live_swap_memory(sluice_live *live, const void *bytes, size_t length,
                                       uint32_t timeout_ms);

/* Give back the memory of replaced tables that nobody reads any more. How many are still being read,
   or a code below 0; never waits. */
SLUICE_API int sluice_live_reclaim(sluice_live *live);

/* To be called in the child after fork, before anything else uses this live table there (by
   pthread_atfork for instance). The parent's other threads do not exist in the child, so no reader is
   counted any more, and a swap that the parent was at is over. A ticket from before the fork counts
   nothing from now on: its table stays valid in the child until the next swap or reclaim there, and
   leaving with it is no error. Without this call nothing hangs either; what was being read at the fork
   stays in memory. Null and a closed live table are no error. */
SLUICE_API void sluice_live_after_fork(sluice_live *live);

/* The current table, which stays valid until sluice_live_leave with this ticket; null where the live
   table is not open or a pointer is null. Put the ticket on the stack: its address also spreads the
   readers over the counters. Tickets may nest and overlap; each is left once, by the thread
   that entered or another. */
SLUICE_API const sluice_table *sluice_live_enter(sluice_live *live, sluice_ticket *ticket);

/* The end of what enter began. */
SLUICE_API void sluice_live_leave(sluice_live *live, const sluice_ticket *ticket);

/* Close a live table and give back its memory. No thread may be inside or enter any more. */
SLUICE_API void sluice_live_close(sluice_live *live);

/* --- texts ------------------------------------------------------------------------------------ */

/* What a code means, in a few words of English without a full stop; never null. */
SLUICE_API const char *sluice_error_text(int code);

/* The library's version, as "0.1.0"; what the macros above say of the header. */
SLUICE_API const char *sluice_version(void);

#ifdef __cplusplus
}
#endif

#endif
