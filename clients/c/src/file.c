/* Files as tables: mapped, or copied. The one place that asks the operating system for anything. */
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

/* Whether an open file is one of a length that can be mapped and begins as a table does: a large file
   that does not is neither mapped nor read. */
static int check_begin(int descriptor, uint64_t *length)
{
    unsigned char header[SLT_HEADER_BYTES] = {0};
    struct stat status;
    if (fstat(descriptor, &status) != 0)
        return SLUICE_E_SYSTEM;
    if (!S_ISREG(status.st_mode))
        return SLUICE_E_FORMAT;
    if (pread(descriptor, header, sizeof header, 0) < 0)
        return SLUICE_E_SYSTEM;
    *length = (uint64_t)status.st_size;
    return *length > SIZE_MAX ? system_error(EFBIG) : slt_check_begin(header, *length);
}

/* Close the descriptor, which a mapping does not need any more, and keep errno. */
static int closed(int descriptor, int code)
{
    int number = errno;
    close(descriptor);
    errno = number;
    return code;
}

/* Open a regular file for reading: its descriptor and its length. Its kind is asked before it is
   opened, because opening a device may do something, and again afterwards, because it may have been
   exchanged; without O_NONBLOCK a pipe that came in between would be waited for. */
static int open_file(const char *path, int *descriptor, uint64_t *length)
{
    struct stat status;
    int code;
    if (stat(path, &status) != 0)
        return SLUICE_E_SYSTEM;
    if (!S_ISREG(status.st_mode))
        return SLUICE_E_FORMAT;
    *descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*descriptor < 0)
        return SLUICE_E_SYSTEM;
    code = check_begin(*descriptor, length);
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

/* Read exactly so many bytes; a file that has become shorter is truncated. */
static int read_all(int descriptor, unsigned char *buffer, size_t length)
{
    size_t done = 0;
    while (done < length) {
        size_t wanted = length - done < (1u << 30) ? length - done : 1u << 30;
        ssize_t got = read(descriptor, buffer + done, wanted);
        if (got == 0)
            return SLUICE_E_TRUNCATED;
        if (got < 0 && errno != EINTR)
            return SLUICE_E_SYSTEM;
        done += got > 0 ? (size_t)got : 0;
    }
    return SLUICE_OK;
}

static int copy_to_buffer(slt_view *view, int descriptor, size_t length, unsigned char *buffer)
{
    int code = read_all(descriptor, buffer, length);
    return code == SLUICE_OK ? slt_check(view, buffer, length) : code;
}

static int copy_to_pages(slt_view *view, int descriptor, size_t length)
{
    int code, number, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    void *pages = mmap(NULL, length, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (pages == MAP_FAILED)
        return SLUICE_E_SYSTEM;
    code = read_all(descriptor, pages, length);
    if (code == SLUICE_OK && mprotect(pages, length, PROT_READ) != 0)
        code = SLUICE_E_SYSTEM;
    if (code == SLUICE_OK)
        return check_mapping(view, pages, length);
    number = errno;
    munmap(pages, length);
    errno = number;
    return code;
}

int sluice_table_open(sluice_table *table, const char *path)
{
    int descriptor, code;
    uint64_t length;
    if (!table)
        return SLUICE_E_ARGUMENT;
    memset(table, 0, sizeof *table);
    if (!path)
        return SLUICE_E_ARGUMENT;
    code = open_file(path, &descriptor, &length);
    if (code != SLUICE_OK)
        return code;
    return closed(descriptor, map_file(view_of(table), descriptor, (size_t)length));
}

int sluice_table_load(sluice_table *table, const char *path, void *buffer, size_t capacity)
{
    int descriptor, code;
    uint64_t length;
    if (!table)
        return SLUICE_E_ARGUMENT;
    memset(table, 0, sizeof *table);
    if (!path || (!buffer && capacity))
        return SLUICE_E_ARGUMENT;
    code = open_file(path, &descriptor, &length);
    if (code != SLUICE_OK)
        return code;
    if (!buffer)
        code = copy_to_pages(view_of(table), descriptor, (size_t)length);
    else if (length > capacity)
        code = SLUICE_E_CAPACITY;
    else
        code = copy_to_buffer(view_of(table), descriptor, (size_t)length, buffer);
    return closed(descriptor, code);
}

void slt_close(slt_view *view)
{
    int number = errno;
    if (view->seal == SLT_OPEN && view->mapping)
        munmap(view->mapping, view->length);
    errno = number;
    memset(view, 0, sizeof *view);
}

void sluice_table_close(sluice_table *table)
{
    if (table)
        slt_close(view_of(table));
}
