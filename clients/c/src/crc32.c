/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32 of zlib, gzip and PNG (ISO 3309), sixteen bytes at a time.

   Source  M. E. Kounavis and F. L. Berry, A Systematic Approach to Building High Performance
           Software-based CRC Generators, ISCC 2005 ("slicing").
   Tables  table[k][n] is what byte n becomes k + 1 bytes later. That is linear over the bits of n,
           so each table is written as the eight numbers for one bit, and the compiler puts them
           together: number i of all 128 is the polynomial 0xEDB88320 shifted on by i bits. */
#include "table.h"

#define SLT_BIT(n, bit, number) (((n) >> (bit)) & 1u ? (number) : 0u)
#define SLT_ENTRY(n, a, b, c, d, e, f, g, h)                                                       \
    (SLT_BIT(n, 7, a) ^ SLT_BIT(n, 6, b) ^ SLT_BIT(n, 5, c) ^ SLT_BIT(n, 4, d) ^ SLT_BIT(n, 3, e) ^ SLT_BIT(n, 2, f) ^ \
     SLT_BIT(n, 1, g) ^ SLT_BIT(n, 0, h))
#define SLT_FOUR(n, ...) \
    SLT_ENTRY(n, __VA_ARGS__), SLT_ENTRY((n) + 1, __VA_ARGS__), SLT_ENTRY((n) + 2, __VA_ARGS__), \
        SLT_ENTRY((n) + 3, __VA_ARGS__)
#define SLT_SIXTEEN(n, ...) \
    SLT_FOUR(n, __VA_ARGS__), SLT_FOUR((n) + 4, __VA_ARGS__), SLT_FOUR((n) + 8, __VA_ARGS__), \
        SLT_FOUR((n) + 12, __VA_ARGS__)
#define SLT_SIXTY_FOUR(n, ...) \
    SLT_SIXTEEN(n, __VA_ARGS__), SLT_SIXTEEN((n) + 16, __VA_ARGS__), SLT_SIXTEEN((n) + 32, __VA_ARGS__), \
        SLT_SIXTEEN((n) + 48, __VA_ARGS__)
#define SLT_ROW(...)                                                                      \
    {                                                                                 \
        SLT_SIXTY_FOUR(0u, __VA_ARGS__), SLT_SIXTY_FOUR(64u, __VA_ARGS__),                    \
            SLT_SIXTY_FOUR(128u, __VA_ARGS__), SLT_SIXTY_FOUR(192u, __VA_ARGS__)              \
    }

static const uint32_t slt_crc_rows[16][256] = {
    SLT_ROW(0xedb88320u, 0x76dc4190u, 0x3b6e20c8u, 0x1db71064u,
        0x0edb8832u, 0x076dc419u, 0xee0e612cu, 0x77073096u),
    SLT_ROW(0x3b83984bu, 0xf0794f05u, 0x958424a2u, 0x4ac21251u,
        0xc8d98a08u, 0x646cc504u, 0x32366282u, 0x191b3141u),
    SLT_ROW(0xe1351b80u, 0x709a8dc0u, 0x384d46e0u, 0x1c26a370u,
        0x0e1351b8u, 0x0709a8dcu, 0x0384d46eu, 0x01c26a37u),
    SLT_ROW(0xed59b63bu, 0x9b14583du, 0xa032af3eu, 0x5019579fu,
        0xc5b428efu, 0x8f629757u, 0xaa09c88bu, 0xb8bc6765u),
    SLT_ROW(0xb1e6b092u, 0x58f35849u, 0xc1c12f04u, 0x60e09782u,
        0x30704bc1u, 0xf580a6c0u, 0x7ac05360u, 0x3d6029b0u),
    SLT_ROW(0x1eb014d8u, 0x0f580a6cu, 0x07ac0536u, 0x03d6029bu,
        0xec53826du, 0x9b914216u, 0x4dc8a10bu, 0xcb5cd3a5u),
    SLT_ROW(0x8816eaf2u, 0x440b7579u, 0xcfbd399cu, 0x67de9cceu,
        0x33ef4e67u, 0xf44f2413u, 0x979f1129u, 0xa6770bb4u),
    SLT_ROW(0x533b85dau, 0x299dc2edu, 0xf9766256u, 0x7cbb312bu,
        0xd3e51bb5u, 0x844a0efau, 0x4225077du, 0xccaa009eu),
    SLT_ROW(0x6655004fu, 0xde920307u, 0x82f182a3u, 0xacc04271u,
        0xbbd8a218u, 0x5dec510cu, 0x2ef62886u, 0x177b1443u),
    SLT_ROW(0xe6050901u, 0x9eba07a0u, 0x4f5d03d0u, 0x27ae81e8u,
        0x13d740f4u, 0x09eba07au, 0x04f5d03du, 0xefc26b3eu),
    SLT_ROW(0x77e1359fu, 0xd64819efu, 0x869c8fd7u, 0xaef6c4cbu,
        0xbac3e145u, 0xb0d97382u, 0x586cb9c1u, 0xc18edfc0u),
    SLT_ROW(0x60c76fe0u, 0x3063b7f0u, 0x1831dbf8u, 0x0c18edfcu,
        0x060c76feu, 0x03063b7fu, 0xec3b9e9fu, 0x9ba54c6fu),
    SLT_ROW(0xa06a2517u, 0xbd8d91abu, 0xb37e4bf5u, 0xb407a6dau,
        0x5a03d36du, 0xc0b96a96u, 0x605cb54bu, 0xdd96d985u),
    SLT_ROW(0x8373efe2u, 0x41b9f7f1u, 0xcd6478d8u, 0x66b23c6cu,
        0x33591e36u, 0x19ac8f1bu, 0xe16ec4adu, 0x9d0fe176u),
    SLT_ROW(0x4e87f0bbu, 0xcafb7b7du, 0x88c53e9eu, 0x44629f4fu,
        0xcf89cc87u, 0x8a7c6563u, 0xa886b191u, 0xb9fbdbe8u),
    SLT_ROW(0x5cfdedf4u, 0x2e7ef6fau, 0x173f7b7du, 0xe6273e9eu,
        0x73139f4fu, 0xd4314c87u, 0x87a02563u, 0xae689191u),
};

/* Four bytes of the sixteen; `rows` is the table of the last of them. */
static uint32_t slt_crc_slice(uint32_t word, const uint32_t (*rows)[256])
{
    return rows[3][word & 255] ^ rows[2][word >> 8 & 255] ^ rows[1][word >> 16 & 255] ^
           rows[0][word >> 24];
}

uint32_t slt_crc32(const unsigned char *bytes, size_t length)
{
    uint32_t crc = 0xffffffffu;
    for (; length >= 16; bytes += 16, length -= 16)
        crc = slt_crc_slice(slt_u32(bytes) ^ crc, slt_crc_rows + 12) ^ slt_crc_slice(slt_u32(bytes + 4), slt_crc_rows + 8) ^
              slt_crc_slice(slt_u32(bytes + 8), slt_crc_rows + 4) ^ slt_crc_slice(slt_u32(bytes + 12), slt_crc_rows);
    for (; length > 0; bytes++, length--)
        crc = slt_crc_rows[0][(crc ^ *bytes) & 255] ^ crc >> 8;
    return ~crc;
}
