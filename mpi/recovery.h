/* SPDX-License-Identifier: Apache-2.0
 *
 * When a tree fails half way, ranks may differ in whether the last operation completed. This is how
 * they agree.
 *
 *     fence        whoever notices tells the group's first member, which asks all members; a member that has been asked
 *                  starts no further operation through the tree, and leaves the one it is in, should it wait for it
 *     marks        each member sends the number of operations it completed
 *     decision     with all marks the first member knows whether the last operation completed anywhere:
 *                    nowhere            all do it with the MPI, from their own inputs
 *                    somewhere          a barrier is done; the result of an allreduce is sent by one that has it, so that
 *                                       all have the same bits; a reduce whose root lacks the result is folded by the
 *                                       root from the inputs, which are sent to it
 *     afterwards   the communicator's collectives are the MPI's
 *
 * Operations are blocking and need every member, so no member can be more than one ahead of
 * another.
 *
 * A member answers in any wrapped call and, where there is a helper thread (progress.h), at any
 * time. Without one a member that completed the operation and then waits in the MPI for a rank that
 * did not cannot answer; after the time limit the program is aborted with an explanation. It never
 * hangs, and never goes on with ranks that hold different results.
 */
#ifndef TRIB_MPI_RECOVERY_H
#define TRIB_MPI_RECOVERY_H

#include "group.h"
#include "mailbox.h"
#include "operation.h"

#include <stdbool.h>

/* An operation is about to go through the tree; false: the tree failed, recovery_settle() says
 * how to go on. */
bool recovery_begin(struct group *group);

/* Another member has asked this one to stop. */
bool recovery_is_asked_for(const struct group *group);

/* How it ended; exactly one of these after each recovery_begin() that answered true. */
void recovery_end_completed(struct group *group, const struct operation *operation);
void recovery_end_failed(struct group *group, const char *cause);
void recovery_end_refused(struct group *group);

/* Takes part in the agreement and brings operation to the outcome agreed on, never
 * OUTCOME_ERROR. saved: the input, where operation->input is TRIB_IN_PLACE. */
enum outcome recovery_settle(struct group *group, const struct operation *operation, const void *saved);

/* For mailbox_poll(). */
void recovery_handle(const struct message *message, void *payload);

/* Aborts the program with the words given, because going on could give a wrong result. */
_Noreturn void recovery_give_up(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* With the registry's lock held: the agreement has begun and is not over; NULL is allowed in
 * recovery_free(). */
bool recovery_undecided(const struct group *group);
void recovery_free(struct recovery *recovery);

#endif
