/* SPDX-License-Identifier: Apache-2.0
 *
 * This program's job in the fabric: made in MPI_Init, left in MPI_Finalize.
 */
#ifndef TRIB_MPI_JOB_H
#define TRIB_MPI_JOB_H

#include "config.h"
#include "tributary.h"

#include <mpi.h>
#include <stdbool.h>

struct job {
    struct config config;
    trib_context *context; /* NULL: no job; refusal says why */
    MPI_Comm world;        /* of the ranks of MPI_COMM_WORLD; MPI_COMM_NULL outside MPI_Init ..
                            * MPI_Finalize */
    int rank, size;        /* in MPI_COMM_WORLD */
    char refusal[1024];
};

extern struct job job;

/* Joins the job. The call is collective over world, which has the ranks of MPI_COMM_WORLD and on
 * which nobody else talks meanwhile. It never fails: without a job all collectives stay with the
 * MPI. */
void job_join(MPI_Comm world);

/* Waits for all ranks, and writes the report. The call is collective over job.world, at the begin
 * of MPI_Finalize. */
void job_meet_at_end(void);

/* Leaves the job and frees everything. The groups must be free. The call is local. */
void job_leave(void);

/* Tells the manager why collectives of this program stay with the MPI. Only the first call on rank
 * 0 of MPI_COMM_WORLD counts. */
void job_tell_fallback(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the program on all ranks, with a line on stderr that says why. Of a host's ranks the first
 * one that comes here speaks. */
_Noreturn void job_end(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether there is no job because none is wanted, while each communicator still gets its
 * verdict. */
bool job_is_weighed(void);

/* True between MPI_Init and MPI_Finalize in the process that called them, and false in a child made
 * by fork(). */
bool job_is_own(void);

/* Whether there is a job and this process joined it, instead of being a child made by fork(). */
bool job_usable(void);

#endif
