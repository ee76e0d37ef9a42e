/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's stages, logged by sluice_trace.h: one list of events of the process, which one mover has at a time. */
#include "internal.h"

#include <errno.h>

/* A program that traces its own stages has functions of these names too. */
#define sluice_trace_mine slm_trace_mine
#define sluice_trace_thread slm_trace_thread
#define sluice_trace_write slm_trace_write
#define SLUICE_TRACE_IMPLEMENTATION
#include "sluice_trace.h"

static _Atomic(const sluice_mover *) owner;

/* A stage that took so long ends now. */
void slm_trace_sender(uint64_t bytes, int64_t busy_ns)
{
    const uint64_t sluice_trace_begin_sender = sluice_trace_now() - (uint64_t)busy_ns;
    SLUICE_TRACE_END(sender, bytes);
}

void slm_trace_receiver(uint64_t bytes, int64_t busy_ns)
{
    const uint64_t sluice_trace_begin_receiver = sluice_trace_now() - (uint64_t)busy_ns;
    SLUICE_TRACE_END(receiver, bytes);
}


int sluice_mover_trace_begin(sluice_mover *mover)
{
    const sluice_mover *nobody = NULL;
    const int code = slm_check(mover);
    if (code != SLUICE_MOVER_OK)
        return code;
    if (!atomic_compare_exchange_strong(&owner, &nobody, mover))
        return SLUICE_MOVER_E_BUSY;
    pthread_mutex_lock(&mover->lock);
    mover->is_traced = true;
    pthread_mutex_unlock(&mover->lock);
    return SLUICE_MOVER_OK;
}

void slm_trace_leave(void)
{
    sluice_trace_mine = NULL;
}

static void free_rings(void)
{
    sluice_trace_ring *ring = sluice_trace_rings;
    sluice_trace_rings = NULL;
    while (ring != NULL) {
        sluice_trace_ring *next = ring->next;
        free(ring->events);
        free(ring);
        ring = next;
    }
}

void slm_trace_forget(const sluice_mover *mover)
{
    const sluice_mover *expected = mover;
    if (atomic_load(&owner) != mover)
        return;
    free_rings(); /* its agent has left them, or has ended */
    atomic_compare_exchange_strong(&owner, &expected, NULL);
}

static int written_events(const char *path)
{
    FILE *file = fopen(path, "we");
    int failed = 0;
    if (file == NULL)
        return errno;
    fprintf(file, "# fragments of the mover's agent; clock: CLOCK_MONOTONIC\n");
    fprintf(file, "stage,bytes,begin_ns,end_ns\n");
    for (const sluice_trace_ring *ring = sluice_trace_rings; ring != NULL; ring = ring->next) {
        const uint64_t end = ring->written;
        for (uint64_t i = end > SLUICE_TRACE_EVENTS ? end - SLUICE_TRACE_EVENTS : 0; i < end; i++) {
            const sluice_trace_event *event = &ring->events[i & (SLUICE_TRACE_EVENTS - 1u)];
            fprintf(file, "%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", event->stage, event->bytes,
                    event->begin_ns, event->end_ns);
        }
    }
    if (ferror(file))
        failed = EIO;
    if (fclose(file) != 0 && failed == 0)
        failed = errno;
    return failed;
}

int sluice_mover_trace_end(sluice_mover *mover, const char *path, const char *events_path)
{
    const int code = slm_check(mover);
    int failed;
    if (code != SLUICE_MOVER_OK)
        return code;
    if (path == NULL || atomic_load(&owner) != mover)
        return SLUICE_MOVER_E_ARGUMENT;
    pthread_mutex_lock(&mover->lock);
    mover->is_traced = false;
    pthread_mutex_unlock(&mover->lock);
    slm_wake(mover);
    /* Its list is read without a lock: the agent has to have left it. */
    pthread_mutex_lock(&mover->lock);
    while (mover->traces)
        pthread_cond_wait(&mover->changed, &mover->lock);
    pthread_mutex_unlock(&mover->lock);
    failed = events_path != NULL ? written_events(events_path) : 0;
    if (failed == 0)
        failed = sluice_trace_write(path);
    slm_trace_forget(mover);
    if (failed == 0)
        return SLUICE_MOVER_OK;
    errno = failed;
    return SLUICE_MOVER_E_SYSTEM;
}
