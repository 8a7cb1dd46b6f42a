/* SPDX-License-Identifier: Apache-2.0
 *
 * The forms for large counts of the collectives that the tree takes, each once with a few elements
 * and, if the program is told how many, MPI_Bcast_c with that many bytes.
 *
 *   large_counts [bytes]
 *
 * It needs an MPI of version 4.
 */
#include "check.h"

#include <string.h>

#define ELEMENTS 6

static void few(int rank, int size)
{
    double mine[ELEMENTS], result[ELEMENTS];
    long *blocks = malloc((size_t)size * sizeof *blocks), block = -1;

    CHECK(blocks != NULL, "out of memory");
    for (int i = 0; i < ELEMENTS; i++)
        mine[i] = rank + i;
    MPI_Allreduce_c(mine, result, ELEMENTS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    CHECK(result[1] == size * (size - 1) / 2 + size, "MPI_Allreduce_c gives %g", result[1]);
    memcpy(result, mine, sizeof result);
    MPI_Allreduce_c(MPI_IN_PLACE, result, ELEMENTS, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    CHECK(result[1] == size, "MPI_Allreduce_c in place gives %g", result[1]);
    MPI_Reduce_c(mine, result, ELEMENTS, MPI_DOUBLE, MPI_MIN, size - 1, MPI_COMM_WORLD);
    CHECK(rank != size - 1 || result[2] == 2, "MPI_Reduce_c gives %g", result[2]);
    MPI_Bcast_c(mine, ELEMENTS, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    CHECK(mine[0] == 1, "MPI_Bcast_c gives %g", mine[0]);
    long own = 3L * rank;
    MPI_Allgather_c(&own, 1, MPI_LONG, blocks, 1, MPI_LONG, MPI_COMM_WORLD);
    CHECK(blocks[size - 1] == 3L * (size - 1), "MPI_Allgather_c gives %ld", blocks[size - 1]);
    MPI_Reduce_scatter_block_c(blocks, &block, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(block == 3L * rank * size, "MPI_Reduce_scatter_block_c gives %ld", block);
    MPI_Gather_c(&block, 1, MPI_LONG, blocks, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    CHECK(rank != 0 || blocks[size - 1] == 3L * (size - 1) * size, "MPI_Gather_c gives %ld", blocks[size - 1]);
    MPI_Scatter_c(blocks, 1, MPI_LONG, &own, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    CHECK(own == block, "MPI_Scatter_c gives %ld", own);
    for (int i = 0; i < size; i++)
        blocks[i] = 10L * rank + i;
    long *others = malloc((size_t)size * sizeof *others);
    CHECK(others != NULL, "out of memory");
    MPI_Alltoall_c(blocks, 1, MPI_LONG, others, 1, MPI_LONG, MPI_COMM_WORLD);
    CHECK(others[size - 1] == 10L * (size - 1) + rank, "MPI_Alltoall_c gives %ld", others[size - 1]);
    own = rank + 1;
    MPI_Scan_c(&own, &block, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(block == (rank + 1L) * (rank + 2) / 2, "MPI_Scan_c gives %ld", block);
    MPI_Exscan_c(&own, &block, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(rank == 0 || block == rank * (rank + 1L) / 2, "MPI_Exscan_c gives %ld", block);
    free(others);
    free(blocks);
}

static void many(int rank, size_t bytes)
{
    unsigned char *vector = malloc(bytes);

    CHECK(vector != NULL, "out of memory");
    memset(vector, rank == 0 ? 0x5a : 0, bytes);
    MPI_Bcast_c(vector, (MPI_Count)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    for (size_t i = 0; i < bytes; i++)
        CHECK(vector[i] == 0x5a, "byte %zu is %02x", i, vector[i]);
    free(vector);
}

int main(int argc, char **argv)
{
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    few(rank, size);
    long bytes = argument(argc, argv, 1, 0);
    if (bytes > 0)
        many(rank, (size_t)bytes);
    MPI_Finalize();
    return 0;
}
