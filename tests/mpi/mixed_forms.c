/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks mix the two forms of each operation, as MPI lets them: even ones call that for large
 * counts, odd ones the usual one. The former are looked up, as mpi4py does, because a preloaded
 * library may show them where the MPI has none. Values are checked.
 *
 * usage: mixed_forms [rounds = 3]
 */
#include "check.h"

#include <dlfcn.h>
#include <unistd.h>

#define RANKS_MAX 16

static int rank, ranks;

/* A function under this name, of the type that its result is given to. */
static void *find(const char *name)
{
    void *found = dlsym(dlopen(NULL, RTLD_LAZY), name);

    CHECK(found != NULL, "there is no %s", name);
    return found;
}

static void allgatherv(int round)
{
    int (*large)(const void *, MPI_Count, MPI_Datatype, void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype, MPI_Comm);
    int counts[RANKS_MAX], offsets[RANKS_MAX], mine[RANKS_MAX], all[RANKS_MAX * (RANKS_MAX + 1) / 2];
    MPI_Count large_counts[RANKS_MAX];
    MPI_Aint large_offsets[RANKS_MAX];

    *(void **)&large = find("MPI_Allgatherv_c");
    for (int r = 0, next = 0; r < ranks; next += ++r) {
        large_counts[r] = counts[r] = r + 1;
        large_offsets[r] = offsets[r] = next;
    }
    for (int i = 0; i <= rank; i++)
        mine[i] = 100 * round + rank;
    if (rank % 2 == 0)
        large(mine, rank + 1, MPI_INT, all, large_counts, large_offsets, MPI_INT, MPI_COMM_WORLD);
    else
        MPI_Allgatherv(mine, rank + 1, MPI_INT, all, counts, offsets, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i <= r; i++)
            CHECK(all[offsets[r] + i] == 100 * round + r, "MPI_Allgatherv: element %d of rank %d is %d", i, r, all[offsets[r] + i]);
}

/* Of blocks of one length, or each an element longer than that before it. */
static void reduce_scatter(int round, int longer)
{
    int (*large)(const void *, void *, const MPI_Count *, MPI_Datatype, MPI_Op, MPI_Comm);
    int counts[RANKS_MAX], given[RANKS_MAX * (RANKS_MAX + 1) / 2], block[RANKS_MAX], all = 0, before = 0;
    MPI_Count large_counts[RANKS_MAX];

    *(void **)&large = find("MPI_Reduce_scatter_c");
    for (int r = 0; r < ranks; r++) {
        large_counts[r] = counts[r] = 1 + longer * r;
        before += r < rank ? counts[r] : 0;
        all += counts[r];
    }
    for (int i = 0; i < all; i++)
        given[i] = round + i;
    if (rank % 2 == 0)
        large(given, block, large_counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    else
        MPI_Reduce_scatter(given, block, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < counts[rank]; i++)
        CHECK(block[i] == ranks * (round + before + i), "MPI_Reduce_scatter: element %d is %d", i, block[i]);
}

static void bcast(int round)
{
    int (*large)(void *, MPI_Count, MPI_Datatype, int, MPI_Comm);
    int value = rank == 0 ? 7 + round : -1;

    *(void **)&large = find("MPI_Bcast_c");
    if (rank % 2 == 0)
        large(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
    else
        MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
    CHECK(value == 7 + round, "MPI_Bcast gives %d", value);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(ranks <= RANKS_MAX, "at most %d ranks", RANKS_MAX);
    alarm(30); /* ranks that do not meet would wait for ever */
    for (int round = 0; round < argument(argc, argv, 1, 3); round++) {
        allgatherv(round);
        reduce_scatter(round, 0);
        reduce_scatter(round, 1);
        bcast(round);
    }
    MPI_Finalize();
    return 0;
}
