/* One collective of so many bytes, for tests that count the messages it becomes and check its data.
 *
 * bcast, reduce     plain bytes
 * types, itypes     a broadcast, blocking or not, whose ranks pass other counts and datatypes
 * ordered, iordered a reduction whose operation does not commute
 * iwide             a nonblocking broadcast of two elements
 *
 * Ends with 0 where the data are right, and else with MPI_Abort.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { WIDE = 40 };

/* x -> p x + q, one after the other: associative, and the order counts. */
static void compose(void *left, void *right, int *count, MPI_Datatype *type)
{
    unsigned char *a = left, *b = right;
    (void)type;
    for (int i = 0; i < 2 * *count; i += 2) {
        b[i + 1] = (unsigned char)(a[i] * b[i + 1] + a[i + 1]);
        b[i] = (unsigned char)(a[i] * b[i]);
    }
}

static int wait_for(MPI_Request *request)
{
    return MPI_Wait(request, MPI_STATUS_IGNORE) != MPI_SUCCESS;
}

static int broadcast(const char *mode, unsigned char *data, int bytes, int rank)
{
    int width = strcmp(mode, "iwide") == 0 ? bytes / 2 : rank > 0 ? WIDE : 4;
    MPI_Datatype type = MPI_BYTE;
    MPI_Request request;
    if (strcmp(mode, "bcast") == 0) width = 1;
    if (width > 1) MPI_Type_contiguous(width, MPI_BYTE, &type);
    if (width > 1) MPI_Type_commit(&type);
    if (mode[0] != 'i') return MPI_Bcast(data, bytes / width, type, 0, MPI_COMM_WORLD) != MPI_SUCCESS;
    MPI_Ibcast(data, bytes / width, type, 0, MPI_COMM_WORLD, &request);
    return wait_for(&request);
}

static int wrong_broadcast(const char *mode, int bytes, int rank)
{
    unsigned char *data = malloc((size_t)bytes);
    for (int i = 0; i < bytes; i++) data[i] = rank == 0 ? (unsigned char)(i % 251 + 1) : 0;
    int wrong = broadcast(mode, data, bytes, rank);
    for (int i = 0; i < bytes; i++) wrong |= data[i] != (unsigned char)(i % 251 + 1);
    return wrong;
}

static int wrong_reduction(int bytes, int rank)
{
    unsigned char *mine = malloc((size_t)bytes), *all = malloc((size_t)bytes);
    memset(mine, 1 << rank, (size_t)bytes);
    int wrong = MPI_Reduce(mine, all, bytes, MPI_BYTE, MPI_BOR, 0, MPI_COMM_WORLD) != MPI_SUCCESS;
    for (int i = 0; rank == 0 && i < bytes; i++) wrong |= all[i] != 3;
    return wrong;
}

static int wrong_order(const char *mode, int bytes, int rank, int ranks)
{
    unsigned char *mine = malloc((size_t)bytes), *all = malloc((size_t)bytes);
    int wrong, p = 1, q = 0, count = bytes / 2;
    MPI_Datatype pair;
    MPI_Op op;
    MPI_Request request;
    for (int i = 0; i < bytes; i++) mine[i] = (unsigned char)(i % 2 ? 7 + rank : 3 + 2 * rank);
    for (int i = 0; i < ranks; i++) {
        q = (p * (7 + i) + q) % 256;
        p = p * (3 + 2 * i) % 256;
    }
    MPI_Type_contiguous(2, MPI_BYTE, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(compose, 0, &op);
    if (mode[0] == 'i') {
        MPI_Ireduce(mine, all, count, pair, op, 0, MPI_COMM_WORLD, &request);
        wrong = wait_for(&request);
    } else {
        wrong = MPI_Reduce(mine, all, count, pair, op, 0, MPI_COMM_WORLD) != MPI_SUCCESS;
    }
    for (int i = 0; rank == 0 && i < 2 * count; i++) wrong |= all[i] != (i % 2 ? q : p);
    return wrong;
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);
    const char *mode = argv[1];
    int bytes = atoi(argv[2]);
    int wrong = strcmp(mode, "reduce") == 0  ? wrong_reduction(bytes, rank)
                : strstr(mode, "ordered")    ? wrong_order(mode, bytes, rank, ranks)
                                             : wrong_broadcast(mode, bytes, rank);
    if (wrong) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
    return 0;
}
