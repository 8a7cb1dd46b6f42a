/* SPDX-License-Identifier: Apache-2.0
 *
 * Every decision about a wrapped call; the generated shims call these.
 */
#ifndef TRIB_MPI_POLICY_H
#define TRIB_MPI_POLICY_H

#include <mpi.h>
#include <stdbool.h>

/* Lifecycle: the whole call. */
int policy_init(int *argc, char ***argv);
int policy_init_thread(int *argc, char ***argv, int required, int *provided);
int policy_finalize(void);
int policy_abort(MPI_Comm comm, int errorcode);

/* Constructors: what the MPI returned and made; returns result. */
int policy_constructed(int result, const MPI_Comm *newcomm);

/* Collectives: true when it was done here and *result is what the call returns; false when the MPI is to do it. */
bool policy_allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                      int *result);
bool policy_reduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root,
                   MPI_Comm comm, int *result);
bool policy_barrier(MPI_Comm comm, int *result);

#endif
