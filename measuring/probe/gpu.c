/* Copies to and from the first GPU, through its driver, which is opened when the probe runs: there
   are no headers of it here. Memory has one address for host and GPU, so that a copy is told by its
   addresses. Declarations as in CUDA's driver API, 12 and 13. */
#include "probe.h"

#include <dlfcn.h>
#include <string.h>

enum { DRIVER_PORTABLE = 1, STREAM_NON_BLOCKING = 1, NAME_BYTES = 100 };

static struct {
    void *context;
    int (*set_context)(void *);
    int (*alloc)(uint64_t *, size_t);
    int (*alloc_host)(void **, size_t, unsigned);
    int (*open_stream)(void **, unsigned);
    int (*copy)(uint64_t to, uint64_t from, size_t, void *stream);
    int (*wait)(void *stream);
} driver;

static void *driver_library(void)
{
    return dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
}

bool has_gpu_driver(void)
{
    return driver_library() != NULL;
}

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found)
        refuse(PROBE_NOT_HERE, "libcuda.so.1 has no %s", name);
    return found;
}

void open_gpu_driver(void)
{
    if (driver.context)
        return;
    void *library = driver_library();
    int (*init)(unsigned), (*get_device)(int *, int), (*get_name)(char *, int, int);
    int (*get_context)(void **, int), device;
    char name[NAME_BYTES] = "";
    if (!library)
        refuse(PROBE_NOT_HERE, "%s", NO_GPU);
    *(void **)&init = symbol(library, "cuInit");
    *(void **)&get_device = symbol(library, "cuDeviceGet");
    *(void **)&get_name = symbol(library, "cuDeviceGetName");
    *(void **)&get_context = symbol(library, "cuDevicePrimaryCtxRetain");
    *(void **)&driver.set_context = symbol(library, "cuCtxSetCurrent");
    *(void **)&driver.alloc = symbol(library, "cuMemAlloc_v2");
    *(void **)&driver.alloc_host = symbol(library, "cuMemHostAlloc");
    *(void **)&driver.open_stream = symbol(library, "cuStreamCreate");
    *(void **)&driver.copy = symbol(library, "cuMemcpyAsync");
    *(void **)&driver.wait = symbol(library, "cuStreamSynchronize");
    if (init(0) || get_device(&device, 0) || get_context(&driver.context, device) ||
        driver.set_context(driver.context))
        refuse(PROBE_NOT_HERE, "the driver is here, and no GPU that can be used");
    if (!get_name(name, NAME_BYTES - 1, device))
        fact("gpu", name);
}

unsigned char *gpu_memory(size_t bytes)
{
    uint64_t found = 0;
    if (driver.alloc(&found, bytes + PAGE))
        refuse(PROBE_FAILED, "no memory for %zu bytes on the GPU", bytes);
    return (unsigned char *)(uintptr_t)found;
}

unsigned char *pinned_memory(size_t bytes)
{
    void *found = NULL;
    if (driver.alloc_host(&found, bytes + PAGE, DRIVER_PORTABLE))
        refuse(PROBE_FAILED, "no pinned memory for %zu bytes", bytes);
    memset(found, 1, bytes + PAGE);
    return found;
}

void gpu_copy(void *to, const void *from, size_t bytes)
{
    /* A stream a thread: copies of both directions run at once only in streams of their own. */
    static _Thread_local void *stream;
    int wrong = 0;
    if (!stream)
        wrong = driver.set_context(driver.context) ||
                driver.open_stream(&stream, STREAM_NON_BLOCKING);
    if (!wrong)
        wrong = driver.copy((uintptr_t)to, (uintptr_t)from, bytes, stream);
    if (!wrong)
        wrong = driver.wait(stream);
    if (wrong)
        refuse(PROBE_FAILED, "a copy of %zu bytes: error %d of the GPU's driver", bytes, wrong);
}
