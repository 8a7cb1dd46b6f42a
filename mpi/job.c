/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

#include "group.h"
#include "meeting.h"
#include "notice.h"
#include "once.h"
#include "placement.h"
#include "report.h"

#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct job job = {.world = MPI_COMM_NULL, .keyval = MPI_KEYVAL_INVALID};

static int oob_gather(void *ctx, const void *sbuf, void *rbuf, size_t len)
{
    (void)ctx;
    if (len > INT_MAX)
        return 1;
    return PMPI_Gather(sbuf, (int)len, MPI_BYTE, rbuf, (int)len, MPI_BYTE, 0, job.world) != MPI_SUCCESS;
}

static int oob_bcast(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    if (len > INT_MAX)
        return 1;
    return PMPI_Bcast(buf, (int)len, MPI_BYTE, 0, job.world) != MPI_SUCCESS;
}

/* Lets the MPI move messages that other ranks send to this one. Looking for a message makes it
 * progress, and nobody sends any on this communicator. */
static void progress(void *ctx)
{
    int found;

    (void)ctx;
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, job.world, &found, MPI_STATUS_IGNORE);
}

static void share_config(void)
{
    if (job.rank == 0)
        config_read(&job.config);
    PMPI_Bcast(&job.config, sizeof job.config, MPI_BYTE, 0, job.world);
}

/* All ranks join or none does. If some could not, all get the error text of the lowest of them. */
static bool agree(int status)
{
    struct {
        int status, rank;
    } mine = {status == TRIB_OK ? 0 : -1, job.rank}, worst;

    PMPI_Allreduce(&mine, &worst, 1, MPI_2INT, MPI_MINLOC, job.world);
    if (worst.status == 0)
        return true;
    if (job.rank == worst.rank)
        snprintf(job.refusal, sizeof job.refusal, "%s: %s", trib_strerror(status), trib_last_error());
    PMPI_Bcast(job.refusal, sizeof job.refusal, MPI_CHAR, worst.rank, job.world);
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
        .progress = progress,
        .calls = "allreduce=MPI_Allreduce,reduce=MPI_Reduce,barrier=MPI_Barrier",
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

void job_join(void)
{
    pthread_atfork(NULL, NULL, become_child);
    job.world = meeting_hold();
    PMPI_Comm_rank(job.world, &job.rank);
    PMPI_Comm_size(job.world, &job.size);
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, group_deleted, &job.keyval, NULL);
    share_config();
    if (job.config.mode != MODE_OFF)
        placement_read(job.world);
    if (job.config.mode == MODE_OFF)
        snprintf(job.refusal, sizeof job.refusal, "TRIB_MPI=off");
    else if (job.config.mode == MODE_REPORT)
        snprintf(job.refusal, sizeof job.refusal, "TRIB_MPI=report");
    else if (job.config.manager[0] == '\0')
        snprintf(job.refusal, sizeof job.refusal, "TRIB_MANAGER is not set; start a fabric and export the line it prints");
    else
        join();
    if (job.context != NULL || (job.config.report && job.config.mode != MODE_OFF))
        once_open(job.world);
    if (job.context != NULL)
        group_create(MPI_COMM_WORLD);
    else if (job.rank == 0 && job.config.mode != MODE_OFF && job.config.mode != MODE_REPORT)
        notice("the collectives of this program stay with the MPI: %s", job.refusal);
}

void job_leave(void)
{
    if (!job_is_own())
        return;
    if (job.context != NULL)
        PMPI_Barrier(job.world); /* a rank that left earlier would take along the nodes that it hosts */
    if (job.config.report)
        report_write();
    if (job.context != NULL) {
        if (group_of(MPI_COMM_WORLD) != NULL)
            PMPI_Comm_delete_attr(MPI_COMM_WORLD, job.keyval);
        trib_context *context = job.context;
        job.context = NULL;
        trib_finalize(context);
    }
    PMPI_Comm_free_keyval(&job.keyval);
    PMPI_Comm_free(&job.world);
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
    PMPI_Abort(MPI_COMM_WORLD, 1);
    abort();
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
