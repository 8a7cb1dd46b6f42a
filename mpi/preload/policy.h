/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens at each wrapped call. The generated shims call these functions.
 */
#ifndef TRIB_MPI_POLICY_H
#define TRIB_MPI_POLICY_H

#include "collective.h"

#include <mpi.h>
#include <stdbool.h>

/* Lifecycle: these carry out the whole call. */
int policy_init(int *argc, char ***argv);
int policy_init_thread(int *argc, char ***argv, int required, int *provided);
int policy_finalize(void);
int policy_abort(MPI_Comm comm, int errorcode);

/* Constructors: result is what the MPI returned, and newcomm what it made; returns result. */
int policy_constructed(int result, const MPI_Comm *newcomm);

/* Collectives: true when the call was done here, and *result is what it returns; false when it is
 * the MPI's. */
bool policy_allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                      int *result);
bool policy_reduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm,
                   int *result);
bool policy_barrier(MPI_Comm comm, int *result);
bool policy_bcast(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm, int *result);
bool policy_allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                      MPI_Datatype recvtype, MPI_Comm comm, int *result);
bool policy_reduce_scatter_block(const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op,
                                 MPI_Comm comm, int *result);

bool policy_gather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
                   int root, MPI_Comm comm, int *result);
bool policy_scatter(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
                    int root, MPI_Comm comm, int *result);
bool policy_alltoall(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                     MPI_Datatype recvtype, MPI_Comm comm, int *result);
bool policy_allgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                       const int displs[], MPI_Datatype recvtype, MPI_Comm comm, int *result);
bool policy_reduce_scatter(const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype datatype, MPI_Op op,
                           MPI_Comm comm, int *result);
bool policy_scan(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, int *result);
bool policy_exscan(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, int *result);

/* Notes that the MPI is about to do a collective that the tree does not take. */
void policy_counted(enum collective collective);

/* Says that the program has initialised MPI through Fortran, so that none of its calls passes our
 * stubs. */
void policy_tell_fortran(void);

#endif
