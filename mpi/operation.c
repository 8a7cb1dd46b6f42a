/* SPDX-License-Identifier: Apache-2.0 */
#include "operation.h"

#include "job.h"
#include "notice.h"
#include "progress.h"
#include "recovery.h"
#include "scratch.h"

#include <string.h>

/* How long one wait in the library lasts before we look whether another rank has asked to stop. */
#define SLICE_MS 100
/* How long an operation may still take after another rank's tree has failed, before ours is taken down too. */
#define GRACE_MS 500

size_t operation_bytes(const struct operation *operation)
{
    return operation->count * operation->type.width;
}

/* A tree that fails half way leaves a mixture in output, so an input that lies there is copied first, at memory speed:
 * little against the network's (README.md has figures). NULL: no copy is needed. */
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

static int post(trib_group *tree, const struct operation *o, trib_request **request)
{
    switch (o->collective) {
    case COLLECTIVE_ALLREDUCE:
        return trib_allreduce_nb(tree, o->input, o->output, o->count, o->type.dtype, o->type.op, request);
    case COLLECTIVE_REDUCE:
        return trib_reduce_nb(tree, o->input, o->output, o->count, o->type.dtype, o->type.op, o->root, request);
    default:
        return trib_barrier_nb(tree, request);
    }
}

/* The request's own status, or TRIB_ERR_TIMEOUT with *done false after at most limit_ms. */
static int wait_for(trib_request *request, int limit_ms, int *done)
{
    int status = trib_wait(request, limit_ms);

    *done = 1;
    if (status != TRIB_ERR_TIMEOUT)
        return status;
    return trib_test(request, done);
}

/* Takes down a tree that other ranks have left but that has not failed here by itself. */
static int take_down(struct group *group, trib_request *request)
{
    int done, status;

    trib_group_free(group->tree);
    group->tree = NULL;
    status = wait_for(request, GRACE_MS, &done);
    if (!done)
        recovery_give_up("the library did not end an operation whose group was freed");
    return status;
}

/* Waits as long as it takes: a rank that is late is no failure. */
static int await(struct group *group, trib_request *request)
{
    uint64_t stop_ms = 0;

    for (;;) {
        int done, status = wait_for(request, SLICE_MS, &done);
        if (done)
            return status;
        if (!recovery_wanted(group))
            continue;
        if (stop_ms == 0)
            stop_ms = progress_clock_ms() + GRACE_MS;
        else if (progress_clock_ms() >= stop_ms)
            return take_down(group, request);
    }
}

static int through_tree(struct group *group, const struct operation *operation)
{
    trib_request *request = NULL;
    int status = post(group->tree, operation, &request);

    if (status == TRIB_OK)
        status = await(group, request);
    trib_request_free(request);
    return status;
}

/* Why the tree failed, in the library's words. */
static void explain(const struct group *group, int status, char *cause, size_t length)
{
    cause[0] = '\0';
    if (group->tree != NULL)
        trib_group_error(group->tree, cause, length);
    if (cause[0] == '\0')
        strncat(cause, trib_strerror(status), length - 1);
}

static enum outcome fall_back(struct group *group, const struct operation *operation, int status, void *saved)
{
    char cause[MESSAGE_CAUSE];

    explain(group, status, cause, sizeof cause);
    trib_group_free(group->tree); /* tells the others that we are gone, should they not know yet */
    group->tree = NULL;
    recovery_end_failed(group, status, cause);
    enum outcome outcome = recovery_settle(group, operation, saved);
    if (outcome == OUTCOME_LEFT_TO_MPI && saved != NULL)
        memcpy(operation->output, saved, operation_bytes(operation));
    return outcome;
}

static enum outcome report_mismatch(struct group *group, const struct operation *operation)
{
    recovery_end_refused(group);
    notice("rank %d: the ranks of a communicator disagree about %s, which is an error in the program: %s", job.rank,
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
    int status = through_tree(group, operation);
    if (status == TRIB_OK)
        recovery_end_completed(group, operation);
    else if (status == TRIB_ERR_MISMATCH)
        outcome = report_mismatch(group, operation);
    else
        outcome = fall_back(group, operation, status, saved);
    scratch_give_back(saved);
    return outcome;
}
