/* SPDX-License-Identifier: Apache-2.0 */
/* What the test programs share: a check that ends the program, and bytes of files. */
#ifndef SLUICE_TESTS_SUPPORT_H
#define SLUICE_TESTS_SUPPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sluice.h"

/* Ends the program, with the place, where a condition does not hold. */
#define CHECK(condition)                                                                 \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);    \
            abort();                                                                     \
        }                                                                                \
    } while (0)

/* The whole description of a table. */
static inline int describe_table(const sluice_table *table, sluice_description *about)
{
    if (about)
        about->size = sizeof *about;
    return sluice_table_describe(table, about);
}

/* A path made of two parts, in a buffer of the caller's. */
static inline const char *joined(char *buffer, size_t room, const char *folder, const char *name)
{
    int length = snprintf(buffer, room, "%s/%s", folder, name);
    CHECK(length > 0 && (size_t)length < room);
    return buffer;
}

/* All bytes of a file; the caller frees them. */
static inline unsigned char *bytes_of(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    unsigned char *bytes;
    long end;
    CHECK(file && fseek(file, 0, SEEK_END) == 0);
    end = ftell(file);
    CHECK(end >= 0 && fseek(file, 0, SEEK_SET) == 0);
    *length = (size_t)end;
    bytes = malloc(*length + 1);
    CHECK(bytes && fread(bytes, 1, *length, file) == *length);
    fclose(file);
    return bytes;
}

static inline void write_bytes(const char *path, const void *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(bytes, 1, length, file) == length);
    CHECK(fclose(file) == 0);
}

#endif
