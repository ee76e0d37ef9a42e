/* SPDX-License-Identifier: Apache-2.0 */
/* What an accepted file promises, and how to make a changed file one that is looked into. */
#ifndef SLUICE_TESTS_PROMISES_H
#define SLUICE_TESTS_PROMISES_H

#include "support.h"

/* --- little-endian fields --------------------------------------------------------------------- */

static inline uint64_t get(const unsigned char *at, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

static inline void put(unsigned char *at, unsigned bytes, uint64_t value)
{
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

/* CRC-32 bit by bit: not the library's way, so that both are tested. */
static inline uint32_t plain_crc(const unsigned char *bytes, size_t length)
{
    static uint32_t row[256];
    uint32_t crc = 0xffffffffu;
    if (row[1] == 0)
        for (uint32_t n = 0; n < 256; n++) {
            uint32_t c = n;
            for (int bit = 0; bit < 8; bit++)
                c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
            row[n] = c;
        }
    for (size_t i = 0; i < length; i++)
        crc = row[(crc ^ bytes[i]) & 255] ^ crc >> 8;
    return ~crc;
}

/* Put length and checksum right, as a hostile writer would. */
static inline void seal(unsigned char *bytes, size_t length)
{
    if (length < 32)
        return;
    put(bytes + 16, 8, length);
    put(bytes + 24, 4, plain_crc(bytes + 32, length - 32));
}

/* --- what an accepted file promises ----------------------------------------------------------- */

static inline uint64_t smaller(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

static inline uint64_t or_none(uint64_t limit)
{
    return limit ? limit : UINT64_MAX;
}

static inline uint64_t max_of(const sluice_description *about)
{
    return smaller(or_none(about->max_fragments), about->fragment_cap);
}

/* Sizes that sum to their message and keep the limits. */
static inline void check_sizes(const sluice_description *about, uint64_t message,
                               const uint64_t *sizes, size_t count)
{
    uint64_t sum = 0;
    CHECK(count >= 1 && count <= max_of(about));
    for (size_t i = 0; i < count; i++) {
        CHECK(sizes[i] >= 1 && sizes[i] <= or_none(about->max_fragment_bytes));
        CHECK(count == 1 || sizes[i] >= about->min_fragment_bytes);
        CHECK(i + 1 == count || sizes[i] % about->alignment_bytes == 0);
        CHECK(sizes[i] <= message - sum);
        sum += sizes[i];
    }
    CHECK(sum == message);
}

static inline void check_schedule(const sluice_table *table, const sluice_description *about,
                                  uint64_t message, uint64_t *sizes)
{
    uint64_t size = 0;
    size_t count = 0;
    sluice_cut cut;
    CHECK(sluice_schedule(table, message, sizes, (size_t)about->max_schedule_fragments, &count) ==
          SLUICE_OK);
    CHECK(count <= about->max_schedule_fragments);
    check_sizes(about, message, sizes, count);
    CHECK(sluice_cut_begin(&cut, table, message) == SLUICE_OK);
    for (size_t i = 0; i < count; i++)
        CHECK(sluice_cut_next(&cut, &size) == 1 && size == sizes[i]);
    CHECK(sluice_cut_next(&cut, &size) == 0);
}

/* A size that may be repeated for its message. */
static inline void check_size(const sluice_description *about, uint64_t message, uint64_t size)
{
    uint64_t count, rest;
    CHECK(size >= 1);
    count = (message - 1) / size + 1;
    rest = message - (count - 1) * size;
    CHECK(count <= max_of(about) && smaller(size, message) <= or_none(about->max_fragment_bytes));
    CHECK(count == 1 || (size % about->alignment_bytes == 0 && size >= about->min_fragment_bytes));
    CHECK(count == 1 || rest >= about->min_fragment_bytes);
}

static inline void check_repeat(const sluice_table *table, const sluice_description *about,
                                uint64_t message)
{
    uint64_t size = 0;
    int code = sluice_repeat(table, message, &size);
    CHECK(code == SLUICE_OK || code == SLUICE_E_NO_REPEAT);
    if (code == SLUICE_OK)
        check_size(about, message, size);
}

/* Everything that the table says of these messages of its range. */
static inline void check_promises(const sluice_table *table, const uint64_t *messages, size_t count)
{
    sluice_description about;
    double cut_gap = -1.0, repeat_gap = -1.0;
    uint64_t *sizes;
    CHECK(describe_table(table, &about) == SLUICE_OK);
    CHECK(about.max_schedule_fragments <= about.file_bytes && strlen(about.profile) <= 64);
    sizes = malloc((size_t)about.max_schedule_fragments * sizeof *sizes);
    CHECK(sizes);
    for (size_t i = 0; i < count; i++) {
        check_schedule(table, &about, messages[i], sizes);
        check_repeat(table, &about, messages[i]);
        CHECK(sluice_certificate(table, messages[i], &cut_gap, &repeat_gap) == SLUICE_OK);
        CHECK(cut_gap >= 0.0 && repeat_gap >= 0.0);
    }
    free(sizes);
}

#endif
