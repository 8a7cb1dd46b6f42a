/* SPDX-License-Identifier: Apache-2.0
 *
 * Four ranks, the first and the last two of them on a host each, as the test says with TRIB_HOST:
 * ten rounds of every wrapped collective on communicators within a host, across hosts, and on all.
 *
 *   two_hosts
 */
#include "check.h"

#define ROUNDS 10

static void use(MPI_Comm comm)
{
    int rank, size, sum, least;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int round = 0; round < ROUNDS; round++) {
        int mine = rank + round;
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
        CHECK(sum == size * (size - 1) / 2 + size * round, "round %d sums up to %d", round, sum);
        MPI_Reduce(&mine, &least, 1, MPI_INT, MPI_MIN, 0, comm);
        CHECK(rank != 0 || least == round, "the least of round %d is %d", round, least);
        MPI_Barrier(comm);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm within, across, twin;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, 0, &within);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &across);
    MPI_Comm_dup(within, &twin);
    use(MPI_COMM_WORLD);
    use(within);
    use(across);
    use(twin);
    use(MPI_COMM_WORLD);
    MPI_Comm_free(&within);
    MPI_Comm_free(&twin);
    MPI_Finalize(); /* which frees across */
    return 0;
}
