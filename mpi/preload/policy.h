/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens at each wrapped call. The generated shims call these functions.
 */
#ifndef TRIB_MPI_POLICY_H
#define TRIB_MPI_POLICY_H

#include "collective.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* Lifecycle: these carry out the whole call. */
int policy_init(int *argc, char ***argv);
int policy_init_thread(int *argc, char ***argv, int required, int *provided);
int policy_finalize(void);
int policy_abort(MPI_Comm comm, int errorcode);

/* Constructors: result is what the MPI returned, and newcomm what it made; returns result. */
int policy_constructed(int result, const MPI_Comm *newcomm);

/* Collectives: true when the call was done here, and *result is what it returns; false when it is
 * the MPI's. which is the function called: that for large counts differs in its name alone, but
 * where there are arrays of counts. */
bool policy_allreduce(enum collective which, const void *sendbuf, void *recvbuf, int64_t count, MPI_Datatype datatype, MPI_Op op,
                      MPI_Comm comm, int *result);
bool policy_reduce(enum collective which, const void *sendbuf, void *recvbuf, int64_t count, MPI_Datatype datatype, MPI_Op op,
                   int root, MPI_Comm comm, int *result);
bool policy_barrier(enum collective which, MPI_Comm comm, int *result);
bool policy_bcast(enum collective which, void *buffer, int64_t count, MPI_Datatype datatype, int root, MPI_Comm comm, int *result);
bool policy_allgather(enum collective which, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, void *recvbuf,
                      int64_t recvcount, MPI_Datatype recvtype, MPI_Comm comm, int *result);
bool policy_reduce_scatter_block(enum collective which, const void *sendbuf, void *recvbuf, int64_t recvcount,
                                 MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, int *result);

bool policy_gather(enum collective which, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, void *recvbuf,
                   int64_t recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, int *result);
bool policy_scatter(enum collective which, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, void *recvbuf,
                    int64_t recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, int *result);
bool policy_alltoall(enum collective which, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, void *recvbuf,
                     int64_t recvcount, MPI_Datatype recvtype, MPI_Comm comm, int *result);
bool policy_allgatherv(enum collective which, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, void *recvbuf,
                       const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm, int *result);
bool policy_reduce_scatter(enum collective which, const void *sendbuf, void *recvbuf, const int recvcounts[],
                           MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, int *result);
bool policy_allgatherv_c(enum collective which, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, void *recvbuf,
                         const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm, int *result);
bool policy_reduce_scatter_c(enum collective which, const void *sendbuf, void *recvbuf, const MPI_Count recvcounts[],
                             MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, int *result);
bool policy_scan(enum collective which, const void *sendbuf, void *recvbuf, int64_t count, MPI_Datatype datatype, MPI_Op op,
                 MPI_Comm comm, int *result);
bool policy_exscan(enum collective which, const void *sendbuf, void *recvbuf, int64_t count, MPI_Datatype datatype,
                   MPI_Op op, MPI_Comm comm, int *result);

/* Notes that the MPI is about to do a collective that the tree does not take. */
void policy_counted(enum collective collective);

#endif
