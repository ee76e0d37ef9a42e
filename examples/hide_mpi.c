/* SPDX-License-Identifier: Apache-2.0 */
/* Hiding over MPI: whether anything overlaps is decided by the size of the fragments.

   An MPI that moves bytes only inside its own calls sends a message above its eager limit when the program waits for it, behind
   the calculation, however early it was begun. Fragments below the limit leave at once. Their sizes come from a table by
   libsluice, and those of the table that are too long for the limit are cut again.

       mpicc -O2 -I clients/c/include examples/hide_mpi.c clients/c/src/(all).c -o hide_mpi
       mpirun -np 2 ./hide_mpi BYTES CALCULATION_US LIMIT [TABLE.slt [REPETITIONS]]

   LIMIT is the largest fragment that is sent at once: the eager limit less what the library's header takes of it
   (Open MPI over TCP: btl_tcp_eager_limit is 65536, and 65000 is safe). "-" for TABLE.slt: fragments of LIMIT.

   Prints the least time of an iteration, in which each of two ranks calculates (sleeps, as for another device), sends a
   message and receives one. A table of hidden cuts (sluice table --hidden) has the sizes that are best for this. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sluice.h"

enum { MAX_FRAGMENTS = 65536, TAG = 7 };

typedef struct exchange {
    char *out, *in;
    int other; /* rank */
    int sizes[MAX_FRAGMENTS];
    int fragments;
    double calculation_us;
    MPI_Request requests[2 * MAX_FRAGMENTS];
} exchange;

static void fail(const char *why)
{
    fprintf(stderr, "hide_mpi: %s\n", why);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

static void calculate(const exchange *of)
{
    const long us = (long)of->calculation_us;
    const struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    nanosleep(&time, NULL);
}

/* Fragments of the table, none longer than the limit. */
static void cut(exchange *of, const char *path, int bytes, int limit)
{
    sluice_table table;
    sluice_cut sizes;
    uint64_t size;
    int has_cut = 0, left = bytes;
    if (strcmp(path, "-") != 0) {
        const int code = sluice_table_open(&table, path);
        if (code != SLUICE_OK)
            fail(sluice_error_text(code));
        has_cut = sluice_cut_begin(&sizes, &table, (uint64_t)bytes) == SLUICE_OK;
    }
    for (of->fragments = 0; left > 0;) {
        int whole = left;
        if (has_cut && sluice_cut_next(&sizes, &size) == 1)
            whole = (int)size;
        left -= whole;
        /* Equal parts, since a short rest would cost as much as a whole fragment. */
        for (int parts = (whole - 1) / limit + 1; parts > 0; parts--) {
            if (of->fragments == MAX_FRAGMENTS)
                fail("too many fragments: a greater LIMIT is needed");
            of->sizes[of->fragments] = (whole - 1) / parts + 1;
            whole -= of->sizes[of->fragments++];
        }
    }
    if (strcmp(path, "-") != 0)
        sluice_table_close(&table);
}

/* All receives are posted before the first send: nothing has to be kept for later. */
static int begin(exchange *of, const int *sizes, int fragments)
{
    int at = 0, count = 0;
    for (int i = 0; i < fragments; at += sizes[i++])
        MPI_Irecv(of->in + at, sizes[i], MPI_BYTE, of->other, TAG, MPI_COMM_WORLD,
                  &of->requests[count++]);
    at = 0;
    for (int i = 0; i < fragments; at += sizes[i++])
        MPI_Isend(of->out + at, sizes[i], MPI_BYTE, of->other, TAG, MPI_COMM_WORLD,
                  &of->requests[count++]);
    return count;
}

/* The least of all times, in µs; the first iteration is not counted. */
static double measured(exchange *of, const int *sizes, int fragments, int is_hidden, int repetitions)
{
    double least = 1e30;
    for (int i = 0; i <= repetitions; i++) {
        double began;
        int count;
        MPI_Barrier(MPI_COMM_WORLD);
        began = MPI_Wtime();
        if (!is_hidden)
            calculate(of);
        count = begin(of, sizes, fragments);
        if (is_hidden)
            calculate(of);
        MPI_Waitall(count, of->requests, MPI_STATUSES_IGNORE);
        began = (MPI_Wtime() - began) * 1e6;
        if (i > 0 && began < least)
            least = began;
    }
    return least;
}

int main(int count, char **words)
{
    static exchange of;
    int rank, ranks, bytes, limit, repetitions;
    double before, whole, hidden;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    bytes = count > 3 ? atoi(words[1]) : 0;
    limit = count > 3 ? atoi(words[3]) : 0;
    repetitions = count > 5 ? atoi(words[5]) : 20;
    if (ranks != 2 || bytes < 1 || limit < 1 || repetitions < 1)
        fail("expected two ranks, and BYTES CALCULATION_US LIMIT [TABLE.slt [REPETITIONS]]");
    of.calculation_us = atof(words[2]);
    of.other = 1 - rank;
    of.out = malloc((size_t)bytes);
    of.in = calloc(1, (size_t)bytes);
    if (of.out == NULL || of.in == NULL)
        fail("out of memory");
    for (int i = 0; i < bytes; i++)
        of.out[i] = (char)(i * 31 + i / 251);
    cut(&of, count > 4 ? words[4] : "-", bytes, limit);

    before = measured(&of, &bytes, 1, 0, repetitions);
    whole = measured(&of, &bytes, 1, 1, repetitions);
    memset(of.in, 0, (size_t)bytes);
    hidden = measured(&of, of.sizes, of.fragments, 1, repetitions);
    if (memcmp(of.in, of.out, (size_t)bytes) != 0)
        fail("other bytes came than were sent");
    if (rank == 0)
        printf("not hidden               %10.1f us\n"
               "hidden, whole message    %10.1f us, gain %.3f\n"
               "hidden, %5d fragments  %10.1f us, gain %.3f\n",
               before, whole, before / whole, of.fragments, hidden, before / hidden);
    free(of.out);
    free(of.in);
    MPI_Finalize();
    return 0;
}
