/* SPDX-License-Identifier: Apache-2.0
 *
 * A collective on a copy of a communicator's handle after MPI_Comm_free, with MPI_ERRORS_RETURN:
 * the error is the MPI's to return. It needs an MPI whose handles are numbers, which knows a stale
 * one (MPICH).
 */
#include "check.h"

int main(int argc, char **argv)
{
    MPI_Comm comm, copy;
    int one = 1, sum = 0, class = MPI_SUCCESS;

    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    copy = comm;
    MPI_Comm_free(&comm);
    int code = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, copy);
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_COMM, "the call returns an error of class %d", class);
    MPI_Finalize();
    return 0;
}
