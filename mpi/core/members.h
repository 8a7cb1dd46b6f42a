/* SPDX-License-Identifier: Apache-2.0
 *
 * The members of a communicator as ranks of MPI_COMM_WORLD.
 */
#ifndef TRIB_MPI_MEMBERS_H
#define TRIB_MPI_MEMBERS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* Questions whose answers are local, take no memory from the heap, and are the same on all
 * members. */

/* Whether all members of comm are in world. Processes that were spawned or connected later are
 * not. */
bool members_are_in(MPI_Comm comm, MPI_Comm world);
/* Whether all members of comm, which must be in world, are on one host. */
bool members_share_host(MPI_Comm comm, MPI_Comm world);

/* Returns the ranks in world of comm's members, all of which must be there, in their order; the
 * caller frees the list. Returns NULL when memory is short. */
uint32_t *members_read(MPI_Comm comm, MPI_Comm world);

/* How the members of a communicator lie on hosts. */
struct spread {
    uint32_t hosts;
    bool in_blocks; /* those of each host are neighbours in rank */
};

/* How the members of comm, all of which must be in world, do. A program without memory for the list
 * is ended. */
struct spread members_spread(MPI_Comm comm, MPI_Comm world);

#endif
