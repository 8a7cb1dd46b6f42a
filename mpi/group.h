/* SPDX-License-Identifier: Apache-2.0
 *
 * What this library keeps for a communicator. It is made in the communicator's constructor, kept as
 * its attribute, and freed with it.
 */
#ifndef TRIB_MPI_GROUP_H
#define TRIB_MPI_GROUP_H

#include "collective.h"
#include "members.h"
#include "tributary.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct recovery;

/* The last operation that completed through the tree, kept for a member that missed it because a
 * node died. */
struct kept {
    enum collective collective;
    int root;
    size_t bytes;    /* length of the vector */
    bool held;       /* data is that operation's result (allreduce) or this rank's input (reduce,
                      * not the root) */
    void *data;
    size_t capacity; /* of data */
};

/* The registry's lock guards all fields except standing, id, tree, members, rank and left_to_mpi.
 * These are changed only by the thread inside a call on the communicator (MPI allows one at a
 * time). */
struct group {
    enum reason standing; /* REASON_TREE, or why the communicator has no tree; then nothing else is
                           * set */
    uint64_t id; /* made of the first member's world rank and its count of groups made: never used
                  * twice */
    trib_group *tree; /* NULL once it failed */
    struct members members;
    trib_prediction prediction; /* for which operations the tree pays; equal on all members */
    uint32_t rank;
    uint64_t completed; /* operations through the tree */
    bool left_to_mpi;   /* an operation was, because the tree failed: known to all members at the
                         * same operation */
    bool in_operation;  /* one is running: its outcome is not known yet */
    bool buried;        /* the communicator was freed */
    struct kept kept;
    struct recovery *recovery; /* NULL while the tree works */
    struct group *newer, *older;
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

/* Takes the tree out of the group and returns it. trib_group_free(), which may wait, is called on
 * it outside the lock, because until then another thread may use it. */
trib_group *group_take_tree(struct group *group);

/* Frees the groups of communicators that the program never freed; for MPI_Finalize. */
void group_free_all(void);

/* The delete callback for MPI_Comm_create_keyval. */
int group_deleted(MPI_Comm comm, int keyval, void *attribute, void *extra);

#endif
