/* SPDX-License-Identifier: Apache-2.0 */
#include "groups.h"

#include "job.h"
#include "members.h"
#include "pmpi.h"
#include "report.h"
#include "runtime.h"

#include <stdatomic.h>
#include <stddef.h>

static int keyval = MPI_KEYVAL_INVALID;

/* The first member numbers the group. It counts the groups that it numbers, so the pair of its rank
 * and its count is unique in the job. People read the number as the group's tag: that of
 * MPI_COMM_WORLD is 1. */
static uint64_t draw_tag(MPI_Comm comm)
{
    static atomic_uint_fast64_t made;

    if (runtime_rank(comm) != 0)
        return 0;
    return atomic_fetch_add(&made, 1) * (uint64_t)job.size + (uint64_t)job.rank + 1;
}

/* How the members of a communicator agree: on the tag that one of them has drawn, when all have
 * come, who may be late as long as they like; and on the lowest of their numbers. Both end with
 * what this member has if the MPI fails. */
struct agreement {
    uint64_t (*tag)(MPI_Comm comm, uint64_t own);
    int (*least)(MPI_Comm comm, int own);
};

/* On a communicator that is new: ranks that wait rest. */
static uint64_t tag_of_new(MPI_Comm comm, uint64_t tag)
{
    runtime_bcast(comm, &tag, sizeof tag, 0);
    return tag;
}

/* On one in use. A MPI_Comm_idup of it may be under way, whose steps count among the non-blocking
 * collectives in the order in which each rank begins them, so these block. */
static uint64_t tag_of_used(MPI_Comm comm, uint64_t own)
{
    uint64_t tag = own;

    return PMPI_Allreduce(&own, &tag, 1, MPI_UINT64_T, MPI_MAX, comm) == MPI_SUCCESS ? tag : own;
}

static int least_of_used(MPI_Comm comm, int own)
{
    int least = own;

    return PMPI_Allreduce(&own, &least, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS ? least : own;
}

static const struct agreement IF_NEW = {tag_of_new, runtime_least}, IF_USED = {tag_of_used, least_of_used};

/* A stale handle counts as one, too: it has no group, and the MPI says what is wrong. */
static bool is_inter(MPI_Comm comm)
{
    int inter = 0;

    return PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter != 0;
}

static void leave_to_mpi(MPI_Comm comm, enum reason reason)
{
    PMPI_Comm_set_attr(comm, keyval, (void *)(uintptr_t)group_without_tree(reason));
}

/* When all have come, every wait is bounded, so that a member that cannot take part does not make
 * the others wait for ever. */
static void make_tree(MPI_Comm comm, struct group *group, const struct agreement *agree)
{
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length, status = TRIB_ERR_PEER;

    uint64_t tag = agree->tag(comm, draw_tag(comm));
    uint64_t begun = report_clock();
    PMPI_Comm_get_name(comm, name, &length);
    if (tag != 0)
        status = group_begin(group, comm, tag, name);
    if (status == TRIB_OK)
        status = group_await(group, (int)job.config.timeout_ms);
    int status_all = agree->least(comm, status);
    report_tree_time(begun);
    if (status_all == TRIB_OK) {
        group->standing = REASON_TREE;
        report_group(GROUP_MADE);
        return;
    }
    report_group(GROUP_REFUSED);
    if (job.config.mode == MODE_REQUIRE)
        job_end("%s got no tree: %s", name[0] != '\0' ? name : "a communicator", trib_strerror(status_all));
    group_tell_refusal(comm, name, status, status_all);
    leave_to_mpi(comm, REASON_NO_GROUP);
}

void groups_make(MPI_Comm comm)
{
    if (is_inter(comm))
        return;
    enum reason prospect = group_prospect(comm);
    if (prospect == REASON_NO_GROUP)
        return; /* members of another MPI_COMM_WORLD expect no message: they may not use this library */
    if (prospect == REASON_FEW) {
        leave_to_mpi(comm, prospect);
        return;
    }
    /* A member that has no memory left does not know that the others share some. */
    bool on_one_host = !config_is_forced(&job.config) && members_share_host(comm, job.world);
    if (on_one_host && runtime_least(comm, prospect == REASON_TREE) == 0) {
        leave_to_mpi(comm, REASON_ONE_HOST);
        if (comm == MPI_COMM_WORLD)
            group_tell_one_host();
        return;
    }
    struct group *group = group_open(comm, comm == MPI_COMM_WORLD);
    PMPI_Comm_set_attr(comm, keyval, group);
    if (group->calls_left == 0)
        make_tree(comm, group, &IF_NEW);
}

static int (*ask_whether_revoked)(MPI_Comm comm, int *is_revoked);

void groups_ask_whether_revoked(int (*ask)(MPI_Comm comm, int *is_revoked))
{
    ask_whether_revoked = ask;
}

/* Whether every call on comm is an error by now, which the MPI returns. */
static bool is_revoked(MPI_Comm comm)
{
    int revoked = 0;

    return ask_whether_revoked != NULL && ask_whether_revoked(comm, &revoked) == MPI_SUCCESS && revoked != 0;
}

static const struct group *attribute_of(MPI_Comm comm)
{
    void *attribute = NULL;
    int found = 0;

    /* The handle may be stale, and the error handler may have returned. */
    return PMPI_Comm_get_attr(comm, keyval, &attribute, &found) == MPI_SUCCESS && found ? attribute : NULL;
}

const struct group *groups_find(MPI_Comm comm)
{
    if (comm == MPI_COMM_NULL)
        return group_without_tree(REASON_ARGUMENT);
    if (!job_usable() && !job_is_weighed())
        return group_without_tree(REASON_NO_JOB);
    const struct group *group = attribute_of(comm);
    if (group != NULL)
        return is_revoked(comm) ? group_without_tree(REASON_ARGUMENT) : group;
    if (job_usable())
        return group_without_tree(REASON_NO_GROUP);
    group = is_inter(comm) ? group_without_tree(REASON_NO_GROUP) : group_dry(comm);
    PMPI_Comm_set_attr(comm, keyval, (void *)(uintptr_t)group);
    return group;
}

bool groups_note_call(MPI_Comm comm, uint64_t calls)
{
    struct group *group = (struct group *)(uintptr_t)attribute_of(comm);

    if (!group_note_call(group, calls))
        return false;
    make_tree(comm, group, &IF_USED);
    return true;
}

static int deleted(MPI_Comm comm, int key, void *attribute, void *extra)
{
    (void)comm, (void)key, (void)extra;
    struct group *group = attribute;

    /* A child after fork leaves the group alone, and so does a communicator that outlives the
     * job. */
    if (group->standing == REASON_TREE && job_usable()) {
        group_free(group);
        report_group(GROUP_FREED);
    } else if (group->standing == REASON_DRY_RUN || (group->standing == REASON_FEW_CALLS && job_usable())) {
        group_free(group);
    }
    return MPI_SUCCESS;
}

void groups_open(void)
{
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleted, &keyval, NULL);
}

void groups_close(void)
{
    if (attribute_of(MPI_COMM_WORLD) != NULL)
        PMPI_Comm_delete_attr(MPI_COMM_WORLD, keyval);
    PMPI_Comm_free_keyval(&keyval);
}
