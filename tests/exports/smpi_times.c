/* Times of one message of each size on the command line, as SMPI simulates them.

   Prints "send BYTES SEND_S ISEND_S START_S" and "recv BYTES END_S"; the receive is posted before
   the message leaves. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void send(char *message, int bytes)
{
    double times_s[4];
    MPI_Request request;
    usleep(1000000); /* simulated: the receiver waits by then */
    times_s[0] = MPI_Wtime();
    MPI_Send(message, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    times_s[1] = MPI_Wtime();
    MPI_Barrier(MPI_COMM_WORLD);
    times_s[2] = MPI_Wtime();
    MPI_Isend(message, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
    times_s[3] = MPI_Wtime();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    printf("send %d %.17g %.17g %.17g\n", bytes, times_s[1] - times_s[0], times_s[3] - times_s[2],
           times_s[0]);
}

static void receive(char *message, int bytes)
{
    double end_s;
    MPI_Recv(message, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    end_s = MPI_Wtime();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Recv(message, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("recv %d %.17g\n", bytes, end_s);
}

int main(int count, char **words)
{
    int rank, at;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (at = 1; at < count; ++at) {
        int bytes = atoi(words[at]);
        char *message = calloc((size_t)bytes + 1, 1);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            send(message, bytes);
        else
            receive(message, bytes);
        free(message);
    }
    MPI_Finalize();
    return 0;
}
