/* SPDX-License-Identifier: Apache-2.0 */
/* The file's little-endian numbers, at any address and on any machine. */
#ifndef SLT_BYTES_H
#define SLT_BYTES_H

/* What the library asks of the system is POSIX of 2008 and MAP_ANONYMOUS. Here, because every source
   begins with this header: where all of them are one, the first to include anything decides. */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE
#endif
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif

#include <assert.h> /* static_assert, in C and in C++ */
#include <stdint.h>
#include <string.h>

/* On a little-endian machine a copy, which compilers make one load and can vectorise; otherwise, or
   with SLUICE_BYTE_BY_BYTE, put together from bytes, which is right everywhere. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && \
    !defined(SLUICE_BYTE_BY_BYTE)

static inline uint32_t slt_u32(const unsigned char *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline uint64_t slt_u64(const unsigned char *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

#else

static inline uint32_t slt_u32(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint64_t slt_u64(const unsigned char *at)
{
    return (uint64_t)slt_u32(at) | (uint64_t)slt_u32(at + 4) << 32;
}

#endif

/* The number with these bits: IEEE 754, in the byte order of the machine's integers. */
static inline double slt_f64(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
