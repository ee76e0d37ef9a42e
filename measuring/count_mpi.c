/* One MPI_Send and one MPI_Recv at a time, for callgrind to count.
 *
 *     count_mpi WARM_UP REPETITIONS BYTES...
 *
 * Two ranks. Counts are those of PMPI_Send and PMPI_Recv (--toggle-collect), written out after each
 * call under the label "source BYTES REPETITION" or "destination BYTES REPETITION". The receiver
 * waits first, so that its message is there already and no waiting is counted. A size whose send
 * waits for its receive is said, "rendezvous BYTES", and left out.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

enum { ARRIVAL_US = 1000, MAX_POLLS = 100, TAG = 1, LABEL_LENGTH = 64 };

static void dump(const char *end, int bytes, int repetition)
{
    char label[LABEL_LENGTH];
    snprintf(label, sizeof label, "%s %d %d", end, bytes, repetition);
    CALLGRIND_DUMP_STATS_AT(label);
}

static void send_one(char *buffer, int bytes, int repetition)
{
    if (repetition >= 0)
        CALLGRIND_ZERO_STATS;
    MPI_Send(buffer, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
    if (repetition >= 0)
        dump("source", bytes, repetition);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void receive_one(char *buffer, int bytes, int repetition)
{
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(ARRIVAL_US);
    if (repetition >= 0)
        CALLGRIND_ZERO_STATS;
    MPI_Recv(buffer, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (repetition >= 0)
        dump("destination", bytes, repetition);
}

/* Whether a send of this size ends before its receive has begun. */
static int is_eager(int rank, char *buffer, int bytes)
{
    int ended = 0;
    if (rank == 0) {
        MPI_Request request;
        MPI_Isend(buffer, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request);
        for (int polls = 0; !ended && polls < MAX_POLLS; polls++) {
            MPI_Test(&request, &ended, MPI_STATUS_IGNORE);
            usleep(ended ? 0 : ARRIVAL_US);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (!ended)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Recv(buffer, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Bcast(&ended, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return ended;
}

int main(int argc, char **argv)
{
    int rank = 0, ranks = 0, length = 0, largest = 1;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Get_library_version(version, &length);
    if (rank == 0) {
        printf("ranks %d\nversion %s\n", ranks, version);
        fflush(stdout);
    }
    if (ranks != 2 || argc < 4) {
        MPI_Finalize();
        return 0;
    }
    const int warm_up = atoi(argv[1]), repetitions = atoi(argv[2]);
    for (int i = 3; i < argc; i++)
        if (atoi(argv[i]) > largest)
            largest = atoi(argv[i]);
    char *buffer = calloc(1, (size_t)largest);
    if (buffer == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 3; i < argc; i++) {
        if (!is_eager(rank, buffer, atoi(argv[i]))) {
            if (rank == 0) {
                printf("rendezvous %d\n", atoi(argv[i]));
                fflush(stdout);
            }
            continue;
        }
        for (int done = -warm_up; done < repetitions; done++) {
            if (rank == 0)
                send_one(buffer, atoi(argv[i]), done);
            else
                receive_one(buffer, atoi(argv[i]), done);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    free(buffer);
    MPI_Finalize();
    return 0;
}
