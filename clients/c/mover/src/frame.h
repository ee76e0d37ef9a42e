/* SPDX-License-Identifier: Apache-2.0 */
/* What travels: frames of a header of 24 bytes, little-endian, and the bytes of a fragment.

     0  version, 1           8  number: of the message; of CREDIT the bytes
     1  kind                16  bytes of the fragment that follow
     2  flags, 2 bytes      20  zero
     4  tag; of CREDIT the records

   FIRST, which begins a message, has 8 more bytes: those of the message. Messages of a connection are
   numbered from 0 as they begin. */
#ifndef SLUICE_MOVER_FRAME_H
#define SLUICE_MOVER_FRAME_H

#include <stdint.h>

enum { FRAME_VERSION = 1, HEADER_BYTES = 24, FIRST_BYTES = 32 };

/* What a fragment that nobody waits for costs beside its bytes, in credit: more than the record of it takes, so
   that fragments of one byte do not take more memory than was granted. */
enum { FRAGMENT_COST = 64 };

enum frame_kind {
    FRAME_FIRST = 1, /* a message begins; its first fragment, or none where there is no credit for it */
    FRAME_DATA,      /* the next fragment */
    FRAME_CREDIT,    /* room for more early bytes and messages */
    FRAME_GRANT,     /* a receive waits for this message: the rest of it needs no credit */
    FRAME_NEED,      /* messages wait for credit: send what there is of it */
    FRAME_ABORT,     /* the rest of this message does not come */
    FRAME_BYE        /* nothing more comes */
};

enum { FLAG_EARLY = 1 }; /* this fragment was paid for with credit */

typedef struct frame_header {
    uint64_t number;
    uint64_t message_bytes; /* of FIRST */
    uint32_t tag;
    uint32_t bytes;
    uint8_t kind;
    uint8_t flags;
} frame_header;

static inline void store(unsigned char *at, unsigned bytes, uint64_t value)
{
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

static inline uint64_t fetch(const unsigned char *at, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

/* Write a header; how long it is. */
static inline uint32_t encode(unsigned char *at, const frame_header *header)
{
    at[0] = FRAME_VERSION;
    at[1] = header->kind;
    store(at + 2, 2, header->flags);
    store(at + 4, 4, header->tag);
    store(at + 8, 8, header->number);
    store(at + 16, 4, header->bytes);
    store(at + 20, 4, 0);
    if (header->kind != FRAME_FIRST)
        return HEADER_BYTES;
    store(at + 24, 8, header->message_bytes);
    return FIRST_BYTES;
}

/* Read the first `room` bytes as a header: how long it is, 0 where some of it is still to come, below 0 where
   no mover sends this. Whether it fits what came before is for the caller. */
static inline int decode(const unsigned char *at, uint32_t room, frame_header *header)
{
    if (room < HEADER_BYTES)
        return 0;
    header->kind = at[1];
    header->flags = at[2];
    header->tag = (uint32_t)fetch(at + 4, 4);
    header->number = fetch(at + 8, 8);
    header->bytes = (uint32_t)fetch(at + 16, 4);
    header->message_bytes = 0;
    if (at[0] != FRAME_VERSION || header->kind < FRAME_FIRST || header->kind > FRAME_BYE)
        return -1;
    if ((header->flags & ~FLAG_EARLY) != 0 || at[3] != 0 || fetch(at + 20, 4) != 0)
        return -1;
    if (header->kind > FRAME_DATA)
        return header->bytes == 0 && header->flags == 0 ? HEADER_BYTES : -1;
    if (header->kind == FRAME_DATA)
        return header->bytes > 0 ? HEADER_BYTES : -1;
    if (room < FIRST_BYTES)
        return 0;
    header->message_bytes = fetch(at + 24, 8);
    if (header->bytes > header->message_bytes)
        return -1;
    return FIRST_BYTES;
}

#endif
