/* SPDX-License-Identifier: Apache-2.0 */
#include "group.h"

#include "job.h"
#include "members.h"
#include "notice.h"
#include "report.h"

#include <stdatomic.h>
#include <stdlib.h>

/* The group that all communicators without a tree share, one for each reason. */
static struct group *treeless(enum reason reason)
{
    static struct group all[REASONS];

    all[reason].standing = reason;
    return &all[reason];
}

/* The first member numbers the group. It counts the groups that it numbers, so the pair of its rank
 * and its count is unique in the job. People read the number as the group's tag: that of
 * MPI_COMM_WORLD is 1. */
static uint64_t agree_on_tag(MPI_Comm comm, int rank)
{
    static atomic_uint_fast64_t made;
    uint64_t tag = 0;

    if (rank == 0)
        tag = atomic_fetch_add(&made, 1) * (uint64_t)job.size + (uint64_t)job.rank + 1;
    PMPI_Bcast(&tag, 1, MPI_UINT64_T, 0, comm);
    return tag;
}

/* Every wait in here is bounded, so that a member that cannot take part does not make the others
 * wait for ever. */
static int make_tree(struct group *group, const uint32_t *ranks, uint64_t tag, const char *name)
{
    trib_request *request = NULL;
    int status = trib_group_create_named_nb(job.context, ranks, group->size, tag, name, &group->tree, &request);

    if (status != TRIB_OK) {
        group->tree = NULL;
        return status;
    }
    status = trib_wait(request, (int)job.config.timeout_ms);
    trib_request_free(request);
    if (status != TRIB_OK) {
        trib_group_free(group->tree);
        group->tree = NULL;
    }
    return status;
}

/* Whether the members of a communicator on one host share memory of ours. All have the same answer
 * from the same ticket, unless one of them has no memory left. */
static bool members_share_memory(MPI_Comm comm)
{
    trib_prediction prediction = {.struct_size = sizeof prediction};
    uint32_t *ranks = members_read(comm, job.world);
    int size, mine, all;

    PMPI_Comm_size(comm, &size);
    mine = ranks != NULL && trib_predict(job.context, ranks, (uint32_t)size, &prediction) == TRIB_OK && prediction.in_memory != 0;
    free(ranks);
    PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm);
    return all != 0;
}

static struct group *prepare(MPI_Comm comm, uint64_t tag, const char *name, int *status)
{
    struct group *group = calloc(1, sizeof *group);
    uint32_t *ranks = members_read(comm, job.world);
    int rank, size;

    *status = TRIB_ERR_MEMORY;
    if (group != NULL && ranks != NULL) {
        PMPI_Comm_rank(comm, &rank);
        PMPI_Comm_size(comm, &size);
        group->rank = (uint32_t)rank;
        group->size = (uint32_t)size;
        group->prediction.struct_size = sizeof group->prediction;
        *status = trib_predict(job.context, ranks, group->size, &group->prediction);
        if (*status == TRIB_OK)
            *status = make_tree(group, ranks, tag, name);
    }
    free(ranks);
    return group;
}

static void discard(struct group *group)
{
    if (group == NULL)
        return;
    trib_group_free(group->tree);
    free(group);
}

/* Reports the first refusal in words; the report counts the others. status_all is the lowest, and
 * so the worst, of all members. */
static void tell_refusal(const char *name, int rank, int size, int status, int status_all)
{
    static atomic_bool told; /* on all members, so that one of them speaks for all */

    if (atomic_exchange(&told, true) || rank != 0)
        return;
    notice("%s (%d ranks, the first is rank %d) has no tree and its collectives stay with the MPI: %s%s%s",
           name[0] != '\0' ? name : "a communicator", size, job.rank, trib_strerror(status_all), status != TRIB_OK ? ": " : " on another rank",
           status != TRIB_OK ? trib_last_error() : "");
}

void group_create(MPI_Comm comm)
{
    int inter, size, rank, length, status, status_all;
    char name[MPI_MAX_OBJECT_NAME] = "";

    PMPI_Comm_test_inter(comm, &inter);
    PMPI_Comm_size(comm, &size);
    if (inter || size < 2)
        return;
    /* This check comes before the first message: members of another MPI_COMM_WORLD do not expect
     * one, because they may not use this library. */
    if (!members_are_in(comm, job.world))
        return;
    if (job.config.mode != MODE_FORCE && members_share_host(comm, job.world) && !members_share_memory(comm)) {
        if (comm == MPI_COMM_WORLD && job.rank == 0)
            notice("the collectives of this program stay with the MPI: all ranks are on one host, and the fabric has no level "
                   "of hosts for them (levels in TRIB_QUOTA and [limits], trib fabric up --local --shared-host); "
                   "TRIB_MPI=force asks for the tree all the same");
        PMPI_Comm_set_attr(comm, job.keyval, treeless(REASON_ONE_HOST));
        return;
    }
    PMPI_Comm_rank(comm, &rank);
    uint64_t tag = agree_on_tag(comm, rank);
    PMPI_Comm_get_name(comm, name, &length);
    struct group *group = prepare(comm, tag, name, &status);
    PMPI_Allreduce(&status, &status_all, 1, MPI_INT, MPI_MIN, comm);
    if (status_all == TRIB_OK) {
        PMPI_Comm_set_attr(comm, job.keyval, group);
        report_group(GROUP_MADE);
        return;
    }
    report_group(GROUP_REFUSED);
    tell_refusal(name, rank, size, status, status_all);
    job_tell_fallback("the collectives of %s (%d ranks) stay with the MPI: it got no tree (%s)",
                      name[0] != '\0' ? name : "a communicator", size, trib_strerror(status_all));
    discard(group);
}

struct group *group_of(MPI_Comm comm)
{
    void *attribute;
    int found;

    PMPI_Comm_get_attr(comm, job.keyval, &attribute, &found);
    return found ? attribute : NULL;
}

static enum reason dry_verdict(MPI_Comm comm)
{
    int inter, size;

    PMPI_Comm_test_inter(comm, &inter);
    PMPI_Comm_size(comm, &size);
    if (inter || size < 2 || !members_are_in(comm, job.world))
        return REASON_NO_GROUP;
    return REASON_DRY_RUN;
}

enum reason group_dry_run(MPI_Comm comm)
{
    const struct group *group = group_of(comm);

    if (group != NULL)
        return group->standing;
    enum reason reason = dry_verdict(comm);
    PMPI_Comm_set_attr(comm, job.keyval, treeless(reason));
    return reason;
}

int group_deleted(MPI_Comm comm, int keyval, void *attribute, void *extra)
{
    (void)comm, (void)keyval, (void)extra;
    struct group *group = attribute;

    /* A child after fork leaves the group alone, and so does a communicator that outlives the
     * job. */
    if (group->standing == REASON_TREE && job_usable()) {
        discard(group);
        report_group(GROUP_FREED);
    }
    return MPI_SUCCESS;
}
