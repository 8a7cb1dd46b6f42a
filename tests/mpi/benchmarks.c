/* SPDX-License-Identifier: Apache-2.0
 *
 * Times every collective as Intel's MPI Benchmarks do: calls back to back, the average of a run, of
 * which the best of several counts; the slowest rank's. The values of one call of each run are
 * checked.
 *
 * usage: benchmarks [largest block in bytes = 65536] [runs = 5] [milliseconds of a run = 20]
 *
 * Rank 0 prints one JSON line per collective and length, with microseconds per call.
 */
#include "check.h"

#include <string.h>

static int rank, ranks;
static int *in, *out, *counts, *offsets;

enum { BARRIER, BCAST, REDUCE, ALLREDUCE, ALLGATHER, REDUCE_SCATTER_BLOCK, GATHER, SCATTER, ALLTOALL, ALLGATHERV, REDUCE_SCATTER, SCAN, KINDS };

static const char *const NAMES[KINDS] = {
    "MPI_Barrier", "MPI_Bcast", "MPI_Reduce", "MPI_Allreduce", "MPI_Allgather", "MPI_Reduce_scatter_block", "MPI_Gather",
    "MPI_Scatter", "MPI_Alltoall", "MPI_Allgatherv", "MPI_Reduce_scatter", "MPI_Scan",
};

static void call(int kind, int n)
{
    MPI_Comm comm = MPI_COMM_WORLD;

    switch (kind) {
    case BARRIER:
        MPI_Barrier(comm);
        break;
    case BCAST:
        MPI_Bcast(out, n, MPI_INT, 0, comm);
        break;
    case REDUCE:
        MPI_Reduce(in, out, n, MPI_INT, MPI_SUM, 0, comm);
        break;
    case ALLREDUCE:
        MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, comm);
        break;
    case ALLGATHER:
        MPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, comm);
        break;
    case REDUCE_SCATTER_BLOCK:
        MPI_Reduce_scatter_block(in, out, n, MPI_INT, MPI_SUM, comm);
        break;
    case GATHER:
        MPI_Gather(in, n, MPI_INT, out, n, MPI_INT, 0, comm);
        break;
    case SCATTER:
        MPI_Scatter(in, n, MPI_INT, out, n, MPI_INT, 0, comm);
        break;
    case ALLTOALL:
        MPI_Alltoall(in, n, MPI_INT, out, n, MPI_INT, comm);
        break;
    case ALLGATHERV:
        MPI_Allgatherv(in, n, MPI_INT, out, counts, offsets, MPI_INT, comm);
        break;
    case REDUCE_SCATTER:
        MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, comm);
        break;
    default:
        MPI_Scan(in, out, n, MPI_INT, MPI_SUM, comm);
    }
}

/* Every rank gives its number plus one. */
static void check(int kind, int n)
{
    int sum = ranks * (ranks + 1) / 2, last = n > 0 ? n - 1 : 0, got, expected;

    memset(out, 0, (size_t)n * (size_t)ranks * sizeof *out + sizeof *out);
    if (kind == BCAST && rank == 0)
        for (int i = 0; i < n; i++)
            out[i] = 77;
    call(kind, n);
    if (kind == BARRIER || ((kind == REDUCE || kind == GATHER) && rank != 0))
        return;
    got = kind == ALLGATHER || kind == GATHER || kind == ALLTOALL || kind == ALLGATHERV ? out[n * ranks - 1] : out[last];
    expected = kind == BCAST ? 77 : kind == SCATTER ? 1 : kind == SCAN ? (rank + 1) * (rank + 2) / 2
             : kind == ALLGATHER || kind == GATHER || kind == ALLTOALL || kind == ALLGATHERV ? ranks : sum;
    CHECK(got == expected, "%s of %d ints: %d instead of %d", NAMES[kind], n, got, expected);
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
    size_t space = ((size_t)largest / sizeof *in + 1) * (size_t)ranks;

    in = malloc(space * sizeof *in);
    out = malloc(space * sizeof *out);
    counts = malloc((size_t)ranks * sizeof *counts);
    offsets = malloc((size_t)ranks * sizeof *offsets);
    CHECK(in != NULL && out != NULL && counts != NULL && offsets != NULL, "no memory");
    for (size_t i = 0; i < space; i++)
        in[i] = rank + 1;
    for (int kind = 0; kind < KINDS; kind++)
        for (long bytes = kind == BARRIER ? 0 : 4; bytes <= (kind == BARRIER ? 0 : largest); bytes *= 4) {
            int n = (int)(bytes / (long)sizeof *in);
            for (int r = 0; r < ranks; r++) {
                counts[r] = n;
                offsets[r] = r * n;
            }
            double took = best(kind, n, runs, span);
            if (rank == 0) {
                printf("{\"test\": \"benchmarks\", \"collective\": \"%s\", \"ranks\": %d, \"bytes\": %ld, \"us\": %.2f}\n", NAMES[kind],
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
