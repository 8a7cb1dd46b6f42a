/* SPDX-License-Identifier: Apache-2.0
 *
 * When a tree fails half way, ranks may differ in whether the last operation completed. This is how
 * they agree.
 *
 *     fence        A member that notices the failure tells the group's first member, which asks all
 *                  members. A member that has been asked starts no further operation through the
 *                  tree, and leaves the one it is in, if that one waits for others.
 *     marks        Each member sends the number of operations that it completed.
 *     decision     With all marks the first member knows whether the last operation completed
 *                  anywhere:
 *                    nowhere    All members do it with the MPI, from their own inputs.
 *                    somewhere  A barrier is done. The result of an allreduce is sent by a member
 *                               that has it, so that all have the same bits. A reduce whose root
 *                               lacks the result is folded by the root from the inputs, which are
 *                               sent to it.
 *     afterwards   The communicator's collectives stay with the MPI.
 *
 * Operations are blocking and need every member, so no member can be more than one operation ahead
 * of another.
 *
 * A member answers in any wrapped call and, if there is a helper thread (progress.h), at any time.
 * Without a helper, a member that completed the operation and then waits in the MPI for one that
 * did not cannot answer. Then the program is aborted after the time limit, with an explanation. It
 * never hangs, and it never goes on with ranks that hold different results.
 */
#ifndef TRIB_MPI_RECOVERY_H
#define TRIB_MPI_RECOVERY_H

#include "group.h"
#include "mailbox.h"
#include "operation.h"

#include <stdbool.h>

/* Begins an operation through the tree. false: the tree has failed, and recovery_settle() says how
 * to go on. */
bool recovery_begin(struct group *group);

/* Whether another member has asked this one to stop. */
bool recovery_is_asked_for(const struct group *group);

/* How the operation ended. After each recovery_begin() that returned true, exactly one of these
 * must be called. */
void recovery_end_completed(struct group *group, const struct operation *operation);
void recovery_end_failed(struct group *group, const char *cause);
void recovery_end_refused(struct group *group);

/* Takes part in the agreement and brings the operation to the outcome that was agreed on, which is
 * never OUTCOME_ERROR. saved is the input, if operation->input is TRIB_IN_PLACE. */
enum outcome recovery_settle(struct group *group, const struct operation *operation, const void *saved);

/* The handler for mailbox_poll(). */
void recovery_handle(const struct message *message, void *payload);

/* Aborts the program with this text, because going on could give a wrong result. */
_Noreturn void recovery_give_up(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether the agreement has begun and is not over. The registry's lock must be held.
 * recovery_free() allows NULL. */
bool recovery_undecided(const struct group *group);
void recovery_free(struct recovery *recovery);

#endif
