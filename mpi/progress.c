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

/* This is short beside a network round trip, and long beside the step itself. */
#define REST_NS 100000

/* A wait for another rank looks all the time at first. */
#define EAGER_NS 500000

/* The helper thread's rest. An answer about a failed tree may wait this long; at 100 looks a second
 * the helper's cost cannot be measured. */
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

/* Whether another rank may be waiting for an answer from this one. It asks our own library only and
 * does not touch the MPI. */
static bool word_may_be_owed(void)
{
    if (!registry_trylock())
        return false; /* a wrapped call is at work, and answers */
    bool owed = registry_any_unsettled() || !mailbox_idle();
    registry_unlock();
    return owed;
}

static void *help(void *unused)
{
    static const struct timespec rest = {.tv_nsec = HELPER_REST_NS};

    while (helper_runs) {
        if (word_may_be_owed())
            progress();
        nanosleep(&rest, NULL);
    }
    return unused;
}

bool progress_bears_second_thread(void)
{
#ifdef OPEN_MPI
    return false;
#else
    return true;
#endif
}

void progress_start_helper(void)
{
    sigset_t all, before;
    int level;

    PMPI_Query_thread(&level);
    if (level != MPI_THREAD_MULTIPLE || !progress_bears_second_thread())
        return;
    sigfillset(&all);
    /* The program's signals are for the program's own threads. */
    pthread_sigmask(SIG_SETMASK, &all, &before);
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

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
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

int progress_until_done(MPI_Request *request)
{
    uint64_t rest_from_ns = clock_ns(CLOCK_MONOTONIC) + EAGER_NS;
    int done = 0;

    for (;;) {
        int result = PMPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (result != MPI_SUCCESS || done)
            return result;
        if (clock_ns(CLOCK_MONOTONIC) < rest_from_ns) {
            progress();
            sched_yield();
        } else {
            progress_and_rest();
        }
    }
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
    return clock_ns(CLOCK_MONOTONIC) / 1000000;
}
