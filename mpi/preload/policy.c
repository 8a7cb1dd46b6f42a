/* SPDX-License-Identifier: Apache-2.0 */
#include "policy.h"

#include "component_active.h"
#include "groups.h"
#include "job.h"
#include "meeting.h"
#include "notice.h"
#include "once.h"
#include "pmpi.h"
#include "report.h"
#include "verdict.h"
#include "worth.h"

#include <stddef.h>

/* A tool behind this library may have MPI_Init call MPI_Init_thread, which comes here, too. */
static void begin(void)
{
    static bool has_begun;

    if (has_begun || component_is_active())
        return;
    has_begun = true;
    groups_open();
    job_join(meeting_hold());
    if (job.config.profile && job.rank == 0)
        notice("TRIB_MPI_PROFILE is for the component for Open MPI; this library's report has times in the tree alone");
    job.config.profile = 0;
    if (job_usable())
        groups_make(MPI_COMM_WORLD);
}

int policy_init(int *argc, char ***argv)
{
    int result = next.Init(argc, argv);

    if (result == MPI_SUCCESS)
        begin();
    return result;
}

int policy_init_thread(int *argc, char ***argv, int required, int *provided)
{
    int result = next.Init_thread(argc, argv, required, provided);

    if (result == MPI_SUCCESS)
        begin();
    return result;
}

int policy_finalize(void)
{
    if (job_is_own()) {
        MPI_Comm met = job.world;
        job_meet_at_end();
        groups_close();
        job_leave();
        PMPI_Comm_free(&met);
    }
    return next.Finalize();
}

/* Nothing is sent before an abort, which should not wait for others. The fabric notices that this
 * process has ended when its connections close. */
int policy_abort(MPI_Comm comm, int errorcode)
{
    if (job_is_own() && once_is_first()) {
        report_write_own();
        notice_wait_until_read();
    }
    return next.Abort(comm, errorcode);
}

int policy_constructed(int result, const MPI_Comm *newcomm)
{
    if (result == MPI_SUCCESS && job_usable() && *newcomm != MPI_COMM_NULL)
        groups_make(*newcomm);
    return result;
}

static bool take(const struct call *call, MPI_Comm comm, int *result)
{
    const struct group *group = groups_find(comm);
    struct operation operation;
    uint64_t begun = report_clock();
    enum reason reason = verdict_on(group, call, &operation);

    if (reason == REASON_FEW_CALLS && groups_note_call(comm, worth_in_calls(&operation))) {
        group = groups_find(comm);
        reason = verdict_on(group, call, &operation);
    }
    if (reason != REASON_TREE) {
        report_operation(call->name, reason, operation.bytes);
        return false;
    }
    bool agreed = operation_run(group, &operation);
    report_time(call->name, DOER_TREE, begun);
    *result = MPI_SUCCESS;
    if (!agreed) {
        PMPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
        *result = MPI_ERR_OTHER;
    }
    return true;
}

bool policy_allreduce(enum collective which, const void *sendbuf, void *recvbuf, int64_t count, MPI_Datatype datatype, MPI_Op op,
                      MPI_Comm comm, int *result)
{
    const struct call call = {.kind = KIND_ALLREDUCE, .name = which, .send = sendbuf, .recv = recvbuf, .count = count,
                              .datatype = datatype, .op = op};
    return take(&call, comm, result);
}

bool policy_reduce(enum collective which, const void *sendbuf, void *recvbuf, int64_t count, MPI_Datatype datatype, MPI_Op op,
                   int root, MPI_Comm comm, int *result)
{
    const struct call call = {.kind = KIND_REDUCE, .name = which, .send = sendbuf, .recv = recvbuf, .count = count,
                              .datatype = datatype, .op = op, .root = root};
    return take(&call, comm, result);
}

bool policy_barrier(enum collective which, MPI_Comm comm, int *result)
{
    const struct call call = {.kind = KIND_BARRIER, .name = which};

    return take(&call, comm, result);
}

bool policy_bcast(enum collective which, void *buffer, int64_t count, MPI_Datatype datatype, int root, MPI_Comm comm, int *result)
{
    const struct call call = {.kind = KIND_BCAST, .name = which, .send = buffer, .recv = buffer, .count = count,
                              .datatype = datatype, .root = root};
    return take(&call, comm, result);
}

bool policy_allgather(enum collective which, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, void *recvbuf,
                      int64_t recvcount, MPI_Datatype recvtype, MPI_Comm comm, int *result)
{
    const struct call call = {.kind = KIND_ALLGATHER, .name = which, .send = sendbuf, .recv = recvbuf, .count = recvcount,
                              .datatype = recvtype, .send_count = sendcount, .send_type = sendtype};
    return take(&call, comm, result);
}

bool policy_reduce_scatter_block(enum collective which, const void *sendbuf, void *recvbuf, int64_t recvcount,
                                 MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, int *result)
{
    const struct call call = {.kind = KIND_REDUCE_SCATTER, .name = which, .send = sendbuf, .recv = recvbuf, .count = recvcount,
                              .datatype = datatype, .op = op};
    return take(&call, comm, result);
}

bool policy_gather(enum collective which, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, void *recvbuf,
                   int64_t recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, int *result)
{
    const struct call call = {.kind = KIND_GATHER, .name = which, .send = sendbuf, .send_count = sendcount,
                              .send_type = sendtype, .recv = recvbuf, .count = recvcount, .datatype = recvtype, .root = root};
    return take(&call, comm, result);
}

bool policy_scatter(enum collective which, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, void *recvbuf,
                    int64_t recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, int *result)
{
    const struct call call = {.kind = KIND_SCATTER, .name = which, .send = sendbuf, .send_count = sendcount,
                              .send_type = sendtype, .recv = recvbuf, .count = recvcount, .datatype = recvtype, .root = root};
    return take(&call, comm, result);
}

bool policy_alltoall(enum collective which, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, void *recvbuf,
                     int64_t recvcount, MPI_Datatype recvtype, MPI_Comm comm, int *result)
{
    const struct call call = {.kind = KIND_ALLTOALL, .name = which, .send = sendbuf, .send_count = sendcount,
                              .send_type = sendtype, .recv = recvbuf, .count = recvcount, .datatype = recvtype};
    return take(&call, comm, result);
}

bool policy_allgatherv(enum collective which, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, void *recvbuf,
                       const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm, int *result)
{
    const struct call call = {.kind = KIND_ALLGATHERV, .name = which, .send = sendbuf, .send_count = sendcount,
                              .send_type = sendtype, .recv = recvbuf, .counts = recvcounts, .offsets = displs, .datatype = recvtype};
    return take(&call, comm, result);
}

bool policy_reduce_scatter(enum collective which, const void *sendbuf, void *recvbuf, const int recvcounts[],
                           MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, int *result)
{
    const struct call call = {.kind = KIND_REDUCE_SCATTERV, .name = which, .send = sendbuf, .recv = recvbuf,
                              .counts = recvcounts, .datatype = datatype, .op = op};
    return take(&call, comm, result);
}

bool policy_allgatherv_c(enum collective which, const void *sendbuf, int64_t sendcount, MPI_Datatype sendtype, void *recvbuf,
                         const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm, int *result)
{
    const struct call call = {.kind = KIND_ALLGATHERV, .name = which, .send = sendbuf, .send_count = sendcount,
                              .send_type = sendtype, .recv = recvbuf, .large_counts = recvcounts, .large_offsets = displs,
                              .datatype = recvtype};
    return take(&call, comm, result);
}

bool policy_reduce_scatter_c(enum collective which, const void *sendbuf, void *recvbuf, const MPI_Count recvcounts[],
                             MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, int *result)
{
    const struct call call = {.kind = KIND_REDUCE_SCATTERV, .name = which, .send = sendbuf, .recv = recvbuf,
                              .large_counts = recvcounts, .datatype = datatype, .op = op};
    return take(&call, comm, result);
}

bool policy_scan(enum collective which, const void *sendbuf, void *recvbuf, int64_t count, MPI_Datatype datatype, MPI_Op op,
                 MPI_Comm comm, int *result)
{
    const struct call call = {.kind = KIND_SCAN, .name = which, .send = sendbuf, .recv = recvbuf, .count = count,
                              .datatype = datatype, .op = op};
    return take(&call, comm, result);
}

bool policy_exscan(enum collective which, const void *sendbuf, void *recvbuf, int64_t count, MPI_Datatype datatype,
                   MPI_Op op, MPI_Comm comm, int *result)
{
    const struct call call = {.kind = KIND_EXSCAN, .name = which, .send = sendbuf, .recv = recvbuf, .count = count,
                              .datatype = datatype, .op = op};
    return take(&call, comm, result);
}

void policy_counted(enum collective collective)
{
    report_operation(collective, REASON_NOT_TAKEN, 0);
}
