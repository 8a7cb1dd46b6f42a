/* SPDX-License-Identifier: Apache-2.0
 *
 * Times every collective as Intel's MPI Benchmarks do: calls back to back, the average of a run, of
 * which the best of several counts; the slowest rank's. Every value of one call before each run is
 * checked, and each rank gives other ones.
 *
 * usage: benchmarks [largest block in bytes = 65536] [runs = 5] [milliseconds of a run = 20]
 *                   [non-blocking: each is begun and waited for]
 *
 * Rank 0 prints one JSON line per collective and length, with microseconds per call.
 */
#include "check.h"
#include "values.h"

#include <stdbool.h>
#include <string.h>

static int rank, ranks;
static int *in, *out, *counts, *offsets;
static bool waits; /* for what was begun; else the calls block */

enum {
    BARRIER, BCAST, REDUCE, ALLREDUCE, ALLGATHER, REDUCE_SCATTER_BLOCK, GATHER, SCATTER, ALLTOALL, ALLGATHERV, REDUCE_SCATTER, SCAN,
    EXSCAN, GATHERV, SCATTERV, ALLTOALLV, KINDS
};

static const char *const NAMES[KINDS][2] = {
    {"MPI_Barrier", "MPI_Ibarrier"}, {"MPI_Bcast", "MPI_Ibcast"}, {"MPI_Reduce", "MPI_Ireduce"}, {"MPI_Allreduce", "MPI_Iallreduce"},
    {"MPI_Allgather", "MPI_Iallgather"}, {"MPI_Reduce_scatter_block", "MPI_Ireduce_scatter_block"}, {"MPI_Gather", "MPI_Igather"},
    {"MPI_Scatter", "MPI_Iscatter"}, {"MPI_Alltoall", "MPI_Ialltoall"}, {"MPI_Allgatherv", "MPI_Iallgatherv"},
    {"MPI_Reduce_scatter", "MPI_Ireduce_scatter"}, {"MPI_Scan", "MPI_Iscan"}, {"MPI_Exscan", "MPI_Iexscan"},
    {"MPI_Gatherv", "MPI_Igatherv"}, {"MPI_Scatterv", "MPI_Iscatterv"}, {"MPI_Alltoallv", "MPI_Ialltoallv"},
};

/* The blocking call, or the one that is begun and waited for. */
#define CALL(name, lower, ...) \
    do { \
        if (waits) \
            MPI_I##lower(__VA_ARGS__, MPI_COMM_WORLD, &request); \
        else \
            MPI_##name(__VA_ARGS__, MPI_COMM_WORLD); \
    } while (0)

static void call(int kind, int n)
{
    MPI_Request request = MPI_REQUEST_NULL;

    switch (kind) {
    case BARRIER:
        if (waits)
            MPI_Ibarrier(MPI_COMM_WORLD, &request);
        else
            MPI_Barrier(MPI_COMM_WORLD);
        break;
    case BCAST:
        CALL(Bcast, bcast, out, n, MPI_INT, 0);
        break;
    case REDUCE:
        CALL(Reduce, reduce, in, out, n, MPI_INT, MPI_SUM, 0);
        break;
    case ALLREDUCE:
        CALL(Allreduce, allreduce, in, out, n, MPI_INT, MPI_SUM);
        break;
    case ALLGATHER:
        CALL(Allgather, allgather, in, n, MPI_INT, out, n, MPI_INT);
        break;
    case REDUCE_SCATTER_BLOCK:
        CALL(Reduce_scatter_block, reduce_scatter_block, in, out, n, MPI_INT, MPI_SUM);
        break;
    case GATHER:
        CALL(Gather, gather, in, n, MPI_INT, out, n, MPI_INT, 0);
        break;
    case SCATTER:
        CALL(Scatter, scatter, in, n, MPI_INT, out, n, MPI_INT, 0);
        break;
    case ALLTOALL:
        CALL(Alltoall, alltoall, in, n, MPI_INT, out, n, MPI_INT);
        break;
    case ALLGATHERV:
        CALL(Allgatherv, allgatherv, in, n, MPI_INT, out, counts, offsets, MPI_INT);
        break;
    case REDUCE_SCATTER:
        CALL(Reduce_scatter, reduce_scatter, in, out, counts, MPI_INT, MPI_SUM);
        break;
    case SCAN:
        CALL(Scan, scan, in, out, n, MPI_INT, MPI_SUM);
        break;
    case EXSCAN:
        CALL(Exscan, exscan, in, out, n, MPI_INT, MPI_SUM);
        break;
    case GATHERV:
        CALL(Gatherv, gatherv, in, n, MPI_INT, out, counts, offsets, MPI_INT, 0);
        break;
    case SCATTERV:
        CALL(Scatterv, scatterv, in, counts, offsets, MPI_INT, out, n, MPI_INT, 0);
        break;
    default:
        CALL(Alltoallv, alltoallv, in, counts, offsets, MPI_INT, out, counts, offsets, MPI_INT);
    }
    if (waits)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Element i of block `from` of what a call brings, where it brings n elements of each rank, or n in
 * all. Rank 0 is the root. */
static int expected_of(int kind, int from, int i, int n)
{
    size_t own = (size_t)rank * (size_t)n + (size_t)i;

    switch (kind) {
    case BCAST:
        return given(0, (size_t)i);
    case SCATTER:
    case SCATTERV:
        return given(0, own);
    case ALLTOALL:
    case ALLTOALLV:
        return given(from, own);
    case SCAN:
        return sum_before(rank + 1, (size_t)i);
    case EXSCAN:
        return sum_before(rank, (size_t)i);
    case REDUCE_SCATTER_BLOCK:
    case REDUCE_SCATTER:
        return sum_before(ranks, own);
    case REDUCE:
    case ALLREDUCE:
        return sum_before(ranks, (size_t)i);
    default:
        return given(from, (size_t)i);
    }
}

static bool brings_blocks(int kind)
{
    return kind == ALLGATHER || kind == GATHER || kind == ALLTOALL || kind == ALLGATHERV || kind == GATHERV || kind == ALLTOALLV;
}

static void check(int kind, int n)
{
    bool is_for_root = kind == REDUCE || kind == GATHER || kind == GATHERV;

    memset(out, 0, (size_t)n * (size_t)ranks * sizeof *out + sizeof *out);
    if (kind == BCAST && rank == 0)
        for (int i = 0; i < n; i++)
            out[i] = given(0, (size_t)i);
    call(kind, n);
    if (kind == BARRIER || (is_for_root && rank != 0) || (kind == EXSCAN && rank == 0))
        return;
    for (int from = 0; from < (brings_blocks(kind) ? ranks : 1); from++)
        for (int i = 0; i < n; i++) {
            int got = out[(size_t)from * (size_t)n + (size_t)i], expected = expected_of(kind, from, i, n);
            CHECK(got == expected, "%s of %d ints: element %d of block %d is %d instead of %d", NAMES[kind][waits], n, i, from, got, expected);
        }
}

/* The slowest rank's seconds for so many calls. */
static double run(int kind, int n, long calls)
{
    double mine, slowest;

    MPI_Barrier(MPI_COMM_WORLD);
    mine = MPI_Wtime();
    for (long i = 0; i < calls; i++)
        call(kind, n);
    mine = MPI_Wtime() - mine;
    PMPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

static double best(int kind, int n, long runs, double span)
{
    double took = run(kind, n, 3) / 3, least = 0;
    long calls = took * 3 > span ? 3 : (long)(span / took);

    for (long i = 0; i < runs; i++) {
        check(kind, n);
        took = run(kind, n, calls) / (double)calls;
        least = i == 0 || took < least ? took : least;
    }
    return least;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    long largest = argument(argc, argv, 1, 65536), runs = argument(argc, argv, 2, 5);
    double span = (double)argument(argc, argv, 3, 20) / 1e3;
    waits = argc > 4 && strcmp(argv[4], "non-blocking") == 0;
    size_t space = ((size_t)largest / sizeof *in + 1) * (size_t)ranks;

    in = malloc(space * sizeof *in);
    out = malloc(space * sizeof *out);
    counts = malloc((size_t)ranks * sizeof *counts);
    offsets = malloc((size_t)ranks * sizeof *offsets);
    CHECK(in != NULL && out != NULL && counts != NULL && offsets != NULL, "no memory");
    for (size_t i = 0; i < space; i++)
        in[i] = given(rank, i);
    for (int kind = 0; kind < KINDS; kind++)
        for (long bytes = kind == BARRIER ? 0 : 4; bytes <= (kind == BARRIER ? 0 : largest); bytes *= 4) {
            int n = (int)(bytes / (long)sizeof *in);
            for (int r = 0; r < ranks; r++) {
                counts[r] = n;
                offsets[r] = r * n;
            }
            double took = best(kind, n, runs, span);
            if (rank == 0) {
                printf("{\"test\": \"benchmarks\", \"collective\": \"%s\", \"ranks\": %d, \"bytes\": %ld, \"us\": %.2f}\n", NAMES[kind][waits],
                       ranks, bytes, took * 1e6);
                fflush(stdout);
            }
            if (kind == BARRIER)
                break;
        }
    free(in);
    free(out);
    free(counts);
    free(offsets);
    MPI_Finalize();
    return 0;
}
