/* SPDX-License-Identifier: Apache-2.0 */
/* Files as tables: read into memory, or mapped where the caller asks for it. Pages come from here. */
#include "table.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MAP_ANONYMOUS
#error "define _DEFAULT_SOURCE before the first header of this file, or include sluice.c first"
#endif

static slt_view *slt_view_of(sluice_table *table)
{
    return (slt_view *)(void *)table;
}

static int slt_system_error(int number)
{
    errno = number;
    return SLUICE_E_SYSTEM;
}

static const char slt_no_regular_file[] = "a table is a regular file";

/* Whether an open file is one of a length that fits in memory and begins as a table does: a large file
   that does not is neither mapped nor read. */
static int slt_check_file(int descriptor, struct stat *status, slt_fault *fault)
{
    unsigned char header[SLT_HEADER_BYTES] = {0};
    if (fstat(descriptor, status) != 0)
        return SLUICE_E_SYSTEM;
    if (!S_ISREG(status->st_mode))
        return slt_refuse(fault, SLUICE_E_FORMAT, 0, slt_no_regular_file);
    if (pread(descriptor, header, sizeof header, 0) < 0)
        return SLUICE_E_SYSTEM;
    if ((uint64_t)status->st_size > SIZE_MAX)
        return slt_system_error(EFBIG);
    return slt_check_begin(header, (uint64_t)status->st_size, fault);
}

/* Close the descriptor, which a mapping does not need any more, and keep errno. */
static int slt_closed(int descriptor, int code)
{
    int number = errno;
    close(descriptor);
    errno = number;
    return code;
}

/* Open a regular file for reading: its descriptor and what it is. Its kind is asked before it is
   opened, because opening a device may do something, and again afterwards, because it may have been
   exchanged; without O_NONBLOCK a pipe that came in between would be waited for. */
static int slt_open_file(const char *path, int *descriptor, struct stat *status, slt_fault *fault)
{
    int code;
    if (stat(path, status) != 0)
        return SLUICE_E_SYSTEM;
    if (!S_ISREG(status->st_mode))
        return slt_refuse(fault, SLUICE_E_FORMAT, 0, slt_no_regular_file);
    *descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*descriptor < 0)
        return SLUICE_E_SYSTEM;
    code = slt_check_file(*descriptor, status, fault);
    return code == SLUICE_OK ? code : slt_closed(*descriptor, code);
}

/* Check what was mapped, and give it back where it is no table. */
static int slt_check_mapping(slt_view *view, void *mapping, size_t length, slt_fault *fault)
{
    int code = slt_check(view, (const unsigned char *)mapping, length, fault);
    if (code == SLUICE_OK)
        view->mapping = mapping;
    else
        munmap(mapping, length);
    return code;
}

static int slt_map_file(slt_view *view, int descriptor, size_t length, slt_fault *fault)
{
    void *mapping = mmap(NULL, length, PROT_READ, MAP_SHARED, descriptor, 0);
    if (mapping == MAP_FAILED)
        return SLUICE_E_SYSTEM;
    return slt_check_mapping(view, mapping, length, fault);
}

/* Read exactly so many bytes; a file that has fewer now has changed since its length was asked. */
static int slt_read_all(int descriptor, unsigned char *buffer, size_t length)
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
static int slt_read_file(int descriptor, const struct stat *before, unsigned char *buffer)
{
    struct stat after;
    int code = slt_read_all(descriptor, buffer, (size_t)before->st_size);
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
static int slt_check_pages(slt_view *view, void *pages, size_t length, slt_fault *fault)
{
    if (mprotect(pages, length, PROT_READ) == 0)
        return slt_check_mapping(view, pages, length, fault);
    slt_free_pages(pages, length);
    return SLUICE_E_SYSTEM;
}

static int slt_read_to_pages(slt_view *view, int descriptor, const struct stat *status,
                             slt_fault *fault)
{
    size_t length = (size_t)status->st_size;
    int code;
    void *pages;
    if (length > SLUICE_MAX_READ_BYTES)
        return SLUICE_E_CAPACITY;
    pages = slt_pages(length);
    if (!pages)
        return SLUICE_E_SYSTEM;
    code = slt_read_file(descriptor, status, (unsigned char *)pages);
    if (code == SLUICE_OK)
        return slt_check_pages(view, pages, length, fault);
    slt_free_pages(pages, length);
    return code;
}

int slt_copy(slt_view *view, const void *bytes, size_t length)
{
    slt_fault fault;
    void *pages;
    memset(view, 0, sizeof *view);
    if (length == 0) /* which no pages hold */
        return SLUICE_E_FORMAT;
    pages = slt_pages(length);
    if (!pages)
        return SLUICE_E_SYSTEM;
    memcpy(pages, bytes, length);
    return slt_check_pages(view, pages, length, &fault);
}

/* Open a file and note what is wrong with it. */
static int slt_open_path(slt_view *view, const char *path, uint32_t flags, slt_fault *fault)
{
    struct stat status;
    int descriptor = -1, code;
    memset(view, 0, sizeof *view);
    if (!path || (flags & ~(uint32_t)SLUICE_OPEN_MAPPED))
        return SLUICE_E_ARGUMENT;
    code = slt_open_file(path, &descriptor, &status, fault);
    if (code != SLUICE_OK)
        return code;
    if (flags & SLUICE_OPEN_MAPPED)
        code = slt_map_file(view, descriptor, (size_t)status.st_size, fault);
    else
        code = slt_read_to_pages(view, descriptor, &status, fault);
    return slt_closed(descriptor, code);
}

int sluice_table_open_with(sluice_table *table, const char *path, uint32_t flags)
{
    slt_fault fault;
    if (!table)
        return SLUICE_E_ARGUMENT;
    memset(table, 0, sizeof *table);
    return slt_open_path(slt_view_of(table), path, flags, &fault);
}

int sluice_table_open(sluice_table *table, const char *path)
{
    return sluice_table_open_with(table, path, 0);
}

static int slt_read_to_buffer(slt_view *view, int descriptor, const struct stat *status,
                              unsigned char *buffer)
{
    slt_fault fault;
    int code = slt_read_file(descriptor, status, buffer);
    return code == SLUICE_OK ? slt_check(view, buffer, (size_t)status->st_size, &fault) : code;
}

int sluice_table_load(sluice_table *table, const char *path, void *buffer, size_t capacity)
{
    struct stat status;
    slt_fault fault;
    int descriptor = -1, code;
    if (!table)
        return SLUICE_E_ARGUMENT;
    if (!buffer && !capacity)
        return sluice_table_open(table, path);
    memset(table, 0, sizeof *table);
    if (!path || !buffer)
        return SLUICE_E_ARGUMENT;
    code = slt_open_file(path, &descriptor, &status, &fault);
    if (code != SLUICE_OK)
        return code;
    if ((uint64_t)status.st_size > capacity)
        code = SLUICE_E_CAPACITY;
    else
        code = slt_read_to_buffer(slt_view_of(table), descriptor, &status, (unsigned char *)buffer);
    return slt_closed(descriptor, code);
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
        slt_close(slt_view_of(table));
}

/* What is wrong, for the caller: as much of it as the caller's structure has room for. */
static int slt_explained(sluice_fault *fault, const slt_fault *found, int code)
{
    sluice_fault own;
    memset(&own, 0, sizeof own);
    own.size = fault->size < sizeof own ? fault->size : sizeof own;
    own.code = code;
    own.offset = found->offset;
    own.rule = found->rule ? found->rule : sluice_error_text(code);
    memcpy(fault, &own, (size_t)own.size);
    return code;
}

int sluice_explain(sluice_fault *fault, const char *path)
{
    slt_fault found = {0, NULL};
    slt_view view;
    int code, number;
    if (!fault || fault->size < sizeof fault->size || !path)
        return SLUICE_E_ARGUMENT;
    code = slt_open_path(&view, path, 0, &found);
    number = errno;
    slt_close(&view);
    errno = number;
    return slt_explained(fault, &found, code);
}

int sluice_explain_memory(sluice_fault *fault, const void *bytes, size_t length)
{
    slt_fault found = {0, NULL};
    slt_view view;
    if (!fault || fault->size < sizeof fault->size || !bytes)
        return SLUICE_E_ARGUMENT;
    return slt_explained(fault, &found,
                         slt_check(&view, (const unsigned char *)bytes, length, &found));
}
