/* SPDX-License-Identifier: Apache-2.0
 *
 * What the object code of a Fortran program does, without a Fortran compiler: it initialises MPI,
 * sums, and ends.
 *
 *   fortran_init init|init_thread
 */
#include "check.h"

#include <string.h>

void mpi_init_(MPI_Fint *error);
void mpi_init_thread_(const MPI_Fint *required, MPI_Fint *provided, MPI_Fint *error);
void mpi_allreduce_(void *input, void *output, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op, MPI_Fint *comm, MPI_Fint *error);
void mpi_finalize_(MPI_Fint *error);

int main(int argc, char **argv)
{
    MPI_Fint error = -1, required = MPI_THREAD_SERIALIZED, provided = -1, count = 1;

    if (argc == 2 && strcmp(argv[1], "init_thread") == 0)
        mpi_init_thread_(&required, &provided, &error);
    else
        mpi_init_(&error);
    CHECK(error == MPI_SUCCESS, "the initialisation gave %d", error);
    MPI_Fint comm = MPI_Comm_c2f(MPI_COMM_WORLD), type = MPI_Type_c2f(MPI_INT), op = MPI_Op_c2f(MPI_SUM);
    int rank, size, sum = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    mpi_allreduce_(&rank, &sum, &count, &type, &op, &comm, &error);
    CHECK(error == MPI_SUCCESS && sum == size * (size - 1) / 2, "the ranks sum up to %d", sum);
    mpi_finalize_(&error);
    return 0;
}
