/* SPDX-License-Identifier: Apache-2.0
 *
 * Communicators that have few calls, and some that have more, blocking and not; every sum is
 * checked.
 *
 * usage: few_calls short CALLS [LATE_MS]   so many sums of one number on a communicator; the last
 *                                          rank comes to the last of them so much later
 *        few_calls waitless CALLS          the same without waiting in between
 *        few_calls persistent CALLS        so many sums by one persistent request
 *        few_calls saturated CALLS         so many sums of short integers that wrap
 *        few_calls ordered CALLS           so many sums of one number of floating point, whose
 *                                          bits are to be the same each time
 *        few_calls long BYTES              one sum of so many bytes
 *        few_calls churn COUNT             so many communicators with two sums each
 */
#include "check.h"

#include <stdint.h>
#include <string.h>
#include <time.h>

#ifdef OPEN_MPI /* 4.1 has MPI 4's persistent collectives under names of its own */
#include <mpi-ext.h>
#define ALLREDUCE_INIT MPIX_Allreduce_init
#else
#define ALLREDUCE_INIT MPI_Allreduce_init
#endif

static int rank, size;

static void sum(MPI_Comm comm, int number)
{
    int own = rank + number, all = 0;

    MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_SUM, comm);
    CHECK(all == size * number + size * (size - 1) / 2, "sum %d is %d", number, all);
}

static void be_short(MPI_Comm comm, int calls, long late_ms)
{
    for (int call = 0; call < calls; call++) {
        if (call == calls - 1 && rank == size - 1)
            nanosleep(&(struct timespec){.tv_sec = late_ms / 1000, .tv_nsec = late_ms % 1000 * 1000000}, NULL);
        sum(comm, call);
    }
}

static void be_waitless(MPI_Comm comm, int calls)
{
    int *own = malloc((size_t)calls * sizeof *own), *all = malloc((size_t)calls * sizeof *all);
    MPI_Request *requests = malloc((size_t)calls * sizeof *requests);

    CHECK(own != NULL && all != NULL && requests != NULL, "no memory for %d calls", calls);
    for (int call = 0; call < calls; call++) {
        own[call] = rank + call;
        MPI_Iallreduce(&own[call], &all[call], 1, MPI_INT, MPI_SUM, comm, &requests[call]);
    }
    MPI_Waitall(calls, requests, MPI_STATUSES_IGNORE);
    for (int call = 0; call < calls; call++)
        CHECK(all[call] == size * call + size * (size - 1) / 2, "sum %d is %d", call, all[call]);
    free(requests);
    free(all);
    free(own);
}

static void be_persistent(MPI_Comm comm, int calls)
{
    int own = 0, all = 0;
    MPI_Request request;

    ALLREDUCE_INIT(&own, &all, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request);
    for (int call = 0; call < calls; call++) {
        own = rank + call;
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(all == size * call + size * (size - 1) / 2, "sum %d is %d", call, all);
    }
    MPI_Request_free(&request);
}

/* Open MPI's AVX operators saturate and the tree wraps. Which it is is to be the same each time. */
static void be_saturated(MPI_Comm comm, int calls)
{
    int8_t own[64], all[64], first[64];

    memset(own, 100, sizeof own);
    for (int call = 0; call < calls; call++) {
        MPI_Allreduce(own, all, sizeof own, MPI_INT8_T, MPI_SUM, comm);
        if (call == 0)
            memcpy(first, all, sizeof all);
        CHECK(memcmp(all, first, sizeof all) == 0, "call %d has %d, and the first had %d", call, all[0], first[0]);
    }
}

/* What each rank gives is so much smaller than what the rank before it does that each order of the
 * ranks has another sum. */
static void be_ordered(MPI_Comm comm, int calls)
{
    double own = 1.0, first = 0;

    for (int at = 0; at < rank; at++)
        own /= 3e5;
    for (int call = 0; call < calls; call++) {
        double all = 0;
        MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, comm);
        CHECK(call == 0 || memcmp(&all, &first, sizeof all) == 0, "call %d has %a, and the first had %a", call, all, first);
        first = all;
    }
}

static void be_long(MPI_Comm comm, long bytes)
{
    int count = (int)(bytes / (long)sizeof(int)), *vector = malloc((size_t)bytes);

    CHECK(vector != NULL, "no memory for %ld bytes", bytes);
    for (int i = 0; i < count; i++)
        vector[i] = rank + i;
    MPI_Allreduce(MPI_IN_PLACE, vector, count, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < count; i++)
        CHECK(vector[i] == size * i + size * (size - 1) / 2, "element %d is %d", i, vector[i]);
    free(vector);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    long much = argument(argc, argv, 2, 0);
    MPI_Comm comm;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (long made = 0; made < (strcmp(what, "churn") == 0 ? much : 1); made++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        if (strcmp(what, "short") == 0)
            be_short(comm, (int)much, argument(argc, argv, 3, 0));
        else if (strcmp(what, "waitless") == 0)
            be_waitless(comm, (int)much);
        else if (strcmp(what, "persistent") == 0)
            be_persistent(comm, (int)much);
        else if (strcmp(what, "saturated") == 0)
            be_saturated(comm, (int)much);
        else if (strcmp(what, "ordered") == 0)
            be_ordered(comm, (int)much);
        else if (strcmp(what, "long") == 0)
            be_long(comm, much);
        else
            be_short(comm, 2, 0);
        MPI_Comm_free(&comm);
    }
    MPI_Finalize();
    return 0;
}
