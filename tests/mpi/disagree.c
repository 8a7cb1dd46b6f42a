/* SPDX-License-Identifier: Apache-2.0
 *
 * The last rank calls MPI_Allreduce with another count than the others: every rank gets an error.
 *
 *   disagree
 */
#include "check.h"

int main(int argc, char **argv)
{
    int rank, size, in[4] = {1, 1, 1, 1}, out[4] = {0};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int result = MPI_Allreduce(in, out, rank + 1 == size ? 3 : 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(result == MPI_ERR_OTHER, "the error is %d", result);
    MPI_Finalize();
    return 0;
}
