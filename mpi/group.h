/* SPDX-License-Identifier: Apache-2.0
 *
 * What this library keeps for a communicator. It is made in the communicator's constructor, kept as
 * its attribute, and freed with it. Only the thread inside a call on the communicator uses it, and
 * MPI allows one at a time.
 */
#ifndef TRIB_MPI_GROUP_H
#define TRIB_MPI_GROUP_H

#include "collective.h"
#include "tributary.h"

#include <mpi.h>
#include <stdint.h>

struct group {
    enum reason standing; /* REASON_TREE, or why the communicator has no tree; then nothing else is
                           * set */
    trib_group *tree;
    trib_prediction prediction; /* for which operations the tree pays; equal on all members */
    uint32_t rank, size;
};

/* Makes comm's group. The call is collective over comm, on which there must be no other traffic
 * yet. All members get the same outcome. Without a group the communicator's collectives stay with
 * the MPI. A communicator with members of another MPI_COMM_WORLD gets none, and no message is sent
 * on it. */
void group_create(MPI_Comm comm);

/* Returns comm's group, or NULL. */
struct group *group_of(MPI_Comm comm);

/* Returns REASON_DRY_RUN if group_create() would make a tree, else why it would not. For a program
 * without a job. The call is local. */
enum reason group_dry_run(MPI_Comm comm);

/* The delete callback for MPI_Comm_create_keyval. */
int group_deleted(MPI_Comm comm, int keyval, void *attribute, void *extra);

#endif
