/* SPDX-License-Identifier: Apache-2.0
 *
 * The groups of communicators, each of which is its communicator's attribute: opened in the
 * communicator's constructor, freed with it.
 */
#ifndef TRIB_MPI_GROUPS_H
#define TRIB_MPI_GROUPS_H

#include "group.h"

#include <mpi.h>

void groups_open(void);

/* Opens comm's group, and makes its tree if that is not to wait for calls. The call is collective
 * over comm, on which there must be no other traffic yet. All members get the same outcome. Without
 * a group the communicator's collectives stay with the MPI. A communicator with members of another
 * MPI_COMM_WORLD gets none, and no message is sent on it. */
void groups_make(MPI_Comm comm);

/* The group of comm, which need not have one: then it says why. */
const struct group *groups_find(MPI_Comm comm);

/* Notes a blocking call on comm that had the verdict REASON_FEW_CALLS and counts for so many.
 * Returns true if it is to be judged anew: all members have come to this call, and have made a tree
 * or learnt that there is none. */
bool groups_note_call(MPI_Comm comm, uint64_t calls);

/* The function of an MPI that tells whether a communicator is revoked; NULL: it has none. */
void groups_ask_whether_revoked(int (*ask)(MPI_Comm comm, int *is_revoked));

/* Frees the group of MPI_COMM_WORLD, whose attributes the MPI deletes too late. */
void groups_close(void);

#endif
