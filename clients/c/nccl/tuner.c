/* A tuner plugin for NCCL 2.30.3 and later: the size of a chunk, looked up in a table file of Sluice.

   UNVERIFIED ON A GPU: tested against the interface alone, by a program that calls it as NCCL does.

   NCCL_TUNER_PLUGIN=sluice     (or the path of libnccl-tuner-sluice.so) makes NCCL load it
   SLUICE_NCCL_TABLE            the path of the table file (.slt); without it, and with a checksum, the
                                table of the name "nccl" that sluice_table_find finds: by SLUICE_TABLE,
                                in the user's folder, in /etc/sluice; without both nothing is changed
   SLUICE_NCCL_CHECKSUM         the file's checksum, 8 hexadecimal digits: with any other file, or
                                with none that can be read, no communicator is made
   SLUICE_NCCL_COLLECTIVES      out of broadcast, reduce and allreduce, with commas; all by default
   SLUICE_NCCL_LOG              1: a line in NCCL's log for every size that is changed

   What is changed   The chunk of protocol Simple where the chunks of one channel go one behind the
                     other through a chain or a tree of ranks: ring broadcast and reduce, tree
                     broadcast, reduce and allreduce. The message is one channel's part.
   What is not       Everything else: algorithm, protocol and channels are NCCL's; LL and LL128 have
                     units of their own; in the other ring collectives a rank waits for each chunk
                     before it sends the next, so that a chunk is no fragment of a pipeline.
   Bounds            At least 16 KiB, which is the least that NCCL's own rules come to; at most what
                     NCCL proposed, and the table's greatest fragment; a multiple of 512 bytes.
   Same everywhere   All ranks of a communicator must cut alike: ranks that do not would wait for each
                     other or take each other's data for something else. So all of them need the same
                     table, which SLUICE_NCCL_CHECKSUM makes sure of.
   Threads           After init everything is only read. Nothing is allocated while looking up. */
#include "nccl_tuner_v6.h"
#include "sluice.h"

#include <stdlib.h>
#include <string.h>

#define GRAIN_BYTES 512u         /* ncclProtoGrainSize of Simple, NCCL's src/include/device.h */
#define TABLE_NAME "nccl"
#define MAX_PATH_BYTES 4096u
#define MIN_CHUNK_BYTES 16384u   /* NVLS in calcCollChunking, NCCL's src/enqueue.cc */

enum { BROADCAST = 1, REDUCE = 2, ALL_REDUCE = 4, EVERY = 7 };

struct tuner {
    sluice_table table;
    sluice_description about;
    nccl_logger logger;
    unsigned collectives; /* none: nothing is changed */
    int is_logging;
};

#if defined(__GNUC__)
#define EXPORTED __attribute__((visibility("default")))
#else
#define EXPORTED
#endif

#define SAY(tuner, level, ...)                                                                   \
    do {                                                                                         \
        if ((tuner)->logger)                                                                     \
            (tuner)->logger(level, NCCL_LOG_INIT | NCCL_LOG_TUNING, "sluice", __LINE__,          \
                            "TUNER/Sluice: " __VA_ARGS__);                                       \
    } while (0)

/* --- settings --------------------------------------------------------------------------------- */

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static unsigned collective_named(const char *name, size_t length)
{
    static const struct {
        const char *name;
        unsigned bit;
    } known[] = {{"broadcast", BROADCAST}, {"reduce", REDUCE}, {"allreduce", ALL_REDUCE}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; ++i)
        if (strlen(known[i].name) == length && memcmp(known[i].name, name, length) == 0)
            return known[i].bit;
    return 0;
}

/* Names with commas between them; 0 where one is not known. */
static unsigned collectives_in(const char *names)
{
    unsigned found = 0;
    for (;;) {
        size_t length = strcspn(names, ",");
        unsigned bit = collective_named(names, length);
        if (bit == 0)
            return 0;
        found |= bit;
        if (names[length] == '\0')
            return found;
        names += length + 1;
    }
}

static int digit_of(char digit)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = strchr(digits, digit >= 'A' && digit <= 'F' ? digit - 'A' + 'a' : digit);
    return digit && found ? (int)(found - digits) : -1;
}

/* Whether the text is this number in 8 hexadecimal digits. */
static int is_checksum(const char *text, uint32_t checksum)
{
    uint32_t value = 0;
    size_t i;
    for (i = 0; i < 8; ++i) {
        int digit = digit_of(text[i]);
        if (digit < 0)
            return 0;
        value = value << 4 | (uint32_t)digit;
    }
    return text[8] == '\0' && value == checksum;
}

/* --- init and finalize ------------------------------------------------------------------------ */

/* 1, and what to do for which collectives; 0 where a setting or the file is refused, which is said. */
static int is_set_up(struct tuner *tuner, const char *path, const char *checksum)
{
    const char *names = setting("SLUICE_NCCL_COLLECTIVES");
    unsigned collectives = names ? collectives_in(names) : EVERY;
    int code;
    if (collectives == 0) {
        SAY(tuner, NCCL_LOG_WARN,
            "SLUICE_NCCL_COLLECTIVES is refused: expected names out of broadcast, reduce and "
            "allreduce with commas between them");
        return 0;
    }
    code = sluice_table_load(&tuner->table, path, NULL, 0);
    tuner->about.size = sizeof tuner->about;
    if (code == SLUICE_OK)
        code = sluice_table_describe(&tuner->table, &tuner->about);
    if (code != SLUICE_OK) {
        SAY(tuner, NCCL_LOG_WARN, "%.200s is refused: %s", path, sluice_error_text(code));
        return 0;
    }
    if (checksum && !is_checksum(checksum, tuner->about.checksum)) {
        SAY(tuner, NCCL_LOG_WARN,
            "%.200s is refused: its checksum is %08x, and SLUICE_NCCL_CHECKSUM is another one", path,
            (unsigned)tuner->about.checksum);
        return 0;
    }
    tuner->collectives = collectives;
    return 1;
}

static void say_what_is_done(const struct tuner *tuner, const char *path)
{
    const sluice_description *about = &tuner->about;
    SAY(tuner, NCCL_LOG_INFO,
        "%.200s: profile '%s', revision %u, checksum %08x, messages of %llu to %llu bytes; all ranks "
        "need this very table",
        path, about->profile, (unsigned)about->revision, (unsigned)about->checksum,
        (unsigned long long)about->min_message_bytes, (unsigned long long)about->max_message_bytes);
}

static int tuner_finalize(void *context)
{
    struct tuner *tuner = context;
    if (tuner) {
        sluice_table_close(&tuner->table);
        free(tuner);
    }
    return NCCL_SUCCESS;
}

/* The path of the table, in the caller's room; null where there is none. What lies where tables are looked
   for may be another one for each rank: only a checksum makes sure, so it is not looked for without. */
static const char *table_path(char *room, const char *checksum)
{
    const char *path = setting("SLUICE_NCCL_TABLE");
    if (path || !checksum)
        return path;
    return sluice_table_find(TABLE_NAME, room, MAX_PATH_BYTES) == SLUICE_OK ? room : NULL;
}

/* Where no checksum is demanded, a table that is refused leaves NCCL as it is. */
static int tuner_init(void **context, uint64_t communicator, size_t ranks, size_t nodes,
                      nccl_logger logger, void *nvlink_domains, void *constants)
{
    char room[MAX_PATH_BYTES];
    const char *checksum = setting("SLUICE_NCCL_CHECKSUM"), *path = table_path(room, checksum);
    struct tuner *tuner = calloc(1, sizeof *tuner);
    (void)communicator, (void)ranks, (void)nodes, (void)nvlink_domains, (void)constants;
    *context = NULL;
    if (!tuner)
        return NCCL_SYSTEM_ERROR;
    tuner->logger = logger;
    tuner->is_logging = setting("SLUICE_NCCL_LOG") && strcmp(setting("SLUICE_NCCL_LOG"), "1") == 0;
    if (path && is_set_up(tuner, path, checksum)) {
        say_what_is_done(tuner, path);
    } else if (checksum) {
        SAY(tuner, NCCL_LOG_WARN,
            "no communicator without the table that SLUICE_NCCL_CHECKSUM demands: other ranks may "
            "have it, and all have to cut alike");
        tuner_finalize(tuner);
        return NCCL_INVALID_USAGE;
    } else {
        SAY(tuner, path ? NCCL_LOG_WARN : NCCL_LOG_INFO, "%s: NCCL's own sizes are left as they are",
            path ? "without a table" : "SLUICE_NCCL_TABLE is not set");
    }
    *context = tuner;
    return NCCL_SUCCESS;
}

/* --- what NCCL asks --------------------------------------------------------------------------- */

/* Algorithm, protocol and channels stay NCCL's own. */
static int tuner_get_coll_info(void *context, int collective, size_t bytes, int operations,
                               float **costs, int algorithms, int protocols, int is_registered,
                               int *channels)
{
    (void)context, (void)collective, (void)bytes, (void)operations, (void)costs;
    (void)algorithms, (void)protocols, (void)is_registered, (void)channels;
    return NCCL_SUCCESS;
}

/* Whether the chunks of this one are fragments that go one behind the other through a pipeline. */
static int is_pipeline(const struct tuner *tuner, int collective, int algorithm, int protocol)
{
    if (protocol != NCCL_SIMPLE || (algorithm != NCCL_TREE && algorithm != NCCL_RING))
        return 0;
    switch (collective) {
    case NCCL_BROADCAST: return (tuner->collectives & BROADCAST) != 0;
    case NCCL_REDUCE: return (tuner->collectives & REDUCE) != 0;
    case NCCL_ALL_REDUCE: return (tuner->collectives & ALL_REDUCE) != 0 && algorithm == NCCL_TREE;
    default: return 0;
    }
}

/* The size inside its bounds; `proposed` where they leave no choice. Rounded upwards where there is
   room, because a size that falls short by one byte costs a further fragment. */
static size_t bounded(const struct tuner *tuner, uint64_t size, size_t proposed)
{
    uint64_t maximum = proposed, limit = tuner->about.max_fragment_bytes;
    if (limit != 0 && limit < maximum)
        maximum = limit;
    maximum -= maximum % GRAIN_BYTES;
    if (maximum < MIN_CHUNK_BYTES)
        return proposed;
    if (size >= maximum)
        return (size_t)maximum;
    if (size <= MIN_CHUNK_BYTES)
        return MIN_CHUNK_BYTES;
    return (size_t)((size + GRAIN_BYTES - 1) / GRAIN_BYTES * GRAIN_BYTES);
}

static int tuner_get_chunk_size(void *context, int collective, size_t bytes, int algorithm,
                                int protocol, int channels, size_t *chunk_bytes)
{
    const struct tuner *tuner = context;
    uint64_t message, size = 0;
    size_t chunk;
    if (!tuner || !chunk_bytes || channels < 1 ||
        !is_pipeline(tuner, collective, algorithm, protocol))
        return NCCL_SUCCESS;
    message = (uint64_t)bytes / (unsigned)channels + (bytes % (unsigned)channels != 0);
    if (sluice_repeat(&tuner->table, message, &size) != SLUICE_OK)
        return NCCL_SUCCESS;
    chunk = bounded(tuner, size, *chunk_bytes);
    if (tuner->is_logging && chunk != *chunk_bytes)
        SAY(tuner, NCCL_LOG_INFO, "collective %d, algorithm %d, %llu bytes a channel: %zu to %zu",
            collective, algorithm, (unsigned long long)message, *chunk_bytes, chunk);
    *chunk_bytes = chunk;
    return NCCL_SUCCESS;
}

extern const struct nccl_tuner_v6 ncclTunerPlugin_v6;

EXPORTED const struct nccl_tuner_v6 ncclTunerPlugin_v6 = {
    .name = "Sluice",
    .init = tuner_init,
    .get_coll_info = tuner_get_coll_info,
    .finalize = tuner_finalize,
    .get_chunk_size = tuner_get_chunk_size,
};
