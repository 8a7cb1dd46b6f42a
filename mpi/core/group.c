/* SPDX-License-Identifier: Apache-2.0 */
#include "group.h"

#include "job.h"
#include "members.h"
#include "notice.h"
#include "report.h"
#include "runtime.h"
#include "sums.h"

#include <stdatomic.h>
#include <stdlib.h>

const struct group *group_without_tree(enum reason reason)
{
#define WITHOUT(reason) [reason] = {.standing = reason}
    static const struct group all[REASONS] = {
        WITHOUT(REASON_NO_JOB), WITHOUT(REASON_NO_GROUP), WITHOUT(REASON_FEW), WITHOUT(REASON_ONE_HOST), WITHOUT(REASON_ARGUMENT),
    };
    return &all[reason];
}

/* Whether the members of a communicator on one host share memory of ours. */
static bool share_memory(MPI_Comm comm)
{
    trib_prediction prediction = {.struct_size = sizeof prediction};
    uint32_t *ranks = members_read(comm, job.world);
    uint32_t size = (uint32_t)runtime_size(comm);
    bool share = ranks != NULL && trib_predict(job.context, ranks, size, &prediction) == TRIB_OK && prediction.in_memory != 0;

    free(ranks);
    return share;
}

/* Whether comm can have a group, and is to have one by the settings. */
static enum reason judge_members(MPI_Comm comm)
{
    if (runtime_size(comm) < 2 || !members_are_in(comm, job.world))
        return REASON_NO_GROUP;
    if ((uint64_t)runtime_size(comm) < job.config.min_ranks ||
        (job.config.min_hosts > 1 && members_spread(comm, job.world).hosts < job.config.min_hosts))
        return REASON_FEW;
    return REASON_TREE;
}

enum reason group_prospect(MPI_Comm comm)
{
    enum reason reason = judge_members(comm);

    if (reason != REASON_TREE)
        return reason;
    if (config_is_forced(&job.config) || !members_share_host(comm, job.world) || share_memory(comm))
        return REASON_TREE;
    return sums_have_no_order(sums_of(comm, job.config.sums)) ? REASON_TREE : REASON_ONE_HOST;
}

struct group *group_open(MPI_Comm comm, bool at_once)
{
    struct group *group = calloc(1, sizeof *group);
    uint32_t *ranks = members_read(comm, job.world);

    if (group == NULL || ranks == NULL)
        job_end("there is no memory for a communicator");
    group->standing = REASON_FEW_CALLS;
    group->rank = (uint32_t)runtime_rank(comm);
    group->size = (uint32_t)runtime_size(comm);
    group->spread = members_spread(comm, job.world);
    group->sums = sums_of(comm, job.config.sums);
    group->prediction.struct_size = sizeof group->prediction;
    if (trib_predict(job.context, ranks, group->size, &group->prediction) != TRIB_OK)
        job_end("nothing can be predicted for a communicator: %s", trib_last_error());
    free(ranks);
    /* Bits that depend on no order are not to depend on how many calls there were, either. */
    if (!at_once && !config_is_forced(&job.config) && !sums_have_no_order(group->sums))
        group->calls_left = job.config.min_calls;
    return group;
}

struct group *group_like(const struct group *other)
{
    struct group *group = calloc(1, sizeof *group);

    if (group == NULL)
        job_end("there is no memory for a persistent request");
    *group = (struct group){.standing = REASON_FEW_CALLS, .rank = other->rank, .size = other->size, .spread = other->spread,
                            .sums = other->sums, .prediction = other->prediction};
    return group;
}

bool group_note_call(struct group *group, uint64_t calls)
{
    group->calls_left -= calls < group->calls_left ? calls : group->calls_left;
    return group->calls_left == 0;
}

int group_begin(struct group *group, MPI_Comm comm, uint64_t tag, const char *name)
{
    uint32_t *ranks = members_read(comm, job.world);
    int status = TRIB_ERR_MEMORY;

    if (ranks != NULL)
        status = trib_group_create_named_nb(job.context, ranks, group->size, tag, name, &group->tree, &group->creation);
    if (status == TRIB_OK)
        (void)trib_group_set_sums(group->tree, (enum trib_sums)group->sums);
    free(ranks);
    return status;
}

int group_await(struct group *group, int timeout_ms)
{
    if (group->creation == NULL)
        return TRIB_OK;
    int status = trib_wait(group->creation, timeout_ms);
    trib_request_free(group->creation);
    group->creation = NULL;
    return status;
}

void group_free(struct group *group)
{
    if (group == NULL)
        return;
    trib_request_free(group->creation);
    trib_group_free(group->tree);
    free(group);
}

const struct group *group_dry(MPI_Comm comm)
{
    enum reason reason = judge_members(comm);

    if (reason != REASON_TREE)
        return group_without_tree(reason);
    struct group *group = calloc(1, sizeof *group);
    if (group == NULL)
        return group_without_tree(REASON_NO_GROUP);
    group->standing = REASON_DRY_RUN;
    group->sums = sums_of(comm, job.config.sums);
    group->rank = (uint32_t)runtime_rank(comm);
    group->size = (uint32_t)runtime_size(comm);
    return group;
}

void group_tell_one_host(void)
{
    if (job.rank == 0)
        notice("the collectives of this program stay with the MPI: all ranks are on one host, and the fabric has no level of "
               "hosts for them (levels in TRIB_QUOTA and [limits], trib fabric up --local --shared-host); TRIB_MPI=force asks "
               "for the tree all the same");
}

void group_tell_refusal(MPI_Comm comm, const char *name, int status, int status_all)
{
    static atomic_bool told; /* on all members, so that one of them speaks for all */
    const char *called = name[0] != '\0' ? name : "a communicator";
    int size = runtime_size(comm);

    if (!atomic_exchange(&told, true) && runtime_rank(comm) == 0)
        notice("%s (%d ranks, the first is rank %d) has no tree and its collectives stay with the MPI: %s%s%s", called, size,
               job.rank, trib_strerror(status_all), status != TRIB_OK ? ": " : " on another rank",
               status != TRIB_OK ? trib_last_error() : "");
    job_tell_fallback("the collectives of %s (%d ranks) stay with the MPI: it got no tree (%s)", called, size,
                      trib_strerror(status_all));
}
