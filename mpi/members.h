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

/* Questions whose answers are local, take no memory from the heap, and are the same on all
 * members. */

/* Whether all members of comm are in world. Processes that were spawned or connected later are
 * not. */
bool members_are_in(MPI_Comm comm, MPI_Comm world);
/* Whether all members of comm, which must be in world, are on one host. */
bool members_share_host(MPI_Comm comm, MPI_Comm world);

/* Reads the members of comm, all of which must be in world; returns false when memory is short.
 * *ranks becomes the plain list, which the caller frees. */
bool members_read(MPI_Comm comm, MPI_Comm world, struct members *members, uint32_t **ranks);
/* The world rank of a member. rank must be below size. */
int members_world_rank(const struct members *members, uint32_t rank);
void members_free(struct members *members);

#endif
