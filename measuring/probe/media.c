/* What stages and transfers both move bytes through: memory, checksums, rings, pairs and files. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

unsigned char *memory(size_t bytes)
{
    void *found = NULL;
    if (posix_memalign(&found, PAGE, bytes + PAGE))
        refuse(PROBE_FAILED, "there is no memory for %zu bytes", bytes);
    memset(found, 1, bytes + PAGE); /* every page is there before it is timed */
    return found;
}

static uint32_t crc_table[8][256];

__attribute__((constructor)) static void fill_crc_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++)
            value = value >> 1 ^ (value & 1 ? 0xedb88320u : 0);
        crc_table[0][i] = value;
    }
    for (int row = 1; row < 8; row++)
        for (int i = 0; i < 256; i++)
            crc_table[row][i] =
                crc_table[row - 1][i] >> 8 ^ crc_table[0][crc_table[row - 1][i] & 255];
}

uint32_t checksum(const unsigned char *p, size_t bytes)
{
    uint32_t crc = 0xffffffffu;
    for (; bytes >= 8; bytes -= 8, p += 8) {
        uint32_t low, high;
        memcpy(&low, p, 4);
        memcpy(&high, p + 4, 4);
        low ^= crc;
        crc = crc_table[7][low & 255] ^ crc_table[6][low >> 8 & 255] ^
              crc_table[5][low >> 16 & 255] ^ crc_table[4][low >> 24] ^ crc_table[3][high & 255] ^
              crc_table[2][high >> 8 & 255] ^ crc_table[1][high >> 16 & 255] ^
              crc_table[0][high >> 24];
    }
    for (; bytes; bytes--, p++)
        crc = crc >> 8 ^ crc_table[0][(crc ^ *p) & 255];
    return ~crc;
}

enum { RING_BYTES = 1 << 18, SPINS = 2000 };

struct ring {
    _Alignas(64) _Atomic uint64_t written;
    _Alignas(64) _Atomic uint64_t read;
    _Alignas(64) unsigned char bytes[RING_BYTES];
};

static void wait_a_little(int *spins)
{
    if (++*spins > SPINS)
        sched_yield(); /* the other end may need this processor */
}

bool ring_write(struct ring *ring, const unsigned char *from, size_t bytes)
{
    int spins = 0;
    while (bytes) {
        uint64_t at = atomic_load_explicit(&ring->written, memory_order_relaxed);
        uint64_t room = RING_BYTES - (at - atomic_load_explicit(&ring->read, memory_order_acquire));
        size_t place = at % RING_BYTES, part = bytes;
        part = part > room ? room : part;
        part = part > RING_BYTES - place ? RING_BYTES - place : part;
        part = part > RING_BYTES / 8 ? RING_BYTES / 8 : part; /* the reader begins early */
        if (!part) {
            wait_a_little(&spins);
            continue;
        }
        memcpy(ring->bytes + place, from, part);
        atomic_store_explicit(&ring->written, at + part, memory_order_release);
        from += part;
        bytes -= part;
        spins = 0;
    }
    return true;
}

bool ring_read(struct ring *ring, unsigned char *to, size_t bytes)
{
    int spins = 0;
    while (bytes) {
        uint64_t at = atomic_load_explicit(&ring->read, memory_order_relaxed);
        uint64_t have = atomic_load_explicit(&ring->written, memory_order_acquire) - at;
        size_t place = at % RING_BYTES, part = bytes;
        part = part > have ? have : part;
        part = part > RING_BYTES - place ? RING_BYTES - place : part;
        if (!part) {
            wait_a_little(&spins);
            continue;
        }
        memcpy(to, ring->bytes + place, part);
        atomic_store_explicit(&ring->read, at + part, memory_order_release);
        to += part;
        bytes -= part;
        spins = 0;
    }
    return true;
}

struct ring *open_ring(void)
{
    struct ring *ring =
        mmap(NULL, sizeof *ring, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ring == MAP_FAILED)
        refuse(PROBE_FAILED, "shared memory: %s", strerror(errno));
    memset(ring, 0, sizeof *ring);
    return ring;
}

void open_pair(struct stream *stream, const char *kind)
{
    int ends[2], is_pipe = !strcmp(kind, "pipe");
    if (is_pipe ? pipe2(ends, O_CLOEXEC) : socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        refuse(PROBE_FAILED, "%s: %s", kind, strerror(errno));
    *stream = (struct stream){{ends[1], ends[0]}};
}

int unnamed_file(const char *folder, size_t bytes, size_t step, int flags)
{
    int file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | flags, 0600);
    if (file < 0) {
        int reason = errno;
        int status = reason == EINVAL || reason == EOPNOTSUPP || reason == EISDIR
                         ? PROBE_NOT_HERE
                         : PROBE_FAILED;
        refuse(status, "%s: %s", folder, strerror(reason));
    }
    unsigned char *from = memory(step);
    for (size_t at = 0; at < bytes;) {
        size_t part = bytes - at < step ? bytes - at : step;
        part = part > PAGE ? part / PAGE * PAGE : PAGE;
        ssize_t done = pwrite(file, from, part, (off_t)at);
        if (done <= 0)
            refuse(PROBE_FAILED, "%s: %s", folder, strerror(errno));
        at += (size_t)done;
    }
    free(from);
    if (fsync(file))
        refuse(PROBE_FAILED, "%s: %s", folder, strerror(errno));
    return file;
}
