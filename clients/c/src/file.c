/* SPDX-License-Identifier: Apache-2.0 */
/* Files as tables: read into memory, or mapped where the caller asks for it. Pages come from here. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "table.h"

static slt_view *view_of(sluice_table *table)
{
    return (slt_view *)(void *)table;
}

static int system_error(int number)
{
    errno = number;
    return SLUICE_E_SYSTEM;
}

/* Whether an open file is one of a length that fits in memory and begins as a table does: a large file
   that does not is neither mapped nor read. */
static int check_begin(int descriptor, struct stat *status)
{
    unsigned char header[SLT_HEADER_BYTES] = {0};
    if (fstat(descriptor, status) != 0)
        return SLUICE_E_SYSTEM;
    if (!S_ISREG(status->st_mode))
        return SLUICE_E_FORMAT;
    if (pread(descriptor, header, sizeof header, 0) < 0)
        return SLUICE_E_SYSTEM;
    if ((uint64_t)status->st_size > SIZE_MAX)
        return system_error(EFBIG);
    return slt_check_begin(header, (uint64_t)status->st_size);
}

/* Close the descriptor, which a mapping does not need any more, and keep errno. */
static int closed(int descriptor, int code)
{
    int number = errno;
    close(descriptor);
    errno = number;
    return code;
}

/* Open a regular file for reading: its descriptor and what it is. Its kind is asked before it is
   opened, because opening a device may do something, and again afterwards, because it may have been
   exchanged; without O_NONBLOCK a pipe that came in between would be waited for. */
static int open_file(const char *path, int *descriptor, struct stat *status)
{
    int code;
    if (stat(path, status) != 0)
        return SLUICE_E_SYSTEM;
    if (!S_ISREG(status->st_mode))
        return SLUICE_E_FORMAT;
    *descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*descriptor < 0)
        return SLUICE_E_SYSTEM;
    code = check_begin(*descriptor, status);
    return code == SLUICE_OK ? code : closed(*descriptor, code);
}

/* Check what was mapped, and give it back where it is no table. */
static int check_mapping(slt_view *view, void *mapping, size_t length)
{
    int code = slt_check(view, mapping, length);
    if (code == SLUICE_OK)
        view->mapping = mapping;
    else
        munmap(mapping, length);
    return code;
}

static int map_file(slt_view *view, int descriptor, size_t length)
{
    void *mapping = mmap(NULL, length, PROT_READ, MAP_SHARED, descriptor, 0);
    return mapping == MAP_FAILED ? SLUICE_E_SYSTEM : check_mapping(view, mapping, length);
}

/* Read exactly so many bytes; a file that has fewer now has changed since its length was asked. */
static int read_all(int descriptor, unsigned char *buffer, size_t length)
{
    size_t done = 0;
    while (done < length) {
        size_t wanted = length - done < (1u << 30) ? length - done : 1u << 30;
        ssize_t got = read(descriptor, buffer + done, wanted);
        if (got == 0)
            return SLUICE_E_CHANGED;
        if (got < 0 && errno != EINTR)
            return SLUICE_E_SYSTEM;
        done += got > 0 ? (size_t)got : 0;
    }
    return SLUICE_OK;
}

/* Read a whole file, and ask again what it is. Its checksum, which slt_check computes over the bytes
   that were read, is what finds a mixture of two files; the times name the cause where they differ. */
static int read_file(int descriptor, const struct stat *before, unsigned char *buffer)
{
    struct stat after;
    int code = read_all(descriptor, buffer, (size_t)before->st_size);
    if (code != SLUICE_OK)
        return code;
    if (fstat(descriptor, &after) != 0)
        return SLUICE_E_SYSTEM;
    if (after.st_size != before->st_size || after.st_mtim.tv_sec != before->st_mtim.tv_sec ||
        after.st_mtim.tv_nsec != before->st_mtim.tv_nsec)
        return SLUICE_E_CHANGED;
    return SLUICE_OK;
}

void *slt_pages(size_t length)
{
    void *pages =
        mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

void slt_free_pages(void *pages, size_t length)
{
    int number = errno;
    if (pages)
        munmap(pages, length);
    errno = number;
}

/* Check pages that have been filled, which nothing writes to from now on. */
static int check_pages(slt_view *view, void *pages, size_t length)
{
    if (mprotect(pages, length, PROT_READ) == 0)
        return check_mapping(view, pages, length);
    slt_free_pages(pages, length);
    return SLUICE_E_SYSTEM;
}

static int read_to_pages(slt_view *view, int descriptor, const struct stat *status)
{
    size_t length = (size_t)status->st_size;
    int code;
    void *pages;
    if (length > SLUICE_MAX_READ_BYTES)
        return SLUICE_E_CAPACITY;
    pages = slt_pages(length);
    if (!pages)
        return SLUICE_E_SYSTEM;
    code = read_file(descriptor, status, pages);
    if (code == SLUICE_OK)
        return check_pages(view, pages, length);
    slt_free_pages(pages, length);
    return code;
}

int slt_copy(slt_view *view, const void *bytes, size_t length)
{
    void *pages;
    memset(view, 0, sizeof *view);
    if (length == 0) /* which no pages hold */
        return SLUICE_E_FORMAT;
    pages = slt_pages(length);
    if (!pages)
        return SLUICE_E_SYSTEM;
    memcpy(pages, bytes, length);
    return check_pages(view, pages, length);
}

int sluice_table_open_with(sluice_table *table, const char *path, uint32_t flags)
{
    struct stat status;
    int descriptor, code;
    if (!table)
        return SLUICE_E_ARGUMENT;
    memset(table, 0, sizeof *table);
    if (!path || (flags & ~(uint32_t)SLUICE_OPEN_MAPPED))
        return SLUICE_E_ARGUMENT;
    code = open_file(path, &descriptor, &status);
    if (code != SLUICE_OK)
        return code;
    if (flags & SLUICE_OPEN_MAPPED)
        code = map_file(view_of(table), descriptor, (size_t)status.st_size);
    else
        code = read_to_pages(view_of(table), descriptor, &status);
    return closed(descriptor, code);
}

int sluice_table_open(sluice_table *table, const char *path)
{
    return sluice_table_open_with(table, path, 0);
}

static int read_to_buffer(slt_view *view, int descriptor, const struct stat *status,
                          unsigned char *buffer)
{
    int code = read_file(descriptor, status, buffer);
    return code == SLUICE_OK ? slt_check(view, buffer, (size_t)status->st_size) : code;
}

int sluice_table_load(sluice_table *table, const char *path, void *buffer, size_t capacity)
{
    struct stat status;
    int descriptor, code;
    if (!table)
        return SLUICE_E_ARGUMENT;
    if (!buffer && !capacity)
        return sluice_table_open(table, path);
    memset(table, 0, sizeof *table);
    if (!path || !buffer)
        return SLUICE_E_ARGUMENT;
    code = open_file(path, &descriptor, &status);
    if (code != SLUICE_OK)
        return code;
    if ((uint64_t)status.st_size > capacity)
        code = SLUICE_E_CAPACITY;
    else
        code = read_to_buffer(view_of(table), descriptor, &status, buffer);
    return closed(descriptor, code);
}

/* The view is cleared first: a fork in between then leaves pages behind, and none that are freed twice. */
void slt_close(slt_view *view)
{
    void *mapping = view->seal == SLT_OPEN ? view->mapping : NULL;
    size_t length = view->length;
    memset(view, 0, sizeof *view);
    slt_free_pages(mapping, length);
}

void sluice_table_close(sluice_table *table)
{
    if (table)
        slt_close(view_of(table));
}
