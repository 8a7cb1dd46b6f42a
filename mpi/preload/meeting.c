/* SPDX-License-Identifier: Apache-2.0 */
#include "meeting.h"

#include "config.h"
#include "notice.h"
#include "pmpi.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

/* MPI_Comm_create_group matches by the tag. Any program may use any tag, but hardly this one on
 * MPI_COMM_WORLD; every MPI takes tags up to 32767. */
#define TAG 29554

/* Rank 0 tells, and the launcher then ends the others. If rank 0 has no library, the next one tells
 * this much later, and so on. */
#define TURN_MS 300
#define TURNS 20

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t limit_ms;
    int rank;
    bool over;
} meeting = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct timespec time_limit(void)
{
    struct timespec end;
    uint64_t turn = (uint64_t)(meeting.rank < TURNS ? meeting.rank : TURNS);
    uint64_t span_ms = meeting.limit_ms + turn * TURN_MS;

    clock_gettime(CLOCK_MONOTONIC, &end);
    uint64_t nanoseconds = (uint64_t)end.tv_nsec + span_ms % 1000 * 1000000;
    end.tv_sec += (time_t)(span_ms / 1000 + nanoseconds / 1000000000);
    end.tv_nsec = (long)(nanoseconds % 1000000000);
    return end;
}

/* Runs in a thread of its own, because the call that waits cannot be given up. For the same reason
 * it cannot call MPI_Abort, for which the MPI would have to allow several threads; a launcher ends
 * the program when one of its processes fails. */
static void *watch(void *unused)
{
    struct timespec end = time_limit();
    bool late = false;

    pthread_mutex_lock(&meeting.lock);
    while (!meeting.over && !late)
        late = pthread_cond_timedwait(&meeting.changed, &meeting.lock, &end) != 0;
    late = late && !meeting.over;
    pthread_mutex_unlock(&meeting.lock);
    if (late) {
        notice("rank %d waited in MPI_Init for %u ms for ranks of this program that did not come through this library, and ends "
               "the program. Let all of its applications preload libtrib_mpi.so on all hosts, or none; one that initialises MPI in "
               "Fortran does not come through it. TRIB_TIMEOUT_MS sets how long ranks wait",
               meeting.rank, (unsigned)meeting.limit_ms);
        _exit(1);
    }
    return unused;
}

static bool start_watch(pthread_t *thread)
{
    pthread_condattr_t monotonic;
    sigset_t all, before;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&meeting.changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sigfillset(&all);
    /* The program's signals are for the program's own threads. */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool runs = pthread_create(thread, NULL, watch, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return runs;
}

static void end_watch(pthread_t thread)
{
    pthread_mutex_lock(&meeting.lock);
    meeting.over = true;
    pthread_cond_signal(&meeting.changed);
    pthread_mutex_unlock(&meeting.lock);
    pthread_join(thread, NULL);
}

MPI_Comm meeting_hold(void)
{
    MPI_Comm world = MPI_COMM_NULL;
    MPI_Group all;
    pthread_t thread;

    PMPI_Comm_rank(MPI_COMM_WORLD, &meeting.rank);
    meeting.limit_ms = config_timeout_ms();
    bool watched = start_watch(&thread); /* without memory for it a rank waits as long as it takes */
    PMPI_Comm_group(MPI_COMM_WORLD, &all);
    PMPI_Comm_create_group(MPI_COMM_WORLD, all, TAG, &world);
    PMPI_Group_free(&all);
    if (watched)
        end_watch(thread);
    return world;
}
