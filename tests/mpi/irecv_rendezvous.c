/* SPDX-License-Identifier: Apache-2.0
 *
 * One rank waits in the MPI while the other waits in the tree.
 *
 * An even rank posts MPI_Irecv and goes into MPI_Allreduce; its odd neighbour first has to finish
 * an MPI_Send so long that the MPI moves no byte of it until the receiver takes part. If a rank
 * that waits in the tree does not progress the MPI, the two wait for each other for ever.
 *
 * usage: irecv_rendezvous [bytes = 4 MiB] [rounds = 10]
 *
 * Rank 0 prints one JSON line with the median time of its rounds.
 */
#include "check.h"

#include <string.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static unsigned char pattern(long round, int rank)
{
    return (unsigned char)(17 * round + rank + 1);
}

/* Returns after the neighbour's message has arrived (even) or has been sent (odd). */
static void exchange(unsigned char *message, long bytes, long round, int rank, int size)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int sum = 0, one = 1, receives = rank % 2 == 0 && rank + 1 < size;

    if (receives)
        MPI_Irecv(message, (int)bytes, MPI_BYTE, rank + 1, 7, MPI_COMM_WORLD, &request);
    if (rank % 2 == 1) {
        memset(message, pattern(round, rank), (size_t)bytes);
        MPI_Send(message, (int)bytes, MPI_BYTE, rank - 1, 7, MPI_COMM_WORLD);
    }
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size, "round %ld: the sum of ones is %d, not %d", round, sum, size);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (receives)
        for (long i = 0; i < bytes; i++)
            CHECK(message[i] == pattern(round, rank + 1), "round %ld: byte %ld of the message is wrong", round, i);
}

int main(int argc, char **argv)
{
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long bytes = argument(argc, argv, 1, 4 << 20), rounds = argument(argc, argv, 2, 10);
    CHECK(bytes > 0 && bytes < 1 << 30 && rounds > 0 && size > 1, "needs 2 ranks, 1 byte .. 1 GiB, and a round");
    unsigned char *message = malloc((size_t)bytes);
    double *seconds = malloc((size_t)rounds * sizeof *seconds);
    CHECK(message != NULL && seconds != NULL, "out of memory");
    for (long round = 0; round < rounds; round++) {
        double start = MPI_Wtime();
        exchange(message, bytes, round, rank, size);
        seconds[round] = MPI_Wtime() - start;
    }
    qsort(seconds, (size_t)rounds, sizeof *seconds, compare);
    if (rank == 0)
        printf("{\"test\": \"irecv_rendezvous\", \"ranks\": %d, \"bytes\": %ld, \"rounds\": %ld, \"median_ms\": %.3f, "
               "\"slowest_ms\": %.3f}\n",
               size, bytes, rounds, seconds[rounds / 2] * 1e3, seconds[rounds - 1] * 1e3);
    free(message);
    free(seconds);
    MPI_Finalize();
    return 0;
}
