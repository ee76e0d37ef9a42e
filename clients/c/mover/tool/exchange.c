/* SPDX-License-Identifier: Apache-2.0 */
/* Two processes that calculate and exchange, iteration by iteration, in the four orders of Strumpen94. */
#include "tool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DATA = 1, SIGNAL = 2 };

typedef enum variant { PING_PONG, SIMULTANEOUS, BOUNDARY_FIRST, HIDING, VARIANTS } variant;

static const char *const NAMES[VARIANTS] = {"ping_pong", "simultaneous", "boundary_first", "hiding"};

/* One end of the exchange. */
typedef struct side {
    const tool_options *asked;
    sluice_mover *mover;
    unsigned char *out, *in;
    bool is_far;
    sluice_mover_how pack, unpack;
    FILE *timeline; /* null: none */
    variant how;    /* of the iteration that is running */
    uint64_t iteration;
} side;

static void noted(const side *of, const char *row, int64_t begin_ns, int64_t end_ns)
{
    if (of->timeline != NULL)
        fprintf(of->timeline, "%s,%llu,%d,%s,%lld,%lld\n", NAMES[of->how],
                (unsigned long long)of->iteration, of->is_far, row, (long long)begin_ns,
                (long long)end_ns);
}

static void calculated(const side *of)
{
    const int64_t begin = now_ns();
    if (of->asked->spins)
        spin_us(of->asked->calculation_us);
    else
        sleep_us(of->asked->calculation_us);
    noted(of, "calculation", begin, now_ns());
}

static sluice_mover_ticket begun_send(const side *of)
{
    sluice_mover_ticket ticket;
    done(sluice_mover_send(of->mover, 0, DATA, of->out, of->asked->bytes, &of->pack, &ticket), "a send");
    return ticket;
}

static sluice_mover_ticket begun_receive(const side *of)
{
    sluice_mover_ticket ticket;
    done(sluice_mover_receive(of->mover, 0, DATA, of->in, of->asked->bytes, &of->unpack, &ticket),
         "a receive");
    return ticket;
}

static void waited(const side *of, sluice_mover_ticket ticket)
{
    sluice_mover_report report = {.size = sizeof report};
    done(sluice_mover_wait(of->mover, ticket, -1, &report), "a message");
    noted(of, report.is_send ? "send" : "receive", report.begin_ns, report.end_ns);
}

static void sent(const side *of)
{
    waited(of, begun_send(of));
}

static void received(const side *of)
{
    waited(of, begun_receive(of));
}

static void iterated(const side *of)
{
    sluice_mover_ticket in, out;
    switch (of->how) {
    case PING_PONG: /* one after the other */
        calculated(of);
        if (of->is_far) {
            received(of);
            sent(of);
        } else {
            sent(of);
            received(of);
        }
        break;
    case SIMULTANEOUS: /* I.1 */
        calculated(of);
        out = begun_send(of);
        received(of);
        waited(of, out);
        break;
    case BOUNDARY_FIRST: /* I.2: what is sent has to be with the system before the calculation goes on */
        sent(of);
        calculated(of);
        received(of);
        break;
    default: /* I.3 */
        in = begun_receive(of);
        out = begun_send(of);
        calculated(of);
        waited(of, out);
        waited(of, in);
    }
}

/* Both are here: an iteration begins for both at once. */
static void met(const side *of)
{
    sluice_mover_ticket in, out;
    char here = 1, there = 0;
    done(sluice_mover_receive(of->mover, 0, SIGNAL, &there, 1, NULL, &in), "meeting");
    done(sluice_mover_send(of->mover, 0, SIGNAL, &here, 1, NULL, &out), "meeting");
    done(sluice_mover_wait(of->mover, out, -1, NULL), "meeting");
    done(sluice_mover_wait(of->mover, in, -1, NULL), "meeting");
}

static bool is_wanted(const tool_options *asked, variant how)
{
    return strcmp(asked->what, "all") == 0 || strcmp(asked->what, NAMES[how]) == 0;
}

static void timed(side *of, variant how, uint64_t iteration)
{
    int64_t begin;
    of->how = how;
    of->iteration = iteration;
    begin = now_ns();
    iterated(of);
    noted(of, "iteration", begin, now_ns());
    if (!of->is_far && iteration > 0) /* the first is not counted */
        printf("%s,%llu,%.3f\n", NAMES[how], (unsigned long long)iteration - 1,
               (double)(now_ns() - begin) / 1e3);
}

static void ran(const tool_options *asked, int socket, bool is_far, FILE *timeline)
{
    side of = {.asked = asked, .is_far = is_far, .timeline = timeline};
    conversion packing, unpacking;
    uint32_t peer;
    pin_to(asked->cpus[is_far]);
    of.pack = converting(&packing, asked, true);
    of.unpack = converting(&unpacking, asked, false);
    of.mover = open_mover(asked, 1, asked->bytes);
    done(sluice_mover_add_peer(of.mover, socket, &peer), "a peer");
    of.out = malloc((size_t)asked->bytes + 1);
    of.in = malloc((size_t)asked->bytes + 1);
    if (of.out == NULL || of.in == NULL)
        refuse(TOOL_FAILED, "out of memory");
    memset(of.out, 1, (size_t)asked->bytes);
    memset(of.in, 0, (size_t)asked->bytes);
    if (asked->delay_us > 0.0) {
        /* Who is told late that both are here begins late: iterations follow each other as a solver's do. */
        for (variant how = PING_PONG; how < VARIANTS; how++) {
            if (!is_wanted(asked, how))
                continue;
            met(&of);
            for (uint64_t i = 0; i <= asked->repetitions; i++)
                timed(&of, how, i);
        }
    } else {
        /* The variants take turns, so that what disturbs the machine disturbs all of them. */
        for (uint64_t i = 0; i <= asked->repetitions; i++)
            for (variant how = PING_PONG; how < VARIANTS; how++) {
                if (!is_wanted(asked, how))
                    continue;
                met(&of);
                timed(&of, how, i);
            }
    }
    if (of.pack.pack == NULL && memcmp(of.in, of.out, (size_t)asked->bytes) != 0)
        refuse(TOOL_FAILED, "other bytes came than were sent");
    finish_mover(of.mover);
    free(of.out);
    free(of.in);
}

int run_exchange(const tool_options *asked)
{
    FILE *timeline = NULL;
    int ends[2], child;
    bool any = false;
    if (asked->what == NULL || asked->bytes == 0)
        refuse(TOOL_USAGE, "expected a variant and --bytes");
    for (variant how = PING_PONG; how < VARIANTS; how++)
        any = any || is_wanted(asked, how);
    if (!any)
        refuse(TOOL_USAGE, "expected all, ping_pong, simultaneous, boundary_first or hiding");
    if (asked->bytes > 1u << 30)
        refuse(TOOL_USAGE, "--bytes: expected at most 1 GiB");
    if (asked->output != NULL) {
        timeline = fopen(asked->output, "we");
        if (timeline == NULL)
            refuse(TOOL_FAILED, "%s: it cannot be written", asked->output);
        setvbuf(timeline, NULL, _IOLBF, 0); /* both processes write to it, line by line */
        fprintf(timeline, "variant,iteration,process,row,begin_ns,end_ns\n");
    }
    connect_pair(asked, ends);
    printf("# clock: CLOCK_MONOTONIC of one machine\n# calculation us: %g, %s\n"
           "variant,repetition,iteration_us\n",
           asked->calculation_us, asked->spins ? "on a processor" : "slept, as for another device");
    child = start_process();
    if (child == 0) {
        close(ends[0]);
        ran(asked, ends[1], true, timeline);
        exit(0);
    }
    close(ends[1]);
    ran(asked, ends[0], false, timeline);
    await_processes(&child, 1);
    if (timeline != NULL)
        fclose(timeline);
    return 0;
}
