/* One broadcast or one reduction of so many bytes, for tests that count the messages it becomes. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    int rank, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc == 3) {
        int bytes = atoi(argv[2]);
        unsigned char *mine = malloc((size_t)bytes), *theirs = malloc((size_t)bytes);
        memset(mine, 1 << rank, (size_t)bytes);
        if (strcmp(argv[1], "bcast") == 0) {
            MPI_Bcast(mine, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
            for (int i = 0; i < bytes; i++) wrong |= mine[i] != 1;
        } else {
            MPI_Reduce(mine, theirs, bytes, MPI_BYTE, MPI_BOR, 0, MPI_COMM_WORLD);
            for (int i = 0; rank == 0 && i < bytes; i++) wrong |= theirs[i] != 3;
        }
    }
    MPI_Finalize();
    return wrong;
}
