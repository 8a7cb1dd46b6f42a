/* SPDX-License-Identifier: Apache-2.0
 *
 * For MPIs with the extension for programs that outlive failures: every collective of a
 * communicator that is revoked is an error, and other communicators go on.
 */
#include "check.h"

#include <mpi-ext.h>

int main(int argc, char **argv)
{
    int ranks, one = 1, sum = 0;
    MPI_Comm comm;

    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == ranks, "sum %d before", sum);
    MPIX_Comm_revoke(comm);
    int codes[] = {MPI_Barrier(comm), MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_Bcast(&one, 1, MPI_INT, 0, comm)};
    for (int i = 0; i < 3; i++) {
        int kind;
        MPI_Error_class(codes[i], &kind);
        CHECK(kind == MPIX_ERR_REVOKED, "collective %d returned error class %d", i, kind);
    }
    MPI_Comm_free(&comm);
    sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == ranks, "sum %d after", sum);
    MPI_Finalize();
    puts("all right");
    return 0;
}
