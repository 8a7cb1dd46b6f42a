/* SPDX-License-Identifier: Apache-2.0
 *
 * A Fortran library that a program loads for itself, as Python's ctypes does, without a Fortran
 * compiler. Its subroutines end with calls of MPI, which compilers make jumps of: then the MPI is
 * called from the program, which is not linked with it. With PROGRAM it is such a program.
 *
 *   local_solver LIBRARY
 */
#ifdef PROGRAM

#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int error = -1;

    if (library == NULL) {
        fprintf(stderr, "local_solver: %s\n", dlerror());
        return 1;
    }
    ((void (*)(int *))dlsym(library, "solver_start_"))(&error);
    if (error == 0)
        ((void (*)(int *))dlsym(library, "solver_end_"))(&error);
    return error;
}

#else

void mpi_init_(int *error);
void mpi_finalize_(int *error);
void solver_start_(int *error);
void solver_end_(int *error);

void solver_start_(int *error)
{
    mpi_init_(error);
}

void solver_end_(int *error)
{
    mpi_finalize_(error);
}

#endif
