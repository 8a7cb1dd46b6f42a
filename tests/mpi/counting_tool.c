/* SPDX-License-Identifier: Apache-2.0
 *
 * A tool as profilers are, which is preloaded beside libtrib_mpi.so: it counts some calls, hands
 * them on to the MPI, and tells in MPI_Finalize how many there were. Its MPI_Init has another name
 * in PMPI_, as Darshan's has. With TOOL_THREADS it asks for threads in the place of the program, by
 * the name that others before it see.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int initialisations, allreduces, gathers, copies;

/* The function that has this name behind the tool: the MPI's. */
static void *behind(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

int MPI_Init(int *argc, char ***argv)
{
    int provided;

    initialisations++;
    if (getenv("TOOL_THREADS") != NULL)
        return MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
    return ((int (*)(int *, char ***))behind("PMPI_Init"))(argc, argv);
}

int PMPI_Init(int *argc, char ***argv) __attribute__((alias("MPI_Init")));

int MPI_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    allreduces++;
    return PMPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm);
}

int MPI_Gatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    gathers++;
    return PMPI_Gatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *newcomm)
{
    copies++;
    return PMPI_Comm_dup(comm, newcomm);
}

int MPI_Finalize(void)
{
    fprintf(stderr, "tool: %d initialisations, %d allreduces, %d gathers, %d copies\n", initialisations, allreduces, gathers, copies);
    return PMPI_Finalize();
}
