/* SPDX-License-Identifier: Apache-2.0
 *
 * What this library keeps for a communicator. Only the thread inside a call on the communicator
 * uses it, and MPI allows one at a time, unless its owner says otherwise.
 */
#ifndef TRIB_MPI_GROUP_H
#define TRIB_MPI_GROUP_H

#include "collective.h"
#include "members.h"
#include "tributary.h"

#include <mpi.h>
#include <stdint.h>

struct group {
    enum reason standing; /* REASON_TREE; REASON_FEW_CALLS: all is set but the tree; or why the
                           * communicator has none, and then nothing else is set, but rank and size
                           * for REASON_DRY_RUN */
    uint64_t calls_left;  /* before its tree is made */
    trib_group *tree;     /* NULL before */
    trib_request *creation;     /* NULL once its end is known */
    trib_prediction prediction; /* for which operations the tree pays; equal on all members */
    uint32_t rank, size;
    struct spread spread;
    uint32_t sums; /* enum trib_sums: how its sums of floating-point numbers are taken */
};

/* What all communicators that have no group for this reason share: no job, no group, few, one host,
 * or a wrong argument. Never freed. */
const struct group *group_without_tree(enum reason reason);

/* Why comm is to have no tree, before anything is made; REASON_TREE if it is to have one. There is
 * a job. The call is local, and all members come to the same, except that one may lack memory. */
enum reason group_prospect(MPI_Comm comm);

/* For a program without a job, which asks what would be: a group of comm's ranks with the standing
 * REASON_DRY_RUN, which is its caller's to free, or what those without a tree share. */
const struct group *group_dry(MPI_Comm comm);

/* Says on stderr, on rank 0, that all ranks are on one host, and what to do. */
void group_tell_one_host(void);

/* What is known of comm before it has a tree, with the standing REASON_FEW_CALLS. Libraries make
 * communicators by the hundred for a call or two each. So a tree waits for calls that would pay for
 * its making; `at_once` is for a communicator of which that is known. The call is local. A rank
 * that lacks memory ends the program, as the others count on it. */
struct group *group_open(MPI_Comm comm, bool at_once);

/* The same for another tree of the communicator of `other`, which takes sums as that one does. */
struct group *group_like(const struct group *other);

/* Notes a call that had the verdict REASON_FEW_CALLS and counts for so many. Returns true if the
 * tree is to be made now, for this call, which is the same one on all members. */
bool group_note_call(struct group *group, uint64_t calls);

/* Begins to make the tree, and waits for nobody. All members give the same tag; of groups with
 * equal members that are made at the same time, each has another one. Returns TRIB_OK, or why this
 * rank cannot. */
int group_begin(struct group *group, MPI_Comm comm, uint64_t tag, const char *name);

/* Waits until the tree is made, or for timeout_ms (negative: without a limit). Returns TRIB_OK, or
 * why there is none, which is the same on all members unless this rank's time is up. */
int group_await(struct group *group, int timeout_ms);

/* Leaves the tree, if there is one. NULL is allowed. */
void group_free(struct group *group);

/* Says on stderr, once in the program, why a communicator has no tree. status is this rank's own,
 * and TRIB_OK where another rank met the error. */
void group_tell_refusal(MPI_Comm comm, const char *name, int status, int status_all);

#endif
