/* SPDX-License-Identifier: Apache-2.0 */
/* The stages of a way by single fragments; and, to compare, whole messages in so many equal fragments. */
#include "tool.h"

#include <stdlib.h>
#include <unistd.h>

enum { TAG = 1 };

#define LONGEST_REST_US 1e5

static int printed(void *context, const sluice_mover_sample *sample)
{
    (void)context;
    printf("%llu,%llu,%.3f,%.3f,%.3f,%.3f\n", (unsigned long long)sample->message_bytes,
           (unsigned long long)sample->repetition, sample->sender_us, sample->wire_us,
           sample->receiver_us, sample->total_us);
    return 0;
}

/* One message in equal fragments, from the sender's beginning to the receiver's end; how long it took. As where single
   fragments are measured, nothing travels before it for as long as the one before took: a way may let the first
   bytes behind a rest pass freely, and messages that come closer upon each other would find less of that. */
static double sent_whole(sluice_mover *mover, const tool_options *asked,
                         const sluice_mover_how *how, uint64_t fragments, uint64_t repetition,
                         unsigned char *message, double before_us)
{
    const uint64_t size = (asked->bytes + fragments - 1) / fragments;
    sluice_mover_report report = {.size = sizeof report};
    sluice_mover_how cut = *how;
    sluice_mover_ticket ticket;
    int64_t end_ns = 0;
    double total_us;
    char ready;
    sleep_us(before_us < LONGEST_REST_US ? before_us : LONGEST_REST_US);
    cut.fragment_bytes = size;
    done(sluice_mover_receive(mover, 0, TAG, &ready, 1, NULL, &ticket), "a message");
    done(sluice_mover_wait(mover, ticket, -1, NULL), "a message");
    done(sluice_mover_send(mover, 0, TAG, message, asked->bytes, &cut, &ticket), "a message");
    done(sluice_mover_wait(mover, ticket, -1, &report), "a message");
    done(sluice_mover_receive(mover, 0, TAG, &end_ns, sizeof end_ns, NULL, &ticket), "a message");
    done(sluice_mover_wait(mover, ticket, -1, NULL), "a message");
    total_us = (double)(end_ns - report.begin_ns) / 1e3;
    if (repetition > 0) /* the first is not counted */
        printf("%llu,%llu,%llu,%.3f\n", (unsigned long long)asked->bytes,
               (unsigned long long)fragments, (unsigned long long)repetition - 1, total_us);
    return total_us;
}

static void taken_whole(sluice_mover *mover, const tool_options *asked, const sluice_mover_how *how,
                        unsigned char *message)
{
    sluice_mover_report report = {.size = sizeof report};
    sluice_mover_ticket in, out;
    char ready = 1;
    done(sluice_mover_receive(mover, 0, TAG, message, asked->bytes, how, &in), "a message");
    done(sluice_mover_send(mover, 0, TAG, &ready, 1, NULL, &out), "a message");
    done(sluice_mover_wait(mover, out, -1, NULL), "a message");
    done(sluice_mover_wait(mover, in, -1, &report), "a message");
    done(sluice_mover_send(mover, 0, TAG, &report.end_ns, sizeof report.end_ns, NULL, &out),
         "a message");
    done(sluice_mover_wait(mover, out, -1, NULL), "a message");
}

static void measured(const tool_options *asked, int socket, bool is_far)
{
    conversion by;
    const sluice_mover_how how = converting(&by, asked, !is_far);
    tool_options limits = *asked;
    unsigned char *message;
    sluice_mover *mover;
    uint32_t peer;
    uint64_t largest = asked->bytes;
    double before_us = 0.0;
    for (int i = 0; i < asked->size_count; i++)
        largest = asked->sizes[i] > largest ? asked->sizes[i] : largest;
    limits.max_fragment_bytes = largest;
    pin_to(asked->cpus[is_far]);
    mover = open_mover(&limits, 1, largest);
    done(sluice_mover_add_peer(mover, socket, &peer), "a peer");
    message = calloc(1, (size_t)largest + 1);
    if (message == NULL)
        refuse(TOOL_FAILED, "out of memory");
    if (is_far) {
        done(sluice_mover_calibrate_reply(mover, 0, TAG, &how, -1), "calibrating");
    } else {
        printf("# clock: CLOCK_MONOTONIC of one machine\n"
               "# packing: %g ns a byte, %g us a fragment\n"
               "# unpacking: %g ns a byte, %g us a fragment\n"
               "message_bytes,repetition,sender_us,wire_us,receiver_us,total_us\n",
               asked->pack_ns, asked->pack_each_us, asked->unpack_ns, asked->unpack_each_us);
        done(sluice_mover_calibrate(mover, 0, TAG, asked->sizes, (size_t)asked->size_count,
                                    asked->repetitions, &how, -1, printed, NULL),
             "calibrating");
        if (asked->fragment_count > 0)
            printf("\nmessage_bytes,fragments,repetition,total_us\n");
    }
    for (int i = 0; i < asked->fragment_count; i++)
        for (uint64_t j = 0; j <= asked->repetitions; j++) {
            if (is_far)
                taken_whole(mover, asked, &how, message);
            else
                before_us = sent_whole(mover, asked, &how, asked->counts[i], j, message, before_us);
        }
    finish_mover(mover);
    free(message);
}

int run_calibrate(const tool_options *asked)
{
    int ends[2], child;
    if (asked->size_count == 0)
        refuse(TOOL_USAGE, "--sizes: expected the bytes of messages");
    if ((asked->bytes == 0) != (asked->fragment_count == 0))
        refuse(TOOL_USAGE, "--bytes and --fragments go together");
    for (int i = 0; i < asked->fragment_count; i++)
        if (asked->counts[i] > asked->bytes)
            refuse(TOOL_USAGE, "--fragments: a message has no more fragments than bytes");
    if (asked->bytes > 1u << 30)
        refuse(TOOL_USAGE, "--bytes: expected at most 1 GiB");
    for (int i = 0; i < asked->size_count; i++)
        if (asked->sizes[i] > 1u << 30)
            refuse(TOOL_USAGE, "--sizes: expected at most 1 GiB");
    connect_pair(asked, ends);
    child = start_process();
    if (child == 0) {
        close(ends[0]);
        measured(asked, ends[1], true);
        exit(0);
    }
    close(ends[1]);
    measured(asked, ends[0], false);
    await_processes(&child, 1);
    return 0;
}
