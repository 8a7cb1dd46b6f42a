/* SPDX-License-Identifier: Apache-2.0
 *
 * The world ranks of a communicator's members. Most communicators are an arithmetic sequence of
 * world ranks (all of them, a block, every second one, reversed), which takes two numbers however
 * many members there are.
 */
#ifndef TRIB_MPI_MEMBERS_H
#define TRIB_MPI_MEMBERS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct members {
    uint32_t size;
    int first, stride;
    uint32_t *list; /* NULL for an arithmetic sequence */
};

/* Questions whose answers are local, need no memory of ours, and are the same on all members. */

/* All members of comm are in world; processes that were spawned or connected later are not. */
bool members_are_in(MPI_Comm comm, MPI_Comm world);
/* All members of comm, which are in world, are on one host. */
bool members_share_host(MPI_Comm comm, MPI_Comm world);

/* The members of comm, all of them in world; false when memory is short. *ranks is the plain list,
 * to be freed by the caller. */
bool members_read(MPI_Comm comm, MPI_Comm world, struct members *members, uint32_t **ranks);
/* World rank of a member; rank < size. */
int members_world_rank(const struct members *members, uint32_t rank);
void members_free(struct members *members);

#endif
