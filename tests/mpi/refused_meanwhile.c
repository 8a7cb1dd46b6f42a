/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread makes communicators, whose trees are refused by a quota, and calls collectives on them
 * at once; others move the MPI meanwhile, and so learn of the refusal between two looks of the
 * first. Every sum is checked.
 *
 * usage: refused_meanwhile [communicators = 400]
 */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { MOVERS = 2 };

static atomic_bool is_over;

static void *move(void *argument)
{
    int found;

    while (!atomic_load(&is_over))
        MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    return argument;
}

/* Another while for each communicator, so that the refusal comes at every moment of the call. */
static void wait_a_while(long number)
{
    double until = MPI_Wtime() + (double)(number * 7 % 400) * 0.5e-6;

    while (MPI_Wtime() < until)
        ;
}

int main(int argc, char **argv)
{
    int rank, ranks, level, one = 1, sum;
    pthread_t movers[MOVERS];
    MPI_Comm comm;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(level == MPI_THREAD_MULTIPLE, "the MPI gives level %d", level);
    long many = argument(argc, argv, 1, 400);
    for (int i = 0; i < MOVERS; i++)
        CHECK(pthread_create(&movers[i], NULL, move, NULL) == 0, "no thread");
    for (long i = 0; i < many; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        sum = 0;
        wait_a_while(i);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        CHECK(sum == ranks, "communicator %ld: the sum is %d", i, sum);
        MPI_Comm_free(&comm);
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < MOVERS; i++)
        pthread_join(movers[i], NULL);
    MPI_Finalize();
    if (rank == 0)
        printf("{\"test\": \"refused_meanwhile\", \"ranks\": %d, \"communicators\": %ld}\n", ranks, many);
    return 0;
}
