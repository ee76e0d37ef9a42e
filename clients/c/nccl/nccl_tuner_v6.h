/* What NCCL and a tuner plugin agree on, version 6: written down for this plugin from NCCL v2.30.7-1
   (commit 73cf112295c33aee2b895f329f592f2a9b4b0f97), so that it compiles without NCCL's headers:

       src/include/plugin/tuner/tuner_v6.h     the structure, the order of its members
       src/include/plugin/nccl_tuner.h         numbers of algorithms and protocols
       src/include/nccl_common.h               numbers of collectives, levels and subsystems of the log
       src/nccl.h.in                           numbers of results
       src/plugin/tuner/tuner_v6.cc            the symbol that NCCL looks up, `ncclTunerPlugin_v6`
       src/enqueue.cc, src/init.cc             when each function is called, and what its result does

   NCCL 2.30.3 was the first release with version 6; older ones look for ncclTunerPlugin_v5 and below,
   say that this plugin is unsupported, and go on without it. NCCL's enumerations are ints here: they
   are passed alike. */
#ifndef SLUICE_NCCL_TUNER_V6_H
#define SLUICE_NCCL_TUNER_V6_H

#include <stddef.h>
#include <stdint.h>

/* Results: NCCL gives up what it is doing on anything but the first. */
enum { NCCL_SUCCESS = 0, NCCL_SYSTEM_ERROR = 2, NCCL_INVALID_USAGE = 5 };

enum {
    NCCL_BROADCAST = 0,
    NCCL_REDUCE = 1,
    NCCL_ALL_GATHER = 2,
    NCCL_REDUCE_SCATTER = 3,
    NCCL_ALL_REDUCE = 4
};

enum { NCCL_TREE = 0, NCCL_RING = 1 }; /* of seven algorithms, those that this plugin knows */

enum { NCCL_LL = 0, NCCL_LL128 = 1, NCCL_SIMPLE = 2 };

enum { NCCL_LOG_WARN = 2, NCCL_LOG_INFO = 3 };

enum { NCCL_LOG_INIT = 0x1, NCCL_LOG_TUNING = 0x40 };

typedef void (*nccl_logger)(int level, unsigned long subsystems, const char *file, int line,
                            const char *format, ...);

struct nccl_tuner_v6 {
    const char *name;

    /* Once for each communicator, before it is used; several may be made at once. What `context` is
       set to comes back in every other call. A result but success: no communicator is made. */
    int (*init)(void **context, uint64_t communicator, size_t ranks, size_t nodes,
                nccl_logger logger, void *nvlink_domains, void *constants);

    /* For each collective, before its algorithm is chosen: `costs` may be changed (float[7][3], a
       negative one is not available), and *channels, which is 0. Must not be null. */
    int (*get_coll_info)(void *context, int collective, size_t bytes, int operations, float **costs,
                         int algorithms, int protocols, int is_registered, int *channels);

    /* Once for each communicator, when it is destroyed. */
    int (*finalize)(void *context);

    /* For each collective, once for each part of it: *chunk_bytes is what NCCL has chosen, and what
       it uses afterwards, at most what its buffers hold, rounded down to the protocol's grain. Null:
       NCCL's own. `bytes` is one channel's part with `channels` 1 (ring, tree, NVLS), or the whole
       with all of them (CollNet). */
    int (*get_chunk_size)(void *context, int collective, size_t bytes, int algorithm, int protocol,
                          int channels, size_t *chunk_bytes);
};

#endif
