/* SPDX-License-Identifier: Apache-2.0
 *
 * What the object code of a Fortran program does, without a Fortran compiler: it initialises MPI,
 * sums, and ends. With finalize or abort only the end is Fortran's, and all before it is C's.
 *
 *   fortran_init init|init_thread|finalize|abort
 */
#include "check.h"

#include <string.h>

void mpi_init_(MPI_Fint *error);
void mpi_init_thread_(const MPI_Fint *required, MPI_Fint *provided, MPI_Fint *error);
void mpi_allreduce_(void *input, void *output, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op, MPI_Fint *comm, MPI_Fint *error);
void mpi_finalize_(MPI_Fint *error);
void mpi_abort_(const MPI_Fint *comm, const MPI_Fint *code, MPI_Fint *error);

int main(int argc, char **argv)
{
    MPI_Fint error = -1, required = MPI_THREAD_SERIALIZED, provided = -1, count = 1, code = 7;
    const char *how = argc == 2 ? argv[1] : "init";
    int aborts = strcmp(how, "abort") == 0, is_of_c = aborts || strcmp(how, "finalize") == 0;

    if (is_of_c)
        error = MPI_Init(&argc, &argv);
    else if (strcmp(how, "init_thread") == 0)
        mpi_init_thread_(&required, &provided, &error);
    else
        mpi_init_(&error);
    CHECK(error == MPI_SUCCESS, "the initialisation gave %d", error);
    MPI_Fint comm = MPI_Comm_c2f(MPI_COMM_WORLD), type = MPI_Type_c2f(MPI_INT), op = MPI_Op_c2f(MPI_SUM);
    int rank, size, sum = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (is_of_c)
        error = MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    else
        mpi_allreduce_(&rank, &sum, &count, &type, &op, &comm, &error);
    CHECK(error == MPI_SUCCESS && sum == size * (size - 1) / 2, "the ranks sum up to %d", sum);
    if (aborts)
        mpi_abort_(&comm, &code, &error);
    mpi_finalize_(&error);
    return 0;
}
