/* SPDX-License-Identifier: Apache-2.0 */
/* The heat equation of Strumpen94: an explicit stencil of five points on a grid that is split by columns, whose
   boundary columns are exchanged in each step; serial, and in five orders of calculating and exchanging.

   A column lies in one piece, so that what is sent is what is calculated. Every point is calculated by the same
   expression in all variants, without fused operations: the grids are the same, bit by bit. */
#include "tool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LEFT, RIGHT, SIDES };

static const char *const NAMES[] = {"serial",         "ping_pong", "simultaneous",
                                    "boundary_first", "hiding",    "streamed"};
enum { SERIAL, PING_PONG, SIMULTANEOUS, BOUNDARY_FIRST, HIDING, STREAMED, VARIANTS };

/* One process's columns, first ... last - 1, with a column of the neighbour's at either side. */
typedef struct strip {
    const tool_options *asked;
    int variant;
    double *now, *next; /* (last - first + 2) columns of `rows` points */
    uint64_t first, last;
    bool has[SIDES];
    uint32_t peers[SIDES];
    sluice_mover *mover;
    sluice_mover_ticket out[SIDES], in[SIDES];
    sluice_mover_ticket *pieces; /* of the streamed variant: sends and receives of a step */
    uint64_t piece_count, piece_room;
} strip;

static const double RX = 0.2, RY = 0.15;

static double initial(uint64_t column, uint64_t row)
{
    const uint64_t mixed = (column * 2654435761u + row * 40503u) % 1000003u;
    return (double)mixed / 1000003.0;
}

static double *column_of(const strip *of, double *grid, uint64_t column)
{
    return grid + (column + 1 - of->first) * of->asked->rows;
}

/* Points `from` ... `to` - 1 of a column; those of the grid's edge stay. */
static void calculated(const strip *of, uint64_t column, uint64_t from, uint64_t to)
{
    const uint64_t rows = of->asked->rows;
    const double *west = column_of(of, of->now, column - 1), *here = west + rows, *east = here + rows;
    double *made = column_of(of, of->next, column);
    if (column == 0 || column == of->asked->columns - 1) {
        memcpy(made + from, column_of(of, of->now, column) + from, (to - from) * sizeof *made);
        return;
    }
    for (uint64_t row = from; row < to; row++) {
        if (row == 0 || row == rows - 1)
            made[row] = here[row];
        else
            made[row] = RX * west[row] + RX * east[row] + (1.0 - 2.0 * RX - 2.0 * RY) * here[row] +
                        RY * here[row + 1] + RY * here[row - 1];
    }
}

static void calculated_columns(const strip *of, uint64_t from, uint64_t to)
{
    for (uint64_t column = from; column < to; column++)
        calculated(of, column, 0, of->asked->rows);
}

/* --- exchanging ------------------------------------------------------------------------------- */

static uint64_t boundary(const strip *of, int side)
{
    return side == LEFT ? of->first : of->last - 1;
}

static double *halo(const strip *of, int side)
{
    return column_of(of, of->next, side == LEFT ? of->first - 1 : of->last);
}

static uint64_t column_bytes(const strip *of)
{
    return of->asked->rows * sizeof(double);
}

static void post_receive(strip *of, int side)
{
    if (of->has[side])
        done(sluice_mover_receive(of->mover, of->peers[side], 0, halo(of, side), column_bytes(of),
                                  NULL, &of->in[side]),
             "a receive");
}

static void post_send(strip *of, int side)
{
    if (of->has[side])
        done(sluice_mover_send(of->mover, of->peers[side], 0,
                               column_of(of, of->next, boundary(of, side)), column_bytes(of), NULL,
                               &of->out[side]),
             "a send");
}

static void wait_for(strip *of, sluice_mover_ticket *tickets)
{
    for (int side = 0; side < SIDES; side++)
        if (of->has[side])
            done(sluice_mover_wait(of->mover, tickets[side], -1, NULL), "a message");
}

static void send_and_wait(strip *of, int side)
{
    post_send(of, side);
    if (of->has[side])
        done(sluice_mover_wait(of->mover, of->out[side], -1, NULL), "a message");
}

static void receive_and_wait(strip *of, int side)
{
    post_receive(of, side);
    if (of->has[side])
        done(sluice_mover_wait(of->mover, of->in[side], -1, NULL), "a message");
}

/* One message at a time on each way: even processes speak first. */
static void ping_pong(strip *of, uint64_t rank)
{
    for (int turn = 0; turn < SIDES; turn++) {
        const int side = rank % 2 == 0 ? RIGHT - turn : turn;
        if (rank % 2 == 0) {
            send_and_wait(of, side);
            receive_and_wait(of, side);
        } else {
            receive_and_wait(of, side);
            send_and_wait(of, side);
        }
    }
}

static void boundaries(const strip *of)
{
    calculated_columns(of, of->first, of->first + 1);
    if (of->last - 1 > of->first)
        calculated_columns(of, of->last - 1, of->last);
}

static void interior(const strip *of)
{
    calculated_columns(of, of->first + 1, of->last - 1 > of->first ? of->last - 1 : of->first + 1);
}

/* Fragments of the boundary leave while the next ones are calculated; each is a message of its own. */
static void stream_pieces(strip *of, bool are_sends)
{
    const uint64_t rows = of->asked->rows;
    uint64_t piece = (of->asked->fragment_bytes > 0 ? of->asked->fragment_bytes : 4096) / 8;
    piece = piece > 0 ? piece : 1;
    for (uint64_t from = 0; from < rows; from += piece) {
        const uint64_t to = from + piece < rows ? from + piece : rows;
        const uint64_t bytes = (to - from) * sizeof(double);
        for (int side = 0; side < SIDES; side++) {
            sluice_mover_ticket *ticket = &of->pieces[of->piece_count];
            if (are_sends && (side == LEFT || boundary(of, LEFT) != boundary(of, RIGHT)))
                calculated(of, boundary(of, side), from, to);
            if (!of->has[side])
                continue;
            of->piece_count++;
            if (are_sends)
                done(sluice_mover_send(of->mover, of->peers[side], 0,
                                       column_of(of, of->next, boundary(of, side)) + from, bytes,
                                       NULL, ticket),
                     "a fragment");
            else
                done(sluice_mover_receive(of->mover, of->peers[side], 0, halo(of, side) + from,
                                          bytes, NULL, ticket),
                     "a fragment");
        }
    }
}

static void stepped(strip *of, uint64_t rank)
{
    switch (of->variant) {
    case SERIAL:
        calculated_columns(of, of->first, of->last);
        break;
    case PING_PONG:
        calculated_columns(of, of->first, of->last);
        ping_pong(of, rank);
        break;
    case SIMULTANEOUS:
        calculated_columns(of, of->first, of->last);
        for (int side = 0; side < SIDES; side++)
            post_send(of, side);
        for (int side = 0; side < SIDES; side++)
            receive_and_wait(of, side);
        wait_for(of, of->out);
        break;
    case BOUNDARY_FIRST:
        boundaries(of);
        for (int side = 0; side < SIDES; side++)
            send_and_wait(of, side);
        interior(of);
        for (int side = 0; side < SIDES; side++)
            receive_and_wait(of, side);
        break;
    case HIDING:
        boundaries(of);
        for (int side = 0; side < SIDES; side++) {
            post_receive(of, side);
            post_send(of, side);
        }
        interior(of);
        wait_for(of, of->out);
        wait_for(of, of->in);
        break;
    default:
        of->piece_count = 0;
        stream_pieces(of, false);
        stream_pieces(of, true);
        interior(of);
        for (uint64_t i = 0; i < of->piece_count; i++)
            done(sluice_mover_wait(of->mover, of->pieces[i], -1, NULL), "a fragment");
    }
    double *before = of->now;
    of->now = of->next;
    of->next = before;
}

/* --- processes -------------------------------------------------------------------------------- */

static void prepared(strip *of)
{
    const uint64_t columns = of->last - of->first + 2, rows = of->asked->rows;
    of->now = calloc(columns * rows, sizeof(double));
    of->next = calloc(columns * rows, sizeof(double));
    of->piece_room = 4 * (rows + 1);
    of->pieces = calloc(of->piece_room, sizeof *of->pieces);
    if (of->now == NULL || of->next == NULL || of->pieces == NULL)
        refuse(TOOL_FAILED, "out of memory");
    for (uint64_t column = of->first > 0 ? of->first - 1 : 0;
         column <= of->last && column < of->asked->columns; column++)
        for (uint64_t row = 0; row < rows; row++)
            column_of(of, of->now, column)[row] = initial(column, row);
}

/* All steps of one process; its columns go into the whole grid, its times into `times`. */
static void solved(strip *of, uint64_t rank, double *grid, double *times)
{
    for (uint64_t step = 0; step < of->asked->steps; step++) {
        const int64_t begin = now_ns();
        stepped(of, rank);
        times[step] = (double)(now_ns() - begin) / 1e3;
    }
    memcpy(grid + of->first * of->asked->rows, column_of(of, of->now, of->first),
           (of->last - of->first) * column_bytes(of));
    free(of->now);
    free(of->next);
    free(of->pieces);
}

static void one_process(const tool_options *asked, int variant, uint64_t rank, int (*links)[2],
                        double *grid, double *times)
{
    const uint64_t n = variant == SERIAL ? 1 : asked->processes;
    strip of = {.asked = asked, .variant = variant, .first = asked->columns * rank / n,
                .last = asked->columns * (rank + 1) / n};
    if (variant != SERIAL) {
        of.mover = open_mover(asked, 2, column_bytes(&of));
        for (int side = 0; side < SIDES; side++) {
            of.has[side] = side == LEFT ? rank > 0 : rank + 1 < n;
            if (of.has[side])
                done(sluice_mover_add_peer(of.mover, side == LEFT ? links[rank - 1][1] : links[rank][0],
                                           &of.peers[side]),
                     "a peer");
        }
    }
    prepared(&of);
    solved(&of, rank, grid, times);
    if (variant != SERIAL)
        finish_mover(of.mover);
}

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static void *shared(uint64_t bytes)
{
    void *made = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED)
        refuse(TOOL_FAILED, "out of memory");
    return made;
}

/* FNV-1a over the grid's bytes. */
static uint64_t hash_of(const double *grid, uint64_t count)
{
    const unsigned char *bytes = (const unsigned char *)grid;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint64_t i = 0; i < count * sizeof *grid; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static void one_variant(const tool_options *asked, int variant, double *grid, double *times)
{
    const uint64_t n = variant == SERIAL ? 1 : asked->processes;
    int links[MAX_PROCESSES][2], children[MAX_PROCESSES];
    for (uint64_t i = 0; i + 1 < n; i++)
        connect_pair(asked, links[i]);
    for (uint64_t rank = 0; rank < n; rank++) {
        children[rank] = start_process();
        if (children[rank] > 0)
            continue;
        for (uint64_t i = 0; i + 1 < n; i++) { /* what is not its own would keep links open */
            if (i != rank)
                close(links[i][0]);
            if (i + 1 != rank)
                close(links[i][1]);
        }
        one_process(asked, variant, rank, links, grid, times + rank * asked->steps);
        exit(0);
    }
    for (uint64_t i = 0; i + 1 < n; i++) {
        close(links[i][0]);
        close(links[i][1]);
    }
    await_processes(children, (int)n);
    qsort(times, asked->steps, sizeof *times, by_value);
    printf("%s,%llu,%.3f,%.3f,%016llx\n", NAMES[variant], (unsigned long long)n, times[0],
           times[asked->steps / 2],
           (unsigned long long)hash_of(grid, asked->columns * asked->rows));
}

int run_heat(const tool_options *asked)
{
    const uint64_t points = asked->columns * asked->rows;
    double *grid, *times;
    bool any = false;
    if (asked->what == NULL)
        refuse(TOOL_USAGE, "expected a variant, or all");
    if (asked->processes < 1 || asked->columns < asked->processes || asked->rows < 1 ||
        asked->steps < 1 || points > UINT64_C(1) << 30)
        refuse(TOOL_USAGE, "expected a process or more, a column for each, a row, a step, and at most "
                           "2^30 points");
    grid = shared(points * sizeof *grid);
    times = shared(MAX_PROCESSES * asked->steps * sizeof *times);
    printf("variant,processes,min_step_us,median_step_us,grid\n");
    for (int variant = 0; variant < VARIANTS; variant++) {
        if (strcmp(asked->what, "all") != 0 && strcmp(asked->what, NAMES[variant]) != 0)
            continue;
        any = true;
        memset(grid, 0, points * sizeof *grid);
        one_variant(asked, variant, grid, times);
    }
    if (!any)
        refuse(TOOL_USAGE, "expected all, serial, ping_pong, simultaneous, boundary_first, hiding or "
                           "streamed");
    if (asked->output != NULL) {
        FILE *file = fopen(asked->output, "we");
        if (file == NULL || fwrite(grid, sizeof *grid, points, file) != points || fclose(file) != 0)
            refuse(TOOL_FAILED, "%s: it cannot be written", asked->output);
    }
    return 0;
}
