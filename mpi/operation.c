/* SPDX-License-Identifier: Apache-2.0 */
#include "operation.h"

#include "job.h"
#include "notice.h"
#include "recovery.h"
#include "scratch.h"

#include <stdio.h>
#include <string.h>

size_t operation_bytes(const struct operation *operation)
{
    return operation->count * operation->type.width;
}

/* A tree that fails half way leaves a mixture in output, so an input that lies there is copied
 * first. The copy goes at memory speed, which is little beside the network's (README.md has
 * figures). Returns NULL if no copy is needed. */
static void *save_input(const struct operation *operation)
{
    if (operation->input != TRIB_IN_PLACE || operation->count == 0)
        return NULL;
    void *saved = scratch_take(operation_bytes(operation));
    if (saved == NULL)
        recovery_give_up("there is no memory for the copy of %zu bytes that %s with MPI_IN_PLACE needs in case a node dies",
                         operation_bytes(operation), collective_name(operation->collective));
    return memcpy(saved, operation->output, operation_bytes(operation));
}

/* Waits without a limit, because a late rank is no failure. When a member gives up or a node dies,
 * the library learns of it on every other member. */
static int through_tree(trib_group *tree, const struct operation *o)
{
    switch (o->collective) {
    case COLLECTIVE_ALLREDUCE:
        return trib_allreduce(tree, o->input, o->output, o->count, o->type.dtype, o->type.op);
    case COLLECTIVE_REDUCE:
        return trib_reduce(tree, o->input, o->output, o->count, o->type.dtype, o->type.op, o->root);
    default:
        return trib_barrier(tree);
    }
}

/* Why the tree failed, in the library's words; empty when this rank stopped because another one
 * asked. */
static void explain(const struct group *group, int status, char *cause, size_t length)
{
    cause[0] = '\0';
    if (recovery_is_asked_for(group))
        return; /* it is the other rank that knows */
    trib_group_error(group->tree, cause, length);
    if (cause[0] == '\0')
        snprintf(cause, length, "%s", trib_strerror(status));
}

static enum outcome fall_back(struct group *group, const struct operation *operation, int status, void *saved)
{
    char cause[MESSAGE_CAUSE];

    explain(group, status, cause, sizeof cause);
    /* This tells the others that this rank has left, if they do not know yet. */
    trib_group_free(group_take_tree(group));
    recovery_end_failed(group, cause);
    enum outcome outcome = recovery_settle(group, operation, saved);
    if (outcome == OUTCOME_LEFT_TO_MPI && saved != NULL)
        memcpy(operation->output, saved, operation_bytes(operation));
    return outcome;
}

static enum outcome report_mismatch(struct group *group, const struct operation *operation)
{
    recovery_end_refused(group);
    notice("rank %d: ranks disagree about %s, which is an error in the program: %s", job.rank,
           collective_name(operation->collective), trib_last_error());
    return OUTCOME_ERROR;
}

enum outcome operation_run(struct group *group, const struct operation *operation)
{
    if (!recovery_begin(group)) {
        void *untouched = operation->input == TRIB_IN_PLACE ? operation->output : NULL;
        return recovery_settle(group, operation, untouched);
    }
    void *saved = save_input(operation);
    enum outcome outcome = OUTCOME_DONE;
    int status = through_tree(group->tree, operation);
    if (status == TRIB_OK)
        recovery_end_completed(group, operation);
    else if (status == TRIB_ERR_MISMATCH)
        outcome = report_mismatch(group, operation);
    else
        outcome = fall_back(group, operation, status, saved);
    scratch_give_back(saved);
    return outcome;
}
