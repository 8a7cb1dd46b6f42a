/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives of long blocks, once for each length from 16 KiB to 1 MiB a rank, doubled each time;
 * every value is checked. reduce_scatter is called once with blocks of one length, and once with
 * blocks of two; allgatherv once with blocks of one length, and once with all but one empty.
 */
#include "check.h"

#include <string.h>

#define SHORTEST (16 << 10)
#define LONGEST (1 << 20)

static int rank, ranks;
static int *in, *out, *counts, *offsets;

/* Every rank gives element i as its number + i; this is the sum of all ranks'. */
static int sum(int i)
{
    return ranks * (ranks - 1) / 2 + ranks * i;
}

static void fill(int count)
{
    for (int i = 0; i < count; i++)
        in[i] = rank + i;
    memset(out, 0, (size_t)count * sizeof *out);
}

static void expect_sums(const char *what, int before, int count)
{
    for (int i = 0; i < count; i++)
        CHECK(out[i] == sum(before + i), "%s of %d ints: element %d is %d instead of %d", what, count, i, out[i], sum(before + i));
}

static void allgather(int n)
{
    fill(n * ranks);
    MPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < n * ranks; i++)
        CHECK(out[i] == i / n + i % n, "MPI_Allgather of %d ints: element %d is %d", n, i, out[i]);
}

/* Of the ranks behind rank 0 each gives so many. */
static void allgatherv(int n, int others)
{
    int all = 0;

    for (int r = 0; r < ranks; r++) {
        counts[r] = r == 0 ? n : others;
        offsets[r] = all;
        all += counts[r];
    }
    fill(n * ranks);
    MPI_Allgatherv(in, counts[rank], MPI_INT, out, counts, offsets, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < counts[r]; i++)
            CHECK(out[offsets[r] + i] == r + i, "MPI_Allgatherv of %d ints: element %d of rank %d is %d", n, i, r, out[offsets[r] + i]);
}

static void reduce_scatter_block(int n)
{
    fill(n * ranks);
    MPI_Reduce_scatter_block(in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect_sums("MPI_Reduce_scatter_block", n * rank, n);
}

/* Ranks of odd numbers get so many elements less. */
static void reduce_scatter(int n, int less)
{
    int before = 0, all = 0;

    for (int r = 0; r < ranks; r++) {
        counts[r] = n - r % 2 * less;
        before += r < rank ? counts[r] : 0;
        all += counts[r];
    }
    fill(all);
    MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect_sums("MPI_Reduce_scatter", before, counts[rank]);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    in = malloc((size_t)LONGEST * (size_t)ranks);
    out = malloc((size_t)LONGEST * (size_t)ranks);
    counts = malloc((size_t)ranks * sizeof *counts);
    offsets = malloc((size_t)ranks * sizeof *offsets);
    CHECK(in != NULL && out != NULL && counts != NULL && offsets != NULL, "no memory");
    for (int bytes = SHORTEST; bytes <= LONGEST; bytes *= 2) {
        int n = bytes / (int)sizeof *in;
        allgather(n);
        allgatherv(n, n);
        allgatherv(n, 0);
        reduce_scatter_block(n);
        reduce_scatter(n, 0);
        reduce_scatter(n, 1);
    }
    free(in);
    free(out);
    free(counts);
    free(offsets);
    MPI_Finalize();
    return 0;
}
