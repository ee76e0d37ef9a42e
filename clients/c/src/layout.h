/* SPDX-License-Identifier: Apache-2.0 */
/* Where everything is in a table file, version 1: docs/format.md, in numbers. */
#ifndef SLT_LAYOUT_H
#define SLT_LAYOUT_H

enum {
    SLT_VERSION = 1,
    SLT_HEADER_BYTES = 256,
    SLT_CUT_BYTES = 40,
    SLT_REPEAT_BYTES = 32,
    SLT_PIPELINE_BYTES = 16,
    SLT_STAGE_BYTES = 8,
    SLT_RANGE_BYTES = 24,
    SLT_MAX_STAGES = 64,
    SLT_MAX_RANGES = 64,
    SLT_MAX_NAME_BYTES = 64,       /* of a profile */
    SLT_MAX_NAME_CHARACTERS = 100, /* of a stage */
    SLT_MAGIC_BYTES = 8,
    SLT_CHECKED_FROM = 32 /* the checksum covers all from here on */
};

/* Offsets in the header. */
enum {
    SLT_AT_VERSION = 8,
    SLT_AT_HEADER_BYTES = 12,
    SLT_AT_FILE_BYTES = 16,
    SLT_AT_CHECKSUM = 24,
    SLT_AT_RESERVED = 28,
    SLT_AT_MIN_MESSAGE = 32,
    SLT_AT_MAX_MESSAGE = 40,
    SLT_AT_TOLERANCE = 48,
    SLT_AT_MIN_FRAGMENT = 56,
    SLT_AT_MAX_FRAGMENT = 64,
    SLT_AT_ALIGNMENT = 72,
    SLT_AT_MAX_FRAGMENTS = 80,
    SLT_AT_CAP = 88,
    SLT_AT_CUT_COUNT = 96,
    SLT_AT_REPEAT_COUNT = 104,
    SLT_AT_POSITION_COUNT = 112,
    SLT_AT_POSITION_WIDTH = 120,
    SLT_AT_CUTS = 128,
    SLT_AT_REPEATS = 136,
    SLT_AT_POSITIONS = 144,
    SLT_AT_PIPELINE = 152,
    SLT_AT_PIPELINE_BYTES = 160,
    SLT_AT_REVISION = 168,
    SLT_AT_NAME_BYTES = 172,
    SLT_AT_NAME = 176,
    SLT_AT_RESERVED_END = 240
};

/* Offsets in a record; both kinds begin with the message size. */
enum {
    SLT_CUT_FIRST = 8,
    SLT_CUT_FRAGMENTS = 16,
    SLT_CUT_RESERVED = 20,
    SLT_CUT_LATENCY = 24,
    SLT_CUT_GAP = 32,
    SLT_REPEAT_SIZE = 8,
    SLT_REPEAT_LATENCY = 16,
    SLT_REPEAT_GAP = 24
};

#define SLT_MAX_BYTES ((uint64_t)1 << 48)      /* of a message, a limit, the end of a fit range */
#define SLT_MAX_STRETCH (((uint64_t)1 << 31) - 1) /* between records, and of a shift in units */
#define SLT_MAX_REVISION (((uint32_t)1 << 31) - 1)
#define SLT_MAX_OVERHEAD_US 1e12
#define SLT_MAX_NS_PER_BYTE 1e9

#endif
