/* SPDX-License-Identifier: Apache-2.0 */
/* What an open table is, and the parts of opening one. Names that begin with slt_ are the library's
   own: hidden in the shared library, and static where all of it is one file. */
#ifndef SLT_TABLE_H
#define SLT_TABLE_H

#include "bytes.h"
#include "layout.h"
#include "sluice.h"

#ifndef SLT_OWN
#define SLT_OWN
#endif

/* Whether each answer is checked before it is given: that it sums to its message and keeps the limits.
   For debugging: compile with SLUICE_CHECKED. */
#ifdef SLUICE_CHECKED
enum { SLT_IS_CHECKED = 1 };
#else
enum { SLT_IS_CHECKED = 0 };
#endif

/* Buckets of message sizes from 1 to 2^48, by their exponent and the three bits behind the leading one:
   the same for every table, so that a lookup need not read first how they are chosen. */
enum { SLT_KEY_BITS = 3, SLT_KEYS = (48 << SLT_KEY_BITS) + 1 };

/* The greatest number of a record in an index; tests take a small one. */
#ifndef SLT_MAX_BEFORE
#define SLT_MAX_BEFORE UINT16_MAX
#endif

/* For each bucket of message sizes the last record before it, without its last `scale` bits, of which
   only tables of more than SLT_MAX_BEFORE records have any. */
typedef struct slt_index {
    uint16_t before[SLT_KEYS + 1];
} slt_index;

/* The header's fields that are needed to check the rest, and the answers. */
typedef struct slt_rules {
    uint64_t min_message;
    uint64_t max_message;
    uint64_t min_fragment;
    uint64_t max_fragment; /* 2^64 - 1 where the file says none */
    uint64_t unit;
    uint64_t max_fragments; /* the smaller of the file's max_fragments and fragment_cap */
} slt_rules;

/* What is wrong with a file: the first rule that it breaks, and at which of its bytes. */
typedef struct slt_fault {
    uint64_t offset;
    const char *rule; /* null where nothing is */
} slt_fault;

/* The content of a sluice_table. may_alias: the caller declares it as sluice_table. What a lookup reads
   comes first and in few cache lines: where nothing of a table is in a cache, it waits for them and for
   the index at once, and then for the records. */
typedef struct __attribute__((may_alias)) slt_view {
    uint64_t seal; /* SLT_OPEN; anything else is a closed table */
    uint64_t min_message;
    uint64_t range; /* the largest message - min_message */
    uint64_t unit;
    const unsigned char *repeats;
    uint64_t repeat_count;
    uint32_t repeat_scale; /* of its index */
    uint32_t cut_scale;
    const unsigned char *cuts;
    uint64_t cut_count;
    const unsigned char *positions;
    uint64_t position_count;
    uint64_t position_width;
    slt_index of_repeats;
    slt_index of_cuts;
    const unsigned char *bytes;
    void *mapping; /* pages or mapping, what munmap gets; null where the bytes are the caller's */
    size_t length;
    uint64_t max_schedule_fragments;
    slt_rules rules; /* read where answers are checked, and by sluice_table_describe */
} slt_view;

static_assert(sizeof(slt_view) <= sizeof(sluice_table), "a view fits a sluice_table");

#define SLT_OPEN UINT64_C(0x53c1a7e5ab1e0001)

/* The view of a table; null where it is null or closed. */
static inline const slt_view *slt_open_view(const sluice_table *table)
{
    const slt_view *view = (const slt_view *)(const void *)table;
    return view && view->seal == SLT_OPEN ? view : NULL;
}

/* The bucket of a message size, 1 or more. It never falls where the size grows. */
static inline uint64_t slt_key(uint64_t message)
{
    unsigned zeros = (unsigned)__builtin_clzll(message);
    uint64_t digits = (message << zeros) >> (63 - SLT_KEY_BITS);
    return ((uint64_t)(63 - zeros) << SLT_KEY_BITS) + digits - (1u << SLT_KEY_BITS);
}

/* Note the first thing that is wrong; `code` itself, to be returned. */
static inline int slt_refuse(slt_fault *fault, int code, uint64_t offset, const char *rule)
{
    fault->offset = offset;
    fault->rule = rule;
    return code;
}

/* The same where a rule of docs/format.md is broken. */
static inline int slt_broken(slt_fault *fault, uint64_t offset, const char *rule)
{
    return slt_refuse(fault, SLUICE_E_INVALID, offset, rule);
}

/* Check `length` bytes and fill the view; SLUICE_OK, or a code and what is wrong with them. */
SLT_OWN int slt_check(slt_view *view, const unsigned char *bytes, size_t length, slt_fault *fault);

/* The parts of it, in docs/format.md's order. Each returns a code. */
SLT_OWN int slt_check_begin(const unsigned char *bytes, uint64_t length,
                            slt_fault *fault); /* without the checksum */
SLT_OWN int slt_check_prefix(const unsigned char *bytes, size_t length, slt_fault *fault);
SLT_OWN int slt_check_sections(const unsigned char *bytes, const unsigned char *header,
                               size_t length, slt_fault *fault);
SLT_OWN int slt_check_header(const unsigned char *header, slt_rules *rules, slt_fault *fault);
SLT_OWN int slt_check_cuts(slt_view *view, const slt_rules *rules, slt_fault *fault);
SLT_OWN int slt_check_repeats(const slt_view *view, const slt_rules *rules, slt_fault *fault);
SLT_OWN int slt_check_pipeline(const unsigned char *bytes, uint64_t offset, uint64_t length,
                               slt_fault *fault);

/* Whether these are the bits of a finite number without a sign. */
static inline int slt_is_figure(uint64_t bits)
{
    return bits < UINT64_C(0x7ff0000000000000);
}

/* Check that message sizes, one every `stride` bytes, go over the whole range as they should. */
SLT_OWN int slt_check_messages(const slt_view *view, const unsigned char *records, uint64_t count,
                               uint64_t stride, const slt_rules *rules, slt_fault *fault);

/* The index of records whose message sizes ascend; its scale. */
SLT_OWN uint32_t slt_fill_index(slt_index *index, const unsigned char *records, uint64_t count,
                                uint64_t stride);

/* CRC-32 as in zlib, gzip and PNG. */
SLT_OWN uint32_t slt_crc32(const unsigned char *bytes, size_t length);

/* Pages of zeros of the process's own; null, and errno, where there are none. Null may be given back. */
SLT_OWN void *slt_pages(size_t length);
SLT_OWN void slt_free_pages(void *pages, size_t length);

/* Open a table from a copy of these bytes, in pages that slt_close gives back. */
SLT_OWN int slt_copy(slt_view *view, const void *bytes, size_t length);

/* Give back the pages or the mapping and close. */
SLT_OWN void slt_close(slt_view *view);

#endif
