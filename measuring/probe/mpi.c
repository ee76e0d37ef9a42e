/* Messages over MPI, between two ranks of one machine: the first measures, the second replies.

   Compiled with PROBE_MPI by the compiler wrapper of the MPI that is to be measured, and not
   otherwise; started by its launcher. Nothing blocks: a send or a receive is begun once and tested
   until it is done, so that both directions always move. */
#include "probe.h"

#ifndef PROBE_MPI

typedef int there_is_no_mpi; /* ISO C has no empty source */

#else

#include <limits.h>
#include <mpi.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGE_TAG, STOP_TAG };

static MPI_Request sending = MPI_REQUEST_NULL, receiving = MPI_REQUEST_NULL;
static int peer;

/* The process of the other rank, by which its preemptions are seen. */
static int process_of_peer(void)
{
    char host[MPI_MAX_PROCESSOR_NAME] = "", other[MPI_MAX_PROCESSOR_NAME] = "";
    int length = 0, own = (int)getpid(), found = 0;
    MPI_Get_processor_name(host, &length);
    MPI_Sendrecv(host, sizeof host, MPI_CHAR, peer, 0, other, sizeof other, MPI_CHAR, peer, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&own, 1, MPI_INT, peer, 0, &found, 1, MPI_INT, peer, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    if (strcmp(host, other))
        refuse(PROBE_FAILED, "the ranks are on %s and %s: both have to be here", host, other);
    return found;
}

static int open_mpi(const struct options *asked, bool *is_replier)
{
    if (asked->max_bytes > INT_MAX)
        refuse(PROBE_USAGE, "messages of at most %d bytes", INT_MAX);
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int ranks = 0, rank = 0, length = 0;
    MPI_Init(NULL, NULL);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\n,")] = 0;
    if (ranks != 2)
        refuse(PROBE_FAILED, "ranks %d of %s", ranks, version);
    peer = 1 - rank;
    *is_replier = rank == 1;
    if (!*is_replier)
        fact("library", version);
    return process_of_peer();
}

static bool mpi_send_some(const unsigned char *message, size_t bytes)
{
    int is_done = 0;
    if (sending == MPI_REQUEST_NULL)
        MPI_Isend(message, (int)bytes, MPI_BYTE, peer, MESSAGE_TAG, MPI_COMM_WORLD, &sending);
    MPI_Test(&sending, &is_done, MPI_STATUS_IGNORE);
    return is_done;
}

static int mpi_receive_some(unsigned char *message, size_t bytes)
{
    int is_done = 0;
    MPI_Status status;
    if (receiving == MPI_REQUEST_NULL)
        MPI_Irecv(message, (int)bytes, MPI_BYTE, peer, MPI_ANY_TAG, MPI_COMM_WORLD, &receiving);
    MPI_Test(&receiving, &is_done, &status);
    if (!is_done)
        return 0;
    return status.MPI_TAG == STOP_TAG ? -1 : 1;
}

static void close_mpi(bool is_replier)
{
    if (!is_replier)
        MPI_Send(NULL, 0, MPI_BYTE, peer, STOP_TAG, MPI_COMM_WORLD);
    if (receiving != MPI_REQUEST_NULL) {
        MPI_Cancel(&receiving);
        MPI_Wait(&receiving, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
}

const struct library LIBRARY = {open_mpi, mpi_send_some, mpi_receive_some, close_mpi};

#endif
