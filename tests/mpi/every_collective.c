/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls every collective of MPI 3 that the tree does not take once, and MPI_Allreduce once. Then it
 * ends, or all ranks abort.
 *
 *   every_collective end|abort
 *
 * Rank 0 prints one JSON line: the names of those that the tree does not take.
 */
#include "check.h"

#include <string.h>

#define RANKS_MAX 64

static char called[4096];

static void note(const char *name)
{
    size_t used = strlen(called);

    snprintf(called + used, sizeof called - used, "%s\"%s\"", used == 0 ? "" : ", ", name);
}

#define CALL(name, ...) \
    do { \
        note("MPI_" #name); \
        CHECK(MPI_##name(__VA_ARGS__) == MPI_SUCCESS, "MPI_" #name " failed"); \
    } while (0)

#define START(name, ...) \
    do { \
        MPI_Request request; \
        note("MPI_" #name); \
        CHECK(MPI_##name(__VA_ARGS__, &request) == MPI_SUCCESS, "MPI_" #name " failed"); \
        MPI_Wait(&request, MPI_STATUS_IGNORE); \
    } while (0)

static int in[RANKS_MAX], out[RANKS_MAX], counts[RANKS_MAX], displacements[RANKS_MAX], bytes[RANKS_MAX];
static MPI_Datatype types[RANKS_MAX];

static void blocking(MPI_Comm comm, MPI_Comm ring)
{
    CALL(Bcast, in, 1, MPI_INT, 0, comm);
    CALL(Gather, in, 1, MPI_INT, out, 1, MPI_INT, 0, comm);
    CALL(Gatherv, in, 1, MPI_INT, out, counts, displacements, MPI_INT, 0, comm);
    CALL(Scatter, in, 1, MPI_INT, out, 1, MPI_INT, 0, comm);
    CALL(Scatterv, in, counts, displacements, MPI_INT, out, 1, MPI_INT, 0, comm);
    CALL(Allgather, in, 1, MPI_INT, out, 1, MPI_INT, comm);
    CALL(Allgatherv, in, 1, MPI_INT, out, counts, displacements, MPI_INT, comm);
    CALL(Alltoall, in, 1, MPI_INT, out, 1, MPI_INT, comm);
    CALL(Alltoallv, in, counts, displacements, MPI_INT, out, counts, displacements, MPI_INT, comm);
    CALL(Alltoallw, in, counts, bytes, types, out, counts, bytes, types, comm);
    CALL(Reduce_scatter, in, out, counts, MPI_INT, MPI_SUM, comm);
    CALL(Reduce_scatter_block, in, out, 1, MPI_INT, MPI_SUM, comm);
    CALL(Scan, in, out, 1, MPI_INT, MPI_SUM, comm);
    CALL(Exscan, in, out, 1, MPI_INT, MPI_SUM, comm);
    CALL(Neighbor_allgather, in, 1, MPI_INT, out, 1, MPI_INT, ring);
    CALL(Neighbor_allgatherv, in, 1, MPI_INT, out, counts, displacements, MPI_INT, ring);
    CALL(Neighbor_alltoall, in, 1, MPI_INT, out, 1, MPI_INT, ring);
    CALL(Neighbor_alltoallv, in, counts, displacements, MPI_INT, out, counts, displacements, MPI_INT, ring);
    MPI_Aint far[RANKS_MAX] = {0, sizeof(int)};
    CALL(Neighbor_alltoallw, in, counts, far, types, out, counts, far, types, ring);
}

static void non_blocking(MPI_Comm comm, MPI_Comm ring)
{
    START(Ibarrier, comm);
    START(Ibcast, in, 1, MPI_INT, 0, comm);
    START(Igather, in, 1, MPI_INT, out, 1, MPI_INT, 0, comm);
    START(Igatherv, in, 1, MPI_INT, out, counts, displacements, MPI_INT, 0, comm);
    START(Iscatter, in, 1, MPI_INT, out, 1, MPI_INT, 0, comm);
    START(Iscatterv, in, counts, displacements, MPI_INT, out, 1, MPI_INT, 0, comm);
    START(Iallgather, in, 1, MPI_INT, out, 1, MPI_INT, comm);
    START(Iallgatherv, in, 1, MPI_INT, out, counts, displacements, MPI_INT, comm);
    START(Ialltoall, in, 1, MPI_INT, out, 1, MPI_INT, comm);
    START(Ialltoallv, in, counts, displacements, MPI_INT, out, counts, displacements, MPI_INT, comm);
    START(Ialltoallw, in, counts, bytes, types, out, counts, bytes, types, comm);
    START(Ireduce, in, out, 1, MPI_INT, MPI_SUM, 0, comm);
    START(Iallreduce, in, out, 1, MPI_INT, MPI_SUM, comm);
    START(Ireduce_scatter, in, out, counts, MPI_INT, MPI_SUM, comm);
    START(Ireduce_scatter_block, in, out, 1, MPI_INT, MPI_SUM, comm);
    START(Iscan, in, out, 1, MPI_INT, MPI_SUM, comm);
    START(Iexscan, in, out, 1, MPI_INT, MPI_SUM, comm);
    START(Ineighbor_allgather, in, 1, MPI_INT, out, 1, MPI_INT, ring);
    START(Ineighbor_allgatherv, in, 1, MPI_INT, out, counts, displacements, MPI_INT, ring);
    START(Ineighbor_alltoall, in, 1, MPI_INT, out, 1, MPI_INT, ring);
    START(Ineighbor_alltoallv, in, counts, displacements, MPI_INT, out, counts, displacements, MPI_INT, ring);
    MPI_Aint far[RANKS_MAX] = {0, sizeof(int)};
    START(Ineighbor_alltoallw, in, counts, far, types, out, counts, far, types, ring);
}

int main(int argc, char **argv)
{
    int rank, size, sum, periodic = 1;
    MPI_Comm ring;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(argc == 2 && size <= RANKS_MAX, "usage: every_collective end|abort, on at most %d ranks", RANKS_MAX);
    for (int i = 0; i < size; i++) {
        counts[i] = 1;
        displacements[i] = i;
        bytes[i] = i * (int)sizeof(int);
        types[i] = MPI_INT;
    }
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
    blocking(MPI_COMM_WORLD, ring);
    non_blocking(MPI_COMM_WORLD, ring);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size * (size - 1) / 2, "the ranks sum up to %d", sum);
    if (strcmp(argv[1], "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (rank == 0)
        printf("[%s]\n", called);
    MPI_Comm_free(&ring);
    MPI_Finalize();
    return 0;
}
