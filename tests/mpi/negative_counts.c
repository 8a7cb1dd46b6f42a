/* SPDX-License-Identifier: Apache-2.0
 *
 * A negative length among those of all ranks in a reduce_scatter: the error is the MPI's to return.
 */
#include "check.h"

int main(int argc, char **argv)
{
    int size, class = MPI_SUCCESS, given[4] = {1, 2, 3, 4}, got[8] = {0};

    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(size == 2, "%d ranks instead of 2", size);
    int counts[2] = {4, -1};

    MPI_Error_class(MPI_Reduce_scatter(given, got, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD), &class);
    CHECK(class == MPI_ERR_COUNT, "a reduce_scatter gives an error of class %d", class);
    MPI_Finalize();
    return 0;
}
