/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include "job.h"
#include "mailbox.h"
#include "recovery.h"
#include "registry.h"

#include <stddef.h>
#include <time.h>

/* Short against a network round trip, long against the step itself. */
#define REST_NS 100000

void progress_open(MPI_Comm world)
{
    mailbox_open(world);
}

void progress(void)
{
    if (!registry_trylock())
        return; /* another thread is doing just this */
    mailbox_poll(recovery_handle);
    registry_unlock();
}

void progress_while_waiting(void *ctx)
{
    (void)ctx;
    progress();
}

void progress_and_rest(void)
{
    static const struct timespec rest = {.tv_nsec = REST_NS};

    progress();
    nanosleep(&rest, NULL);
}

static bool nothing_left_to_send(void)
{
    registry_lock();
    bool idle = mailbox_idle();
    registry_unlock();
    return idle;
}

void progress_until_all_arrive(MPI_Comm world)
{
    MPI_Request barrier;
    int arrived = 0;

    PMPI_Ibarrier(world, &barrier);
    while (!arrived || !nothing_left_to_send()) {
        progress_and_rest();
        PMPI_Test(&barrier, &arrived, MPI_STATUS_IGNORE);
    }
}

uint64_t progress_clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
