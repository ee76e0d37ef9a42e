/* SPDX-License-Identifier: Apache-2.0 */
/* The stages of a way, by messages of one fragment that are alone on it: what a fragment costs where it is made, how long
   it is under way, and what it costs where it is taken. Both ends read one clock, as processes of a machine do. */
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Both ends talk in notes of a fixed length. */
enum { BOOT_BYTES = 40, NOTE_BYTES = 24 + BOOT_BYTES };

/* Below what TCP calls idle, after which it would begin slowly again: 200 ms. */
#define LONGEST_REST_NS INT64_C(100000000)

typedef struct note {
    uint64_t bytes; /* of the next message; 0: that was all */
    int64_t end_ns, busy_ns;
    char boot[BOOT_BYTES]; /* which machine, since it was started */
} note;

static void this_boot(char *boot)
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    memset(boot, 0, BOOT_BYTES);
    if (file == NULL)
        return;
    if (fread(boot, 1, BOOT_BYTES - 1, file) == 0)
        boot[0] = 0;
    fclose(file);
}

/* One message, waited for. What is not done in time is left to the mover with its buffer, which is null then: a
   fragment may be half written or read, and the peer may never go on. */
static int awaited(sluice_mover *mover, sluice_mover_ticket ticket, int timeout_ms,
                   sluice_mover_report *report, unsigned char **buffer)
{
    const int code = sluice_mover_wait(mover, ticket, timeout_ms, report);
    if (code == SLUICE_MOVER_E_TIMEOUT || code == SLUICE_MOVER_E_STALLED) {
        slm_leave(mover, ticket, *buffer);
        *buffer = NULL;
    }
    return code;
}

static int send_note(sluice_mover *mover, uint32_t to, uint32_t tag, const note *what, int timeout_ms)
{
    unsigned char *bytes = malloc(NOTE_BYTES);
    sluice_mover_ticket ticket;
    int code;
    if (bytes == NULL)
        return SLUICE_MOVER_E_MEMORY;
    store(bytes, 8, what->bytes);
    store(bytes + 8, 8, (uint64_t)what->end_ns);
    store(bytes + 16, 8, (uint64_t)what->busy_ns);
    memcpy(bytes + 24, what->boot, BOOT_BYTES);
    code = sluice_mover_send(mover, to, tag, bytes, NOTE_BYTES, NULL, &ticket);
    if (code == SLUICE_MOVER_OK)
        code = awaited(mover, ticket, timeout_ms, NULL, &bytes);
    free(bytes);
    return code;
}

static int receive_note(sluice_mover *mover, uint32_t from, uint32_t tag, note *what, int timeout_ms)
{
    unsigned char *bytes = calloc(1, NOTE_BYTES);
    sluice_mover_ticket ticket;
    int code;
    memset(what, 0, sizeof *what);
    if (bytes == NULL)
        return SLUICE_MOVER_E_MEMORY;
    code = sluice_mover_receive(mover, from, tag, bytes, NOTE_BYTES, NULL, &ticket);
    if (code == SLUICE_MOVER_OK)
        code = awaited(mover, ticket, timeout_ms, NULL, &bytes);
    if (code == SLUICE_MOVER_OK) {
        what->bytes = fetch(bytes, 8);
        what->end_ns = (int64_t)fetch(bytes + 8, 8);
        what->busy_ns = (int64_t)fetch(bytes + 16, 8);
        memcpy(what->boot, bytes + 24, BOOT_BYTES);
    }
    free(bytes);
    return code;
}

/* --- the end that measures -------------------------------------------------------------------- */

typedef struct way {
    sluice_mover *mover;
    uint32_t peer, tag;
    int timeout_ms;
    sluice_mover_how how;
    unsigned char *message;
    int64_t rest_ns; /* before the next message */
    note own;
} way;

/* Nothing travels for as long as the message before took. What a way lets pass freely after a rest, as the burst of
   a token bucket, is there again for each message then, if that is no more than half of one, whether
   the messages come one upon the other or not. */
static void rested(const way *on)
{
    struct timespec left = {.tv_sec = on->rest_ns / 1000000000, .tv_nsec = on->rest_ns % 1000000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

static int sampled_once(way *on, uint64_t bytes, sluice_mover_sample *sample)
{
    sluice_mover_report left = {.size = sizeof left};
    sluice_mover_ticket ticket = 0;
    note reply;
    int code;
    on->own.bytes = bytes;
    rested(on);
    code = send_note(on->mover, on->peer, on->tag, &on->own, on->timeout_ms);
    if (code == SLUICE_MOVER_OK) /* its receive is there: nothing is stored on the way */
        code = receive_note(on->mover, on->peer, on->tag, &reply, on->timeout_ms);
    if (code == SLUICE_MOVER_OK && memcmp(reply.boot, on->own.boot, BOOT_BYTES) != 0)
        return SLUICE_MOVER_E_CLOCK;
    on->how.fragment_bytes = bytes;
    if (code == SLUICE_MOVER_OK)
        code = sluice_mover_send(on->mover, on->peer, on->tag, on->message, bytes, &on->how, &ticket);
    if (code == SLUICE_MOVER_OK)
        code = awaited(on->mover, ticket, on->timeout_ms, &left, &on->message);
    if (code == SLUICE_MOVER_OK)
        code = receive_note(on->mover, on->peer, on->tag, &reply, on->timeout_ms);
    if (code != SLUICE_MOVER_OK)
        return code;
    if (reply.busy_ns < 0 || reply.end_ns < left.begin_ns) /* of no clock that is this one */
        return SLUICE_MOVER_E_CLOCK;
    on->rest_ns = reply.end_ns - left.begin_ns;
    if (on->rest_ns > LONGEST_REST_NS)
        on->rest_ns = LONGEST_REST_NS;
    sample->message_bytes = bytes;
    sample->sender_us = (double)left.busy_ns / 1e3;
    sample->receiver_us = (double)reply.busy_ns / 1e3;
    sample->total_us = (double)(reply.end_ns - left.begin_ns) / 1e3;
    sample->wire_us = sample->total_us - sample->sender_us - sample->receiver_us;
    if (sample->wire_us < 0.0) /* the receiver began to read while the sender was still writing */
        sample->wire_us = 0.0;
    return SLUICE_MOVER_OK;
}

int sluice_mover_calibrate(sluice_mover *mover, uint32_t peer, uint32_t tag, const uint64_t *sizes,
                           size_t count, uint64_t repetitions, const sluice_mover_how *how,
                           int timeout_ms, sluice_mover_sampled sampled, void *context)
{
    way on = {.mover = mover, .peer = peer, .tag = tag, .timeout_ms = timeout_ms};
    uint64_t largest = 0;
    int code = slm_check(mover);
    if (code != SLUICE_MOVER_OK)
        return code;
    if (sizes == NULL || sampled == NULL)
        return SLUICE_MOVER_E_ARGUMENT;
    for (size_t i = 0; i < count; i++) {
        if (sizes[i] == 0 || sizes[i] > mover->options.max_fragment_bytes ||
            sizes[i] > mover->window / 2)
            return SLUICE_MOVER_E_ARGUMENT;
        largest = sizes[i] > largest ? sizes[i] : largest;
    }
    on.how.size = sizeof on.how;
    if (how != NULL) {
        on.how.pack = how->pack;
        on.how.context = how->context;
    }
    this_boot(on.own.boot);
    on.message = calloc(1, (size_t)largest + 1);
    if (on.message == NULL)
        return SLUICE_MOVER_E_MEMORY;
    for (size_t i = 0; code == SLUICE_MOVER_OK && i < count; i++) {
        sluice_mover_sample sample;
        code = sampled_once(&on, sizes[i], &sample); /* the first of a size is not counted */
        for (uint64_t j = 0; code == SLUICE_MOVER_OK && j < repetitions; j++) {
            code = sampled_once(&on, sizes[i], &sample);
            sample.repetition = j;
            if (code == SLUICE_MOVER_OK && sampled(context, &sample) != 0)
                code = SLUICE_MOVER_E_CALLBACK;
        }
    }
    on.own.bytes = 0;
    /* Not where it is gone, or took too long: it would take this for what it waits for. */
    if (code == SLUICE_MOVER_OK || code == SLUICE_MOVER_E_CALLBACK || code == SLUICE_MOVER_E_CLOCK)
        (void)send_note(mover, peer, tag, &on.own, timeout_ms);
    free(on.message);
    return code;
}

/* --- the other end ---------------------------------------------------------------------------- */

int sluice_mover_calibrate_reply(sluice_mover *mover, uint32_t peer, uint32_t tag,
                                 const sluice_mover_how *how, int timeout_ms)
{
    sluice_mover_how wanted = {.size = sizeof wanted};
    unsigned char *buffer = NULL;
    uint64_t room = 0;
    note asked, reply = {0};
    int code = slm_check(mover);
    if (code != SLUICE_MOVER_OK)
        return code;
    if (how != NULL) {
        wanted.unpack = how->unpack;
        wanted.context = how->context;
    }
    this_boot(reply.boot);
    while ((code = receive_note(mover, peer, tag, &asked, timeout_ms)) == SLUICE_MOVER_OK) {
        sluice_mover_report here = {.size = sizeof here};
        sluice_mover_ticket ticket;
        if (asked.bytes == 0)
            break;
        if (memcmp(asked.boot, reply.boot, BOOT_BYTES) != 0 ||
            asked.bytes > mover->options.max_fragment_bytes) {
            (void)send_note(mover, peer, tag, &reply, timeout_ms);
            code = SLUICE_MOVER_E_CLOCK;
            break;
        }
        if (asked.bytes > room) {
            free(buffer);
            room = asked.bytes;
            buffer = calloc(1, (size_t)room);
            if (buffer == NULL) {
                code = SLUICE_MOVER_E_MEMORY;
                break;
            }
        }
        code = sluice_mover_receive(mover, peer, tag, buffer, asked.bytes, &wanted, &ticket);
        if (code != SLUICE_MOVER_OK)
            break;
        code = send_note(mover, peer, tag, &reply, timeout_ms);
        if (code == SLUICE_MOVER_OK) {
            code = awaited(mover, ticket, timeout_ms, &here, &buffer);
        } else {
            (void)awaited(mover, ticket, 0, NULL, &buffer);
            break;
        }
        if (code != SLUICE_MOVER_OK)
            break;
        reply.end_ns = here.end_ns;
        reply.busy_ns = here.busy_ns;
        code = send_note(mover, peer, tag, &reply, timeout_ms);
        if (code != SLUICE_MOVER_OK)
            break;
    }
    free(buffer);
    return code;
}
