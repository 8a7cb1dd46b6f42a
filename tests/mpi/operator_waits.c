/* SPDX-License-Identifier: Apache-2.0
 *
 * An operator of the program's own waits for another thread, which begins and ends a collective of
 * its own meanwhile: no lock of the MPI, or of a library inside it, may be held while an operator
 * runs.
 *
 * usage: operator_waits
 */
#include "check.h"

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#define PATIENCE_S 20

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool in_operator, other_is_done, was_late;
static MPI_Comm others;
static int rank, ranks;

/* Returns false if it takes too long. The lock is held. */
static bool await(const bool *what)
{
    struct timespec end;
    int late = 0;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE_S;
    while (!*what && late == 0)
        late = pthread_cond_timedwait(&changed, &lock, &end);
    return *what;
}

static void tell(bool *what)
{
    pthread_mutex_lock(&lock);
    *what = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void add_slowly(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)type;
    tell(&in_operator);
    pthread_mutex_lock(&lock);
    was_late |= !await(&other_is_done);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < *length; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

static void *other(void *unused)
{
    int one = 1, sum = 0, done = 0;
    MPI_Request request;

    pthread_mutex_lock(&lock);
    if (rank > 0)
        await(&in_operator);
    pthread_mutex_unlock(&lock);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, others, &request);
    while (!done)
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    CHECK(sum == ranks, "sum %d", sum);
    tell(&other_is_done);
    return unused;
}

int main(int argc, char **argv)
{
    int level, mine, scanned = -1, done = 0;
    MPI_Request request;
    pthread_t thread;
    MPI_Op own;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    CHECK(level == MPI_THREAD_MULTIPLE, "thread level %d", level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_dup(MPI_COMM_WORLD, &others);
    MPI_Op_create(add_slowly, 1, &own);
    MPI_Barrier(others);
    MPI_Barrier(MPI_COMM_WORLD);
    pthread_create(&thread, NULL, other, NULL);
    mine = rank;
    MPI_Iscan(&mine, &scanned, 1, MPI_INT, own, MPI_COMM_WORLD, &request);
    while (!done)
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    pthread_join(thread, NULL);
    CHECK(!was_late, "the other thread came to no end within %d s", PATIENCE_S);
    CHECK(scanned == rank * (rank + 1) / 2, "scan %d", scanned);
    MPI_Op_free(&own);
    MPI_Comm_free(&others);
    MPI_Finalize();
    if (rank == 0)
        printf("{\"test\": \"operator_waits\", \"ranks\": %d}\n", ranks);
    return 0;
}
