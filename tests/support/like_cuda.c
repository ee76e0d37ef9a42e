/* A driver of a GPU that is host memory, for the probe's copies: its addresses are of no memory of
   the host's, so that only a copy reaches them. What LIKE_CUDA_FAILS names fails. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ON_GPU (UINT64_C(1) << 62)
enum { FAILED = 999, NO_CONTEXT = 201 };

static _Thread_local void *current;

static int fails(const char *name)
{
    const char *asked = getenv("LIKE_CUDA_FAILS");
    return asked && !strcmp(asked, name) ? FAILED : 0;
}

int cuInit(unsigned flags)
{
    (void)flags;
    return fails("init");
}

int cuDeviceGet(int *device, int number)
{
    return *device = number;
}

int cuDeviceGetName(char *name, int bytes, int device)
{
    (void)device;
    strncpy(name, "Like a GPU", (size_t)bytes);
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    (void)device;
    *context = context;
    return 0;
}

int cuCtxSetCurrent(void *context)
{
    current = context;
    return 0;
}

int cuMemAlloc_v2(uint64_t *found, size_t bytes)
{
    static void *kept[8]; /* or a sanitizer finds them lost: their addresses are given to nobody */
    static int count;
    *found = (uintptr_t)(kept[count++ % 8] = calloc(1, bytes)) | ON_GPU;
    return fails("memory");
}

int cuMemHostAlloc(void **found, size_t bytes, unsigned flags)
{
    (void)flags;
    *found = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    return fails("pinned");
}

int cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags)
{
    (void)memory, (void)bytes, (void)flags;
    return fails("pinned");
}

int cuStreamCreate(void **stream, unsigned flags)
{
    (void)flags;
    *stream = stream;
    return current ? 0 : NO_CONTEXT;
}

int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
    (void)stream;
    if (!current)
        return NO_CONTEXT;
    memcpy((void *)(uintptr_t)(to & ~ON_GPU), (void *)(uintptr_t)(from & ~ON_GPU), bytes);
    if (fails("bytes"))
        *(unsigned char *)(uintptr_t)(to & ~ON_GPU) += 1;
    return fails("copy");
}

int cuStreamSynchronize(void *stream)
{
    (void)stream;
    return fails("wait");
}
