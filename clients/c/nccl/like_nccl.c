/* Calls a tuner plugin as NCCL does, for tests: `like_nccl PLUGIN THREADS`.

   Every line of its input asks for a chunk: collective, bytes, algorithm, protocol, channels, and the
   size that NCCL proposes. Each thread makes a communicator of its own (several at once, as NCCL may)
   and asks everything; all have to get the same, which is printed once, a line each. What the
   plugin logs goes to stderr. Ends with 1 where the plugin breaks a rule, and says which; with 2 where
   it refuses the communicator, as NCCL would. */
#define _POSIX_C_SOURCE 200809L
#include "nccl_tuner_v6.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALGORITHMS = 7, PROTOCOLS = 3, MAX_THREADS = 64 };

struct question {
    int collective, algorithm, protocol, channels;
    size_t bytes, proposed;
};

struct work {
    const struct nccl_tuner_v6 *plugin;
    const struct question *questions;
    size_t count;
    size_t *answers;
    const char *broken; /* the rule, or null */
    int refused;
};

/* Stand-ins for structures of NCCL's that a plugin may read and change. */
struct outside {
    unsigned char nvlink_domains[64], constants[4096];
};

static void say(int level, unsigned long subsystems, const char *file, int line, const char *format,
                ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)file, (void)line;
    fprintf(stderr, "%s %lx %s\n", level == NCCL_LOG_WARN ? "WARN" : "INFO", subsystems, text);
}

static int is_left_alone(const struct work *work, void *context, const struct question *question)
{
    float costs[ALGORITHMS][PROTOCOLS], before[ALGORITHMS][PROTOCOLS];
    int channels = 0, i;
    for (i = 0; i < ALGORITHMS * PROTOCOLS; ++i)
        costs[i / PROTOCOLS][i % PROTOCOLS] = i % 5 ? (float)i : -1.0f;
    memcpy(before, costs, sizeof before);
    if (work->plugin->get_coll_info(context, question->collective, question->bytes, 1,
                                    (float **)costs, ALGORITHMS, PROTOCOLS, 0, &channels))
        return 0;
    return channels == 0 && memcmp(before, costs, sizeof before) == 0;
}

static const char *ask(struct work *work, void *context)
{
    for (size_t i = 0; i < work->count; ++i) {
        const struct question *question = &work->questions[i];
        size_t chunk = question->proposed;
        if (!is_left_alone(work, context, question))
            return "getCollInfo changed something";
        if (work->plugin->get_chunk_size(context, question->collective, question->bytes,
                                         question->algorithm, question->protocol,
                                         question->channels, &chunk))
            return "getChunkSize failed";
        if (chunk > question->proposed || (chunk != question->proposed && chunk % 512))
            return "a chunk is above the proposed one, or no multiple of the grain";
        work->answers[i] = chunk;
    }
    return NULL;
}

static void *run(void *argument)
{
    struct work *work = argument;
    struct outside outside, before;
    void *context = &outside;
    memset(&outside, 0x5A, sizeof outside);
    before = outside;
    work->refused = work->plugin->init(&context, 1234, 8, 2, say, outside.nvlink_domains,
                                       outside.constants);
    if (work->refused) {
        work->broken = context ? "a context is left behind by an init that failed" : NULL;
        return NULL;
    }
    work->broken = ask(work, context);
    if (memcmp(&outside, &before, sizeof outside))
        work->broken = "init changed NCCL's constants";
    if (work->plugin->finalize(context) || work->plugin->finalize(NULL))
        work->broken = "finalize failed";
    return NULL;
}

static size_t read_questions(struct question **questions)
{
    struct question one;
    size_t count = 0, room = 0;
    while (scanf("%d %zu %d %d %d %zu", &one.collective, &one.bytes, &one.algorithm, &one.protocol,
                 &one.channels, &one.proposed) == 6) {
        if (count == room) {
            room = room ? 2 * room : 1024;
            *questions = realloc(*questions, room * sizeof one);
            if (!*questions)
                exit(3);
        }
        (*questions)[count++] = one;
    }
    return count;
}

static int report(const struct work *work, size_t threads)
{
    for (size_t t = 0; t < threads; ++t) {
        if (work[t].broken) {
            fprintf(stderr, "broken: %s\n", work[t].broken);
            return 1;
        }
        if (work[t].refused)
            return 2;
        if (work->count && memcmp(work[0].answers, work[t].answers, work->count * sizeof(size_t))) {
            fprintf(stderr, "broken: two communicators were told different sizes\n");
            return 1;
        }
    }
    for (size_t i = 0; i < work->count; ++i)
        printf("%zu\n", work[0].answers[i]);
    return 0;
}

static int run_all(const struct nccl_tuner_v6 *plugin, size_t threads)
{
    pthread_t started[MAX_THREADS];
    struct work work[MAX_THREADS];
    struct question *questions = NULL;
    size_t count = read_questions(&questions);
    int status;
    for (size_t t = 0; t < threads; ++t) {
        struct work one = {plugin, questions, count, calloc(count + 1, sizeof(size_t)), NULL, 0};
        work[t] = one;
        if (!work[t].answers || pthread_create(&started[t], NULL, run, &work[t]))
            exit(3);
    }
    for (size_t t = 0; t < threads; ++t)
        pthread_join(started[t], NULL);
    status = report(work, threads);
    for (size_t t = 0; t < threads; ++t)
        free(work[t].answers);
    free(questions);
    return status;
}

int main(int count, char **arguments)
{
    void *library = count == 3 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    const struct nccl_tuner_v6 *plugin = library ? dlsym(library, "ncclTunerPlugin_v6") : NULL;
    size_t threads = count == 3 ? strtoul(arguments[2], NULL, 10) : 0;
    int status;
    if (!plugin || !plugin->name || threads < 1 || threads > MAX_THREADS) {
        const char *why = library ? "no ncclTunerPlugin_v6 in it" : dlerror();
        fprintf(stderr, "usage: like_nccl PLUGIN THREADS: %s\n", why ? why : "two arguments");
        return 3;
    }
    fprintf(stderr, "plugin %s\n", plugin->name);
    status = run_all(plugin, threads);
    dlclose(library);
    return status;
}
