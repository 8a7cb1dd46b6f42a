/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks in a grid of two rows: sums over all, over rows and over columns in turn, each checked,
 * until a file appears. All that ranks wait in is what the tree takes.
 *
 *   grid FILE
 */
#include "check.h"

#include <unistd.h>

static void sum(MPI_Comm comm, int round)
{
    int rank, size, total = -1;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int mine = rank + round % 1000;
    MPI_Allreduce(&mine, &total, 1, MPI_INT, MPI_SUM, comm);
    CHECK(total == size * (size - 1) / 2 + size * (round % 1000), "round %d sums up to %d", round, total);
    MPI_Reduce(&mine, &total, 1, MPI_INT, MPI_MIN, size - 1, comm);
    CHECK(rank != size - 1 || total == round % 1000, "the least of round %d is %d", round, total);
    MPI_Barrier(comm);
}

int main(int argc, char **argv)
{
    MPI_Comm row, column;
    int rank, stop = 0;

    MPI_Init(&argc, &argv);
    CHECK(argc == 2, "usage: grid FILE");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &row);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &column);
    for (int round = 0; !stop; round++) {
        sum(MPI_COMM_WORLD, round);
        sum(row, round);
        sum(column, round);
        int seen = access(argv[1], F_OK) == 0;
        MPI_Allreduce(&seen, &stop, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    MPI_Comm_free(&row);
    MPI_Comm_free(&column);
    if (rank == 0)
        puts("all sums were right");
    MPI_Finalize();
    return 0;
}
