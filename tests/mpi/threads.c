/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads in collectives at the same time (MPI_THREAD_MULTIPLE), each on communicators of its own:
 * blocking and non-blocking ones, on communicators that it duplicates and frees meanwhile, while
 * one more thread sends messages around. Every value is checked.
 *
 * usage: threads [rounds = 60] [threads = 4]
 */
#include "check.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

enum { THREADS_MAX = 16, RANKS_MAX = 16, LENGTH_MAX = 2000, DEPTH = 4, KINDS = 9 };

static int rank, ranks, rounds;
static bool collectives_go_on = true;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct worker {
    pthread_t thread;
    MPI_Comm comm;
    unsigned random; /* the same on all ranks */
    int number;
    int in[RANKS_MAX * LENGTH_MAX], out[RANKS_MAX * LENGTH_MAX];
};

static unsigned draw(struct worker *worker, unsigned below)
{
    worker->random = worker->random * 1664525u + 1013904223u;
    return (worker->random >> 16) % below;
}

/* What rank `from` gives as element i. */
static int value(const struct worker *worker, int round, int from, int i)
{
    return 7 * worker->number + 3 * round + 1000 * from + i;
}

/* The same of ranks 0 to `last` - 1 together. */
static int sum(const struct worker *worker, int round, int last, int i)
{
    return last * value(worker, round, 0, i) + 1000 * (last * (last - 1) / 2);
}

static void expect(const struct worker *worker, const int *got, int n, int from_first, int round, int from, const char *what)
{
    for (int i = 0; i < n; i++)
        CHECK(got[i] == value(worker, round, from, from_first + i), "thread %d, round %d: %s: element %d of rank %d is %d", worker->number,
              round, what, i, from, got[i]);
}

static void expect_sum(const struct worker *worker, const int *got, int n, int round, int last, const char *what)
{
    for (int i = 0; i < n; i++)
        CHECK(got[i] == sum(worker, round, last, i), "thread %d, round %d: %s: element %d is %d instead of %d", worker->number, round, what, i,
              got[i], sum(worker, round, last, i));
}

static void one_that_blocks(struct worker *worker, MPI_Comm comm, int round, int kind, int n, int root)
{
    int *in = worker->in, *out = worker->out;

    for (int i = 0; i < n * ranks; i++)
        in[i] = value(worker, round, rank, i);
    memset(out, 0xff, sizeof *out * (size_t)(n * ranks));
    switch (kind) {
    case 0:
        MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, comm);
        expect_sum(worker, out, n, round, ranks, "MPI_Allreduce");
        break;
    case 1:
        MPI_Reduce(in, out, n, MPI_INT, MPI_SUM, root, comm);
        expect_sum(worker, out, rank == root ? n : 0, round, ranks, "MPI_Reduce");
        break;
    case 2:
        MPI_Bcast(rank == root ? in : out, n, MPI_INT, root, comm);
        expect(worker, rank == root ? in : out, n, 0, round, root, "MPI_Bcast");
        break;
    case 3:
        MPI_Barrier(comm);
        break;
    case 4:
        MPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, comm);
        for (int r = 0; r < ranks; r++)
            expect(worker, out + r * n, n, 0, round, r, "MPI_Allgather");
        break;
    case 5:
        MPI_Alltoall(in, n, MPI_INT, out, n, MPI_INT, comm);
        for (int r = 0; r < ranks; r++)
            expect(worker, out + r * n, n, rank * n, round, r, "MPI_Alltoall");
        break;
    case 6:
        MPI_Scan(in, out, n, MPI_INT, MPI_SUM, comm);
        expect_sum(worker, out, n, round, rank + 1, "MPI_Scan");
        break;
    case 7:
        MPI_Gather(in, n, MPI_INT, out, n, MPI_INT, root, comm);
        for (int r = 0; rank == root && r < ranks; r++)
            expect(worker, out + r * n, n, 0, round, r, "MPI_Gather");
        break;
    default:
        MPI_Scatter(in, n, MPI_INT, out, n, MPI_INT, root, comm);
        expect(worker, out, n, rank * n, round, root, "MPI_Scatter");
    }
}

/* Several at once, waited for by turns in ways that look once and that block. */
static void some_that_do_not(struct worker *worker, MPI_Comm comm, int round, int n)
{
    int *in = worker->in, *out = worker->out, root = (int)draw(worker, (unsigned)ranks), done = 0;
    MPI_Request requests[DEPTH];
    MPI_Status statuses[DEPTH]; /* gcc takes MPICH's MPI_STATUSES_IGNORE for too short an array */

    for (int i = 0; i < n; i++) {
        in[i] = value(worker, round, rank, i);
        out[2 * n + i] = rank == root ? in[i] : -1;
    }
    MPI_Iallreduce(in, out, n, MPI_INT, MPI_SUM, comm, &requests[0]);
    MPI_Ireduce(in, out + n, n, MPI_INT, MPI_SUM, root, comm, &requests[1]);
    MPI_Ibcast(out + 2 * n, n, MPI_INT, root, comm, &requests[2]);
    MPI_Ibarrier(comm, &requests[3]);
    while (round % 2 == 0 && !done)
        MPI_Testall(DEPTH, requests, &done, statuses);
    if (!done)
        MPI_Waitall(DEPTH, requests, statuses);
    expect_sum(worker, out, n, round, ranks, "MPI_Iallreduce");
    expect_sum(worker, out + n, rank == root ? n : 0, round, ranks, "MPI_Ireduce");
    expect(worker, out + 2 * n, n, 0, round, root, "MPI_Ibcast");
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    MPI_Comm again = MPI_COMM_NULL;

    for (int round = 0; round < rounds; round++) {
        if (round % 10 == 3)
            MPI_Comm_dup(worker->comm, &again);
        MPI_Comm comm = again != MPI_COMM_NULL && round % 2 == 0 ? again : worker->comm;
        int n = 1 + (int)draw(worker, draw(worker, 3) == 0 ? LENGTH_MAX - 1 : 8), kind = (int)draw(worker, KINDS + 2);
        if (kind < KINDS)
            one_that_blocks(worker, comm, round, kind, n, (int)draw(worker, (unsigned)ranks));
        else
            some_that_do_not(worker, comm, round, n);
        if (round % 10 == 8)
            MPI_Comm_free(&again);
    }
    if (again != MPI_COMM_NULL)
        MPI_Comm_free(&again);
    return NULL;
}

static bool goes_on(void)
{
    pthread_mutex_lock(&lock);
    bool answer = collectives_go_on;
    pthread_mutex_unlock(&lock);
    return answer;
}

/* Passes a number around until rank 0, whose collectives are over, says that it is the last one. */
static void *send_around(void *argument)
{
    MPI_Comm comm = *(MPI_Comm *)argument;
    int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    long times = 0;

    for (bool last = false; !last; times++) {
        long letter[2] = {times, 0};
        if (rank == 0) {
            letter[1] = !goes_on();
            MPI_Send(letter, 2, MPI_LONG, right, 5, comm);
        }
        MPI_Recv(letter, 2, MPI_LONG, left, 5, comm, MPI_STATUS_IGNORE);
        CHECK(letter[0] == times, "letter %ld came as number %ld", letter[0], times);
        if (rank != 0)
            MPI_Send(letter, 2, MPI_LONG, right, 5, comm);
        last = letter[1] != 0;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static struct worker workers[THREADS_MAX];
    pthread_t sender;
    MPI_Comm for_letters;
    int level;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    rounds = (int)argument(argc, argv, 1, 60);
    int threads = (int)argument(argc, argv, 2, 4);
    CHECK(level == MPI_THREAD_MULTIPLE, "the MPI gives level %d", level);
    CHECK(ranks > 1 && ranks <= RANKS_MAX && threads > 0 && threads <= THREADS_MAX, "2 to %d ranks, 1 to %d threads", RANKS_MAX, THREADS_MAX);
    MPI_Comm_dup(MPI_COMM_WORLD, &for_letters);
    for (int i = 0; i < threads; i++) {
        workers[i].number = i;
        workers[i].random = (unsigned)(i + 1) * 2654435761u;
        MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm);
    }
    CHECK(pthread_create(&sender, NULL, send_around, &for_letters) == 0, "no thread");
    for (int i = 0; i < threads; i++)
        CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0, "no thread");
    for (int i = 0; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
    pthread_mutex_lock(&lock);
    collectives_go_on = false;
    pthread_mutex_unlock(&lock);
    pthread_join(sender, NULL);
    for (int i = 0; i < threads; i++)
        MPI_Comm_free(&workers[i].comm);
    MPI_Comm_free(&for_letters);
    MPI_Finalize();
    if (rank == 0)
        printf("{\"test\": \"threads\", \"ranks\": %d, \"threads\": %d, \"rounds\": %d}\n", ranks, threads, rounds);
    return 0;
}
