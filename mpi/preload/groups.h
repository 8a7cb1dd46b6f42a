/* SPDX-License-Identifier: Apache-2.0
 *
 * The groups of communicators, each of which is its communicator's attribute: made in the
 * communicator's constructor, freed with it.
 */
#ifndef TRIB_MPI_GROUPS_H
#define TRIB_MPI_GROUPS_H

#include "group.h"

#include <mpi.h>

void groups_open(void);

/* Makes comm's group. The call is collective over comm, on which there must be no other traffic
 * yet. All members get the same outcome. Without a group the communicator's collectives stay with
 * the MPI. A communicator with members of another MPI_COMM_WORLD gets none, and no message is sent
 * on it. */
void groups_make(MPI_Comm comm);

/* The group of comm, which need not have one: then it says why. */
const struct group *groups_find(MPI_Comm comm);

/* The function of an MPI that tells whether a communicator is revoked; NULL: it has none. */
void groups_ask_whether_revoked(int (*ask)(MPI_Comm comm, int *is_revoked));

/* Frees the group of MPI_COMM_WORLD, whose attributes the MPI deletes too late. */
void groups_close(void);

#endif
