/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include "job.h"
#include "mailbox.h"
#include "recovery.h"
#include "registry.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

/* Short against a network round trip, long against the step itself. */
#define REST_NS 100000

/* The library calls us about every millisecond. A step that finds nothing takes well under a microsecond; one that took
 * longer than BUSY_NS moved something, and the rest of that message should not wait a millisecond per piece. */
#define BUSY_NS 3000
#define IDLE_STEPS 4
#define VISIT_NS 500000

/* A word about a failed tree may take this long; at 100 looks a second the helper costs nothing that can be measured. */
#define HELPER_REST_NS 10000000

static pthread_t helper;
static atomic_bool helper_runs;

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

static void *help(void *unused)
{
    static const struct timespec rest = {.tv_nsec = HELPER_REST_NS};

    while (helper_runs) {
        progress();
        nanosleep(&rest, NULL);
    }
    return unused;
}

void progress_start_helper(void)
{
    sigset_t all, before;
    int level;

    PMPI_Query_thread(&level);
    if (level != MPI_THREAD_MULTIPLE)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the program's signals go to the program's threads */
    helper_runs = true;
    if (pthread_create(&helper, NULL, help, NULL) != 0)
        helper_runs = false; /* ranks then answer inside wrapped calls only */
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void progress_stop_helper(void)
{
    if (atomic_exchange(&helper_runs, false))
        pthread_join(helper, NULL);
}

static uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void progress_while_waiting(void *ctx)
{
    uint64_t start_ns = clock_ns(), last_ns = start_ns, now_ns;
    int idle_steps_left = 1;

    (void)ctx;
    do {
        progress();
        now_ns = clock_ns();
        idle_steps_left = now_ns - last_ns > BUSY_NS ? IDLE_STEPS : idle_steps_left - 1;
        if (idle_steps_left > 0)
            sched_yield();
        last_ns = clock_ns();
    } while (idle_steps_left > 0 && now_ns - start_ns < VISIT_NS);
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
    return clock_ns() / 1000000;
}
