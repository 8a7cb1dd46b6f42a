/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls that many programs make first, each of which could be taken for one that a library
 * makes in MPI_Init.
 */
#include "check.h"

int main(int argc, char **argv)
{
    int rank, size, sum = -1;
    MPI_Comm own;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    for (int round = 0; round < 20; round++) {
        MPI_Comm comm = round % 2 == 0 ? own : MPI_COMM_WORLD;
        int word = rank == 0 ? 4711 + round : -1, mine = rank + round;
        MPI_Bcast(&word, 1, MPI_INT, 0, comm);
        CHECK(word == 4711 + round, "round %d: the word is %d", round, word);
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
        CHECK(sum == size * (size - 1) / 2 + size * round, "round %d: the sum is %d", round, sum);
    }
    MPI_Comm_free(&own);
    MPI_Finalize();
    return 0;
}
