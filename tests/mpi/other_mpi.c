/* SPDX-License-Identifier: Apache-2.0
 *
 * As much of an MPI as a program needs that initialises and finalises it. It says what it is told
 * to (SAYS, ABI), so that libtrib_mpi.so meets MPIs that nobody can install here. With NO_VERSION
 * it is as what stands in for an MPI in programs of one rank: no name in PMPI_. With PROGRAM it is
 * such a program, and with BARRIERS, too, one that tells how often objects were opened while it
 * called that many barriers of mpi_f08.
 */
int MPI_Init(int *argc, char ***argv);
int MPI_Finalize(void);
void mpi_barrier_f08_(const int *comm, int *error);

#ifdef PROGRAM

#ifdef BARRIERS

#include <stddef.h>
#include <stdio.h>

static int opened;

void *dlopen(const char *file, int mode);

void *dlopen(const char *file, int mode)
{
    (void)file, (void)mode;
    opened++;
    return NULL;
}

static void call_barriers(void)
{
    int comm = 0, error = 0;

    for (int i = 0; i < BARRIERS; i++)
        mpi_barrier_f08_(&comm, &error);
    printf("opened %d\n", opened);
}

#endif

int main(int argc, char **argv)
{
    int result = MPI_Init(&argc, &argv);

#ifdef BARRIERS
    call_barriers();
#endif
    return result + MPI_Finalize();
}

#elif defined(NO_VERSION)

int MPI_Init(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    return 0;
}

int MPI_Finalize(void)
{
    return 0;
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

void mpi_barrier_f08_(const int *comm, int *error)
{
    (void)comm;
    *error = 0;
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
