/* SPDX-License-Identifier: Apache-2.0
 *
 * As much of an MPI as a program needs that initialises and finalises it. It says what it is told
 * to (SAYS, ABI), so that libtrib_mpi.so meets MPIs that nobody can install here. With PROGRAM it
 * is such a program.
 */
int MPI_Init(int *argc, char ***argv);
int MPI_Finalize(void);

#ifdef PROGRAM

int main(int argc, char **argv)
{
    return MPI_Init(&argc, &argv) + MPI_Finalize();
}

#else

#include <string.h>

int PMPI_Init(int *argc, char ***argv);
int PMPI_Finalize(void);
int PMPI_Get_library_version(char *version, int *length);
int PMPI_Abi_get_version(int *major, int *minor);

int PMPI_Init(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    return 0;
}

int MPI_Init(int *argc, char ***argv)
{
    return PMPI_Init(argc, argv);
}

int PMPI_Finalize(void)
{
    return 0;
}

int MPI_Finalize(void)
{
    return PMPI_Finalize();
}

int PMPI_Get_library_version(char *version, int *length)
{
    strcpy(version, SAYS);
    *length = (int)strlen(version);
    return 0;
}

int PMPI_Abi_get_version(int *major, int *minor)
{
    *major = ABI;
    *minor = 0;
    return 0;
}

#endif
