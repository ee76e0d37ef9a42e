/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands of the tool share: options, processes that are connected, times, rows. */
#ifndef SLUICE_MOVER_TOOL_H
#define SLUICE_MOVER_TOOL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "sluice_mover.h"

enum { TOOL_USAGE = 2, TOOL_NOT_HERE = 3, TOOL_FAILED = 4, MAX_LIST = 64, MAX_PROCESSES = 16 };

typedef struct tool_options {
    const char *what;       /* of heat and exchange: the variant, or all */
    const char *between;    /* NEAR/FAR/ADDRESS: two network namespaces and the far one's IPv4 address */
    const char *table;      /* a table file that cuts messages */
    const char *output;     /* heat: the grid; exchange: the timeline */
    uint64_t sizes[MAX_LIST], counts[MAX_LIST]; /* calibrate: bytes, and numbers of fragments */
    int size_count, fragment_count;
    uint64_t bytes, fragment_bytes, repetitions, buffer_bytes, max_fragment_bytes;
    double calculation_us;  /* of each iteration of an exchange */
    bool spins;             /* it takes this processor instead of sleeping as for a device */
    double delay_us;        /* between the two, by a process that keeps bytes so long; 0: none */
    double pack_ns, unpack_ns;           /* what the program adds for each byte at both ends, */
    double pack_each_us, unpack_each_us; /* and for each fragment */
    int cpus[2];            /* of the two processes; -1: wherever the system puts them */
    uint64_t columns, rows, steps, processes;
    bool is_tcp;
} tool_options;

/* End with one line on standard error and this status. */
_Noreturn void refuse(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

int64_t now_ns(void);
void sleep_us(double us);
/* So much time of the processor, however often others have it meanwhile. */
void spin_us(double us);
/* Run on this CPU alone, with all threads to come; below 0 as it was. */
void pin_to(int cpu);

/* Two connected sockets: Unix, TCP by loopback, TCP between two namespaces, or TCP by way of a process that delays
   what it passes on, of which it has no more than the socket buffers asked for under way. */
void connect_pair(const tool_options *asked, int ends[2]);

/* A mover for `peers` of them, with the table and the limits that were asked for and room for whole messages. */
sluice_mover *open_mover(const tool_options *asked, uint32_t peers, uint64_t bytes);
/* Ends the program where the code is none of success. */
void done(int code, const char *what);
void finish_mover(sluice_mover *mover);

/* What the program adds to a fragment at one end, as pack and as unpack. */
typedef struct conversion {
    double ns_per_byte, us_each;
} conversion;
sluice_mover_how converting(conversion *by, const tool_options *asked, bool is_pack);

/* Start a process that ends with its parent; 0 in it. */
int start_process(void);
/* Wait for processes; ends the program where one failed. */
void await_processes(const int *processes, int count);

/* A connection that keeps each byte for a while: two sockets, of which this process copies either to the other until
   both have ended. `window`: bytes of a direction under way or not acknowledged, which takes as long again. */
_Noreturn void delay_between(const int sockets[2], double delay_us, uint64_t window);

int run_calibrate(const tool_options *asked);
int run_exchange(const tool_options *asked);
int run_heat(const tool_options *asked);
int run_primitives(const tool_options *asked);

#endif
