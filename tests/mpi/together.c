/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a collective takes when all ranks come to it together, and none goes on before the last
 * has what it needs: from the moment when the last rank has entered until the last one has left. A
 * loop of calls with a root shows something else, as its ranks do not wait for each other. Ranks
 * compare their clocks, so all of them run on one kernel, as they do in a laboratory.
 *
 * usage: together [largest vector or block in bytes = 65536] [milliseconds for each = 300]
 *
 * Rank 0 prints one JSON line per collective and length, with the median of microseconds.
 */
#include "check.h"
#include "values.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

#define MOST 4000

enum { BCAST, REDUCE, ALLREDUCE, ALLGATHER, REDUCE_SCATTER_BLOCK, ALLTOALL, ALLGATHERV, REDUCE_SCATTER, KINDS };

static const char *const NAMES[KINDS] = {
    "MPI_Bcast", "MPI_Reduce", "MPI_Allreduce", "MPI_Allgather", "MPI_Reduce_scatter_block", "MPI_Alltoall", "MPI_Allgatherv",
    "MPI_Reduce_scatter",
};

static int rank, ranks;
static int *in, *out, *counts, *offsets;
static double entered[MOST], left[MOST], last_entered[MOST], last_left[MOST];

static double now(void)
{
    struct timespec clock;

    clock_gettime(CLOCK_MONOTONIC, &clock);
    return (double)clock.tv_sec * 1e6 + (double)clock.tv_nsec / 1e3;
}

static void call(int kind, int n)
{
    switch (kind) {
    case BCAST:
        MPI_Bcast(rank == 0 ? in : out, n, MPI_INT, 0, MPI_COMM_WORLD);
        break;
    case REDUCE:
        MPI_Reduce(in, out, n, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
        break;
    case ALLREDUCE:
        MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case ALLGATHER:
        MPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, MPI_COMM_WORLD);
        break;
    case REDUCE_SCATTER_BLOCK:
        MPI_Reduce_scatter_block(in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case ALLTOALL:
        MPI_Alltoall(in, n, MPI_INT, out, n, MPI_INT, MPI_COMM_WORLD);
        break;
    case ALLGATHERV:
        MPI_Allgatherv(in, n, MPI_INT, out, counts, offsets, MPI_INT, MPI_COMM_WORLD);
        break;
    default:
        MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
}

/* Element i of block `from` of what a call brings; rank 0 is the root. */
static int expected_of(int kind, int from, int i, int n)
{
    size_t own = (size_t)rank * (size_t)n + (size_t)i;

    switch (kind) {
    case BCAST:
        return given(0, (size_t)i);
    case ALLTOALL:
        return given(from, own);
    case ALLGATHER:
    case ALLGATHERV:
        return given(from, (size_t)i);
    case REDUCE_SCATTER_BLOCK:
    case REDUCE_SCATTER:
        return sum_before(ranks, own);
    default:
        return sum_before(ranks, (size_t)i);
    }
}

static void check(int kind, int n)
{
    int blocks = kind == ALLGATHER || kind == ALLTOALL || kind == ALLGATHERV ? ranks : 1;

    if (rank == 0 ? kind == BCAST : kind == REDUCE)
        return;
    for (int from = 0; from < blocks; from++)
        for (int i = 0; i < n; i++) {
            int got = out[from * n + i], expected = expected_of(kind, from, i, n);
            CHECK(got == expected, "%s of %d ints: element %d of block %d is %d instead of %d", NAMES[kind], n, i, from, got, expected);
        }
}

static int ascending(const void *left_one, const void *right_one)
{
    double difference = *(const double *)left_one - *(const double *)right_one;

    return (difference > 0) - (difference < 0);
}

/* The median of so many calls, in microseconds. */
static double measure(int kind, int n, int calls)
{
    for (int i = 0; i < calls; i++) {
        PMPI_Barrier(MPI_COMM_WORLD);
        entered[i] = now();
        call(kind, n);
        left[i] = now();
    }
    PMPI_Allreduce(entered, last_entered, calls, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    PMPI_Allreduce(left, last_left, calls, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < calls; i++)
        last_left[i] -= last_entered[i];
    qsort(last_left, (size_t)calls, sizeof *last_left, ascending);
    return last_left[calls / 2];
}

/* How many calls take so long, as all ranks see it. */
static int calls_in(int kind, int n, double span)
{
    double begun = now(), took;

    measure(kind, n, 5);
    took = (now() - begun) / 5;
    PMPI_Bcast(&took, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return span / took > MOST ? MOST : span / took < 5 ? 5 : (int)(span / took);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    long largest = argument(argc, argv, 1, 65536);
    double span = (double)argument(argc, argv, 2, 300) * 1e3;
    size_t space = (size_t)largest / sizeof *in * (size_t)ranks;

    in = malloc(space * sizeof *in);
    out = malloc(space * sizeof *out);
    counts = malloc((size_t)ranks * sizeof *counts);
    offsets = malloc((size_t)ranks * sizeof *offsets);
    CHECK(in != NULL && out != NULL && counts != NULL && offsets != NULL, "no memory");
    for (size_t i = 0; i < space; i++)
        in[i] = given(rank, i);
    for (int kind = 0; kind < KINDS; kind++)
        for (long bytes = 4; bytes <= largest; bytes *= 4) {
            int n = (int)(bytes / (long)sizeof *in);
            for (int r = 0; r < ranks; r++) {
                counts[r] = n;
                offsets[r] = r * n;
            }
            memset(out, 0, space * sizeof *out);
            int calls = calls_in(kind, n, span);
            double took = measure(kind, n, calls);
            check(kind, n);
            if (rank == 0) {
                printf("{\"test\": \"together\", \"collective\": \"%s\", \"ranks\": %d, \"bytes\": %ld, \"calls\": %d, \"us\": %.1f}\n",
                       NAMES[kind], ranks, bytes, calls, took);
                fflush(stdout);
            }
        }
    free(in);
    free(out);
    free(counts);
    free(offsets);
    MPI_Finalize();
    return 0;
}
