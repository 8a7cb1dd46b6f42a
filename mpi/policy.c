/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether an operation goes through the tree depends on four things only: on values that MPI
 * guarantees equal on all ranks of the communicator (the communicator, count, datatype, operator,
 * root), on the placement that all ranks know, on what the manager predicted for the job, and on
 * rank 0's settings. If anything else decided it, ranks would wait for each other in different
 * calls for ever.
 *
 * Differences that only this rank can see must not matter: equal buffers count as MPI_IN_PLACE. A
 * call that is wrong on this rank alone is left to the MPI to report.
 */
#include "policy.h"

#include "config.h"
#include "group.h"
#include "job.h"
#include "notice.h"
#include "once.h"
#include "operation.h"
#include "report.h"
#include "types.h"

#include <stddef.h>

int policy_init(int *argc, char ***argv)
{
    int result = PMPI_Init(argc, argv);

    if (result == MPI_SUCCESS)
        job_join();
    return result;
}

int policy_init_thread(int *argc, char ***argv, int required, int *provided)
{
    int result = PMPI_Init_thread(argc, argv, required, provided);

    if (result == MPI_SUCCESS)
        job_join();
    return result;
}

int policy_finalize(void)
{
    job_leave();
    return PMPI_Finalize();
}

/* Nothing is sent before an abort, which should not wait for others. The fabric notices that this
 * process has ended when its connections close. */
int policy_abort(MPI_Comm comm, int errorcode)
{
    if (job_is_own() && once_is_first()) {
        report_write_own();
        notice_wait_until_read();
    }
    return PMPI_Abort(comm, errorcode);
}

int policy_constructed(int result, const MPI_Comm *newcomm)
{
    if (result == MPI_SUCCESS && job_usable() && *newcomm != MPI_COMM_NULL)
        group_create(*newcomm);
    return result;
}

/* The verdict on the communicator. */
static enum reason judge_communicator(MPI_Comm comm, struct group **group)
{
    *group = NULL;
    if (comm == MPI_COMM_NULL)
        return REASON_ARGUMENT;
    if (!job_usable())
        return job_is_weighed() ? group_dry_run(comm) : REASON_NO_JOB;
    *group = group_of(comm);
    return *group != NULL ? (*group)->standing : REASON_NO_GROUP;
}

/* The verdict on the vector of a reduction; *type is set when it is REASON_TREE. */
static enum reason judge_vector(int count, MPI_Datatype datatype, MPI_Op op, struct wire_type *type)
{
    if (count < 0)
        return REASON_ARGUMENT;
    if (count == 0)
        return REASON_EMPTY;
    enum reason reason = types_map(&job.config, datatype, op, type);
    if (reason != REASON_TREE)
        return reason;
    uint64_t bytes = (uint64_t)count * type->width;
    if (bytes < job.config.min_bytes)
        return REASON_SMALL;
    if (bytes > job.config.max_bytes)
        return REASON_LARGE;
    return REASON_TREE;
}

static bool is_in(const trib_range *ranges, uint32_t count, uint64_t bytes)
{
    for (uint32_t at = 0; at < count; at++)
        if (bytes >= ranges[at].from && bytes <= ranges[at].to)
            return true;
    return false;
}

/* The verdict of the manager's prediction. All members have it from the same ticket and ask it
 * about the same members, so it is equal on all of them. */
static enum reason judge_by_prediction(const struct group *group, enum collective collective, uint64_t bytes)
{
    const trib_prediction *predicted = &group->prediction;
    bool pays = true;

    if (job.config.mode == MODE_FORCE || !predicted->known)
        return REASON_TREE;
    switch (collective) {
    case COLLECTIVE_ALLREDUCE:
        pays = is_in(predicted->allreduce, predicted->allreduces, bytes);
        break;
    case COLLECTIVE_REDUCE:
        pays = is_in(predicted->reduce, predicted->reduces, bytes);
        break;
    case COLLECTIVE_BARRIER:
        pays = predicted->barrier != 0;
        break;
    default:
        break;
    }
    return pays ? REASON_TREE : REASON_PREDICTED_SLOWER;
}

/* All verdicts. The communicator's comes first, and the prediction's last. */
static enum reason judge(MPI_Comm comm, struct operation *operation, int count, struct group **group)
{
    enum reason reason = judge_communicator(comm, group);

    if (reason != REASON_TREE && reason != REASON_DRY_RUN)
        return reason;
    enum reason vector = judge_vector(count, operation->datatype, operation->op, &operation->type);
    operation->count = (size_t)(count > 0 ? count : 0);
    if (vector != REASON_TREE || reason != REASON_TREE)
        return vector != REASON_TREE ? vector : reason;
    return judge_by_prediction(*group, operation->collective, (uint64_t)operation->count * operation->type.width);
}

/* Leaves the operation to the MPI. */
static bool leave(enum collective collective, enum reason reason)
{
    report_operation(collective, reason, 0);
    return false;
}

static bool carry_out(const struct group *group, const struct operation *operation, MPI_Comm comm, int *result)
{
    *result = MPI_SUCCESS;
    if (operation_run(group, operation)) {
        report_operation(operation->collective, REASON_TREE, operation_bytes(operation));
    } else {
        PMPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
        *result = MPI_ERR_OTHER;
    }
    return true;
}

static const void *input_of(const void *sendbuf, const void *recvbuf)
{
    return sendbuf == MPI_IN_PLACE || sendbuf == recvbuf ? TRIB_IN_PLACE : sendbuf;
}

bool policy_allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                      int *result)
{
    struct group *group;
    struct operation operation = {
        .collective = COLLECTIVE_ALLREDUCE,
        .input = input_of(sendbuf, recvbuf),
        .output = recvbuf,
        .datatype = datatype,
        .op = op,
    };
    enum reason reason = judge(comm, &operation, count, &group);

    if (reason == REASON_TREE && (operation.input == NULL || recvbuf == NULL))
        reason = REASON_ARGUMENT;
    if (reason != REASON_TREE)
        return leave(COLLECTIVE_ALLREDUCE, reason);
    return carry_out(group, &operation, comm, result);
}

bool policy_reduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm,
                   int *result)
{
    struct group *group;
    struct operation operation = {.collective = COLLECTIVE_REDUCE, .input = sendbuf, .datatype = datatype, .op = op};
    enum reason reason = judge(comm, &operation, count, &group);

    if (reason == REASON_TREE && (root < 0 || (uint32_t)root >= group->size))
        reason = REASON_ARGUMENT;
    if (reason == REASON_TREE) {
        operation.root = (uint32_t)root;
        if (group->rank == operation.root) {
            operation.input = input_of(sendbuf, recvbuf);
            operation.output = recvbuf;
            reason = recvbuf == NULL ? REASON_ARGUMENT : reason;
        } else if (sendbuf == MPI_IN_PLACE) {
            reason = REASON_ARGUMENT;
        }
        reason = operation.input == NULL ? REASON_ARGUMENT : reason;
    }
    if (reason != REASON_TREE)
        return leave(COLLECTIVE_REDUCE, reason);
    return carry_out(group, &operation, comm, result);
}

bool policy_barrier(MPI_Comm comm, int *result)
{
    struct group *group;
    struct operation operation = {.collective = COLLECTIVE_BARRIER};
    enum reason reason = judge_communicator(comm, &group);

    if (reason == REASON_TREE)
        reason = judge_by_prediction(group, COLLECTIVE_BARRIER, 0);
    if (reason != REASON_TREE)
        return leave(COLLECTIVE_BARRIER, reason);
    return carry_out(group, &operation, comm, result);
}

void policy_counted(enum collective collective)
{
    report_operation(collective, REASON_NOT_TAKEN, 0);
}

void policy_tell_fortran(void)
{
    int rank;

    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && config_is_on())
        notice("the collectives of this program stay with the MPI: it initialised MPI in Fortran, and this MPI shows none of "
               "Fortran's calls to a preloaded library");
}
