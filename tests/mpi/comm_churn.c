/* SPDX-License-Identifier: Apache-2.0
 *
 * Communicators made and freed, with collectives on each: nothing may leak, and no new communicator
 * may be taken for one that is gone.
 *
 * Made in turn by MPI_Comm_dup, by MPI_Comm_split into halves, into odd and even, and into reversed
 * order. Up to KEPT of them live at a time, so that they are not freed in the order they were made
 * in.
 *
 * usage: comm_churn [communicators = 1000]
 *
 * Rank 0 prints one JSON line, in which growth is what its resident memory gained after the first
 * tenth.
 */
#include "check.h"

#include <unistd.h>

#define KEPT 7

static long resident_bytes(void)
{
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (file == NULL || fscanf(file, "%ld %ld", &pages, &resident) != 2)
        resident = 0;
    if (file != NULL)
        fclose(file);
    return resident * sysconf(_SC_PAGESIZE);
}

static MPI_Comm make(long number, int rank, int size)
{
    MPI_Comm made;

    switch (number % 4) {
    case 0:
        MPI_Comm_dup(MPI_COMM_WORLD, &made);
        break;
    case 1:
        MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, rank, &made);
        break;
    case 2:
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &made);
        break;
    default:
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &made);
        break;
    }
    return made;
}

static void use(MPI_Comm comm, long number)
{
    int rank, size, world_rank;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    long mine[3] = {rank + 1, number, world_rank}, sum[3] = {0}, all = 0, root = (number * 7) % size;
    MPI_Allreduce(mine, sum, 3, MPI_LONG, MPI_SUM, comm);
    CHECK(sum[0] == (long)size * (size + 1) / 2, "communicator %ld: the ranks sum up to %ld", number, sum[0]);
    CHECK(sum[1] == size * number, "communicator %ld: its numbers sum up to %ld", number, sum[1]);
    MPI_Reduce(&mine[0], &all, 1, MPI_LONG, MPI_MAX, (int)root, comm);
    CHECK(rank != root || all == size, "communicator %ld: the largest rank is %ld", number, all - 1);
    MPI_Barrier(comm);
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Comm kept[KEPT];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long total = argument(argc, argv, 1, 1000), early = 0;
    CHECK(total > 0, "the number of communicators must be positive");
    for (int i = 0; i < KEPT; i++)
        kept[i] = MPI_COMM_NULL;
    double start = MPI_Wtime();
    for (long number = 0; number < total; number++) {
        MPI_Comm *slot = &kept[(number * 3) % KEPT];
        if (*slot != MPI_COMM_NULL)
            MPI_Comm_free(slot);
        *slot = make(number, rank, size);
        use(*slot, number);
        if (number == total / 10)
            early = resident_bytes();
    }
    double seconds = MPI_Wtime() - start;
    for (int i = 0; i < KEPT; i++)
        if (kept[i] != MPI_COMM_NULL)
            MPI_Comm_free(&kept[i]);
    if (rank == 0)
        printf("{\"test\": \"comm_churn\", \"ranks\": %d, \"communicators\": %ld, \"seconds\": %.3f, \"per_second\": %.1f, "
               "\"resident_bytes\": %ld, \"growth_bytes\": %ld}\n",
               size, total, seconds, (double)total / seconds, resident_bytes(), resident_bytes() - early);
    MPI_Finalize();
    return 0;
}
