/* SPDX-License-Identifier: Apache-2.0
 *
 * One sum over all ranks, which `fortran_init` takes part in when it is the other application of
 * the program.
 */
#include "check.h"

int main(int argc, char **argv)
{
    int rank, size, sum = -1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size * (size - 1) / 2, "the ranks sum up to %d", sum);
    MPI_Finalize();
    return 0;
}
