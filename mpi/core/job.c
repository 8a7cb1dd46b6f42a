/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

#include "notice.h"
#include "once.h"
#include "placement.h"
#include "report.h"
#include "runtime.h"
#include "sums.h"

#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct job job = {.world = MPI_COMM_NULL};

static int oob_gather(void *ctx, const void *sbuf, void *rbuf, size_t len)
{
    (void)ctx;
    if (len > INT_MAX)
        return 1;
    return !runtime_gather(job.world, sbuf, rbuf, (int)len);
}

static int oob_bcast(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    if (len > INT_MAX)
        return 1;
    return !runtime_bcast(job.world, buf, (int)len, 0);
}

static void progress(void *ctx)
{
    (void)ctx;
    runtime_progress();
}

static void share_config(void)
{
    if (job.rank == 0) {
        config_read(&job.config);
        once_name(job.config.program);
    }
    runtime_bcast(job.world, &job.config, sizeof job.config, 0);
}

/* All ranks join or none does. If some could not, all get the error text of the lowest of them. */
static bool agree(int status)
{
    int refused = runtime_least(job.world, status == TRIB_OK ? job.size : job.rank);

    if (refused == job.size)
        return true;
    if (job.rank == refused)
        snprintf(job.refusal, sizeof job.refusal, "%s: %s", trib_strerror(status), trib_last_error());
    runtime_bcast(job.world, job.refusal, sizeof job.refusal, refused);
    return false;
}

static void join(void)
{
    static const trib_oob oob = {.gather = oob_gather, .bcast = oob_bcast};
    trib_params params = {
        .struct_size = sizeof params,
        .rank = (uint32_t)job.rank,
        .size = (uint32_t)job.size,
        .manager = job.config.manager,
        .oob = &oob,
        .timeout_ms = (int)job.config.timeout_ms,
        .quota = job.config.quota[0] != '\0' ? job.config.quota : NULL,
        .progress = progress,
        .calls = "allreduce=MPI_Allreduce,reduce=MPI_Reduce,barrier=MPI_Barrier,bcast=MPI_Bcast,allgather=MPI_Allgather,"
                 "reduce_scatter=MPI_Reduce_scatter_block",
    };
    trib_context *context = NULL;

    int status = trib_init(&params, &context);
    if (agree(status)) {
        job.context = context;
        return;
    }
    if (status == TRIB_OK)
        trib_finalize(context);
}

/* Set in a child made by fork(). To ask for the process's number instead would take a system call
 * for each collective. */
static bool is_child;

static void become_child(void)
{
    is_child = true;
}

void job_join(MPI_Comm world)
{
    pthread_atfork(NULL, NULL, become_child);
    job.world = world;
    job.rank = runtime_rank(world);
    job.size = runtime_size(world);
    share_config();
    if (job.config.mode != MODE_OFF) {
        once_open(job.config.program);
        placement_read(job.world);
        once_settle();
    }
    if (job.config.mode == MODE_OFF)
        snprintf(job.refusal, sizeof job.refusal, "TRIB_MPI=off");
    else if (job.config.mode == MODE_REPORT)
        snprintf(job.refusal, sizeof job.refusal, "TRIB_MPI=report");
    else if (job.config.manager[0] == '\0')
        snprintf(job.refusal, sizeof job.refusal, "TRIB_MANAGER is not set; start a fabric and export the line it prints");
    else if (job.config.sums == SUMS_UNKNOWN)
        snprintf(job.refusal, sizeof job.refusal, "TRIB_SUMS on rank 0 is none of plain, fixed, exact and int8");
    else
        join();
    if (job.context == NULL && job.config.mode == MODE_REQUIRE)
        job_end("TRIB_MPI=require or HCOLL_ENABLE_SHARP=3 or 4 asks for the tree, and %s", job.refusal);
    if (job.context == NULL && job.rank == 0 && job.config.mode != MODE_OFF && job.config.mode != MODE_REPORT)
        notice("the collectives of this program stay with the MPI: %s", job.refusal);
}

void job_meet_at_end(void)
{
    if (job.context != NULL)
        runtime_barrier(job.world); /* a rank that left earlier would take along the nodes that it hosts */
    if (job.config.report)
        report_write();
}

void job_leave(void)
{
    trib_context *context = job.context;

    job.context = NULL;
    trib_finalize(context);
    job.world = MPI_COMM_NULL;
    placement_forget();
    once_close();
}

void job_tell_fallback(const char *format, ...)
{
    char why[1024];
    va_list arguments;

    if (job.rank != 0 || !job_usable())
        return;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    trib_fall_back(job.context, why);
}

_Noreturn void job_end(const char *format, ...)
{
    /* The rank that speaks ends this process, too. */
    static const struct timespec spoken_for = {.tv_sec = 10};
    char why[1280];
    va_list arguments;

    if (once_is_first()) {
        va_start(arguments, format);
        vsnprintf(why, sizeof why, format, arguments);
        va_end(arguments);
        notice("rank %d ends the program: %s", job.rank, why);
        report_write_own();
        notice_wait_until_read();
    } else {
        nanosleep(&spoken_for, NULL);
    }
    runtime_end();
}

bool job_is_own(void)
{
    return job.world != MPI_COMM_NULL && !is_child;
}

bool job_usable(void)
{
    return job.context != NULL && !is_child;
}

bool job_is_weighed(void)
{
    return job_is_own() && job.config.mode == MODE_REPORT;
}
