/* What one message or collective takes, for a setting to be compared with none.
 *
 *     trial_mpi US PROGRAM,PROGRAM... BYTES,BYTES...
 *
 * All ranks of MPI_COMM_WORLD, at least two. Of each program and size the first rank writes
 * "PROGRAM BYTES NS REPETITIONS": the least of as many repetitions as take US microseconds, at
 * least MIN_REPETITIONS: what other programs take away in between is not the setting's. A
 * repetition takes as long as on the rank where it takes longest, from the end of a barrier on; a
 * ping-pong is half a round trip between the first two. The first two of each are not counted, and
 * their results are compared with what they have to be: where one is wrong, on any rank,
 * REPETITIONS is 0.
 */
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_REPETITIONS = 8, MAX_REPETITIONS = 2000, FIRST = 2, TAG = 1 };

static int rank, ranks;

static void die(const char *reason)
{
    fprintf(stderr, "%s\n", reason);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

static void ping_pong(int *from, int *to, int count)
{
    if (rank == 0) {
        MPI_Send(from, count, MPI_INT, 1, TAG, MPI_COMM_WORLD);
        MPI_Recv(to, count, MPI_INT, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Recv(to, count, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(to, count, MPI_INT, 0, TAG, MPI_COMM_WORLD);
    }
}

static void bcast(int *from, int *to, int count)
{
    MPI_Bcast(rank == 0 ? from : to, count, MPI_INT, 0, MPI_COMM_WORLD);
}

static void reduce(int *from, int *to, int count)
{
    MPI_Reduce(from, to, count, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void allreduce(int *from, int *to, int count)
{
    MPI_Allreduce(from, to, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void ibcast(int *from, int *to, int count)
{
    MPI_Request request;
    MPI_Ibcast(rank == 0 ? from : to, count, MPI_INT, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void ireduce(int *from, int *to, int count)
{
    MPI_Request request;
    MPI_Ireduce(from, to, count, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void iallreduce(int *from, int *to, int count)
{
    MPI_Request request;
    MPI_Iallreduce(from, to, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

struct program {
    const char *name;
    void (*run)(int *from, int *to, int count);
    int is_sum;   /* the result is that of all ranks, else that of the first */
    int receives; /* ranks that have a result: all (0), all but the first (1), or the first (-1) */
};

static const struct program programs[] = {
    {"ping-pong", ping_pong, 0, 0}, {"bcast", bcast, 0, 1},     {"reduce", reduce, 1, -1},
    {"allreduce", allreduce, 1, 0}, {"ibcast", ibcast, 0, 1},   {"ireduce", ireduce, 1, -1},
    {"iallreduce", iallreduce, 1, 0},
};

/* One value of one rank's message; sums of up to 64 ranks stay below INT_MAX. */
static int value(int of_rank, int at)
{
    return (int)((unsigned)at * 2654435761u % 16777213u) + of_rank;
}

static int is_right(const struct program *one, const int *to, int count)
{
    int has_result = one->receives == 0 || (one->receives == 1) == (rank != 0);
    if (strcmp(one->name, "ping-pong") == 0)
        has_result = rank < 2;
    for (int at = 0; has_result && at < count; at++) {
        int wanted = value(0, at);
        for (int other = 1; one->is_sum && other < ranks; other++)
            wanted += value(other, at);
        if (to[at] != wanted)
            return 0;
    }
    return 1;
}

/* How long it took, and how long all of it did since `since_s`: on the rank where it took longest. */
struct times {
    double took_s, all_s;
};

static struct times timed(const struct program *one, int *from, int *to, int count, double since_s)
{
    double began_s, own[2], longest[2] = {0, 0};
    MPI_Barrier(MPI_COMM_WORLD);
    began_s = MPI_Wtime();
    one->run(from, to, count);
    own[0] = MPI_Wtime() - began_s;
    own[1] = MPI_Wtime() - since_s;
    if (strcmp(one->name, "ping-pong") == 0)
        own[0] = rank == 0 ? own[0] / 2 : 0;
    MPI_Allreduce(own, longest, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return (struct times){longest[0], longest[1]};
}

static void measure(const struct program *one, long bytes, double limit_s, int *from, int *to)
{
    int count = (int)(bytes / (long)sizeof(int)), done = 0, right = 1, all_right = 0;
    double since_s, spent_s = 0, min_s = 0;
    for (int at = 0; at < count; at++)
        from[at] = value(rank, at);
    for (int first = 0; first < FIRST; first++) {
        memset(to, 0xff, (size_t)count * sizeof(int));
        timed(one, from, to, count, 0);
        right = right && is_right(one, to, count);
    }
    MPI_Allreduce(&right, &all_right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    since_s = MPI_Wtime();
    /* All ranks have the same times, and so end together. */
    while (all_right && done < MAX_REPETITIONS && (done < MIN_REPETITIONS || spent_s < limit_s)) {
        struct times found = timed(one, from, to, count, since_s);
        min_s = done++ && min_s < found.took_s ? min_s : found.took_s;
        spent_s = found.all_s;
    }
    if (rank == 0) {
        printf("%s %ld %.1f %d\n", one->name, bytes, min_s * 1e9, done);
        fflush(stdout);
    }
}

static const struct program *named(const char *name)
{
    for (size_t at = 0; at < sizeof programs / sizeof *programs; at++)
        if (strcmp(programs[at].name, name) == 0)
            return &programs[at];
    die("there is no program of that name");
    return NULL;
}

static void measure_sizes(const struct program *one, const char *sizes, double limit_s)
{
    char *end = NULL;
    for (;; sizes = end + 1) {
        long bytes = strtol(sizes, &end, 10);
        int *from, *to;
        if (bytes < (long)sizeof(int) || bytes > INT_MAX || bytes % (long)sizeof(int))
            die("expected sizes in bytes, of whole integers");
        from = malloc((size_t)bytes);
        to = malloc((size_t)bytes);
        if (!from || !to)
            die("there is too little memory");
        measure(one, bytes, limit_s, from, to);
        free(from);
        free(to);
        if (*end != ',')
            return;
    }
}

int main(int argc, char **argv)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\n,")] = 0;
    if (argc != 4)
        die("expected microseconds, programs and sizes");
    if (rank == 0)
        printf("ranks %d of %s\n", ranks, version);
    if (ranks >= 2)
        for (char *name = strtok(argv[2], ","); name; name = strtok(NULL, ","))
            measure_sizes(named(name), argv[3], atof(argv[1]) / 1e6);
    MPI_Finalize();
    return 0;
}
