/* SPDX-License-Identifier: Apache-2.0
 *
 * Non-blocking and persistent collectives on several communicators: many under way at once, waited
 * for in other orders than they were begun, with datatypes and communicators that are freed
 * meanwhile. Every value is checked.
 *
 * usage: requests [rounds = 20] [hard: communicators are freed while requests on them are under
 * way, and        one is under way in MPI_Finalize; alone: so many persistent ones of one
 * communicator, and nothing else]
 */
#include "check.h"

#include <stdbool.h>
#include <string.h>

#ifdef OPEN_MPI /* 4.1 has MPI 4's persistent collectives under names of its own */
#include <mpi-ext.h>
#define PERSISTENT(name) MPIX_##name##_init
#else
#define PERSISTENT(name) MPI_##name##_init
#endif

#define DEPTH 24
#define ELEMENTS 300

static int rank, ranks;
static bool frees_early;

/* What all ranks together have given to element i of operation n. */
static int sum_of(int n, int i)
{
    return ranks * (ranks - 1) / 2 + ranks * (n + i);
}

static void many_at_once(MPI_Comm comm, int round)
{
    static int given[DEPTH][ELEMENTS], taken[DEPTH][ELEMENTS];
    MPI_Request requests[DEPTH];

    for (int n = 0; n < DEPTH; n++) {
        for (int i = 0; i < ELEMENTS; i++)
            given[n][i] = rank + n + i;
        memset(taken[n], 0, sizeof taken[n]);
        int count = n % 3 == 0 ? 1 : ELEMENTS;
        if (n % 4 == 3)
            MPI_Ireduce(given[n], taken[n], count, MPI_INT, MPI_SUM, n % ranks, comm, &requests[n]);
        else
            MPI_Iallreduce(given[n], taken[n], count, MPI_INT, MPI_SUM, comm, &requests[n]);
    }
    if (round % 3 == 0)
        for (int n = DEPTH - 1; n >= 0; n--)
            MPI_Wait(&requests[n], MPI_STATUS_IGNORE);
    else if (round % 3 == 1)
        MPI_Waitall(DEPTH, requests, MPI_STATUSES_IGNORE);
    else
        for (int done = 0, index; done < DEPTH; done++)
            MPI_Waitany(DEPTH, requests, &index, MPI_STATUS_IGNORE);
    for (int n = 0; n < DEPTH; n++) {
        int count = n % 3 == 0 ? 1 : ELEMENTS, expected = n % 4 != 3 || rank == n % ranks;
        for (int i = 0; expected && i < count; i++)
            CHECK(taken[n][i] == sum_of(n, i), "operation %d element %d: %d", n, i, taken[n][i]);
    }
}

/* The MPI lets programs free what a request needs as soon as it is begun. */
static void freed_meanwhile(int round)
{
    enum { PAIRS = 5 };
    int numbers[2 * PAIRS], all[PAIRS * 64];
    MPI_Datatype every_second;
    MPI_Request requests[3];
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < 2 * PAIRS; i++)
        numbers[i] = rank == round % ranks ? round + i : -1;
    MPI_Type_vector(PAIRS, 1, 2, MPI_INT, &every_second);
    MPI_Type_commit(&every_second);
    MPI_Ibcast(numbers, 1, every_second, round % ranks, comm, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Iallgather(numbers, 1, every_second, all, PAIRS, MPI_INT, comm, &requests[1]);
    MPI_Ibarrier(comm, &requests[2]);
    MPI_Type_free(&every_second);
    if (frees_early) /* Open MPI 4.1 itself ends with a broken address then */
        MPI_Comm_free(&comm);
    MPI_Waitall(2, requests + 1, MPI_STATUSES_IGNORE);
    if (!frees_early)
        MPI_Comm_free(&comm);
    for (int i = 0; i < PAIRS; i++)
        for (int r = 0; r < ranks; r++)
            CHECK(all[r * PAIRS + i] == round + 2 * i, "block %d element %d: %d", r, i, all[r * PAIRS + i]);
    for (int i = 1; i < 2 * PAIRS; i += 2)
        CHECK(numbers[i] == (rank == round % ranks ? round + i : -1), "a gap was written: %d", numbers[i]);
}

static void persistent(int rounds)
{
    enum { KINDS = 9 };
    int one = 0, sum = 0, root_value = 0, block[64] = {0}, mine[64] = {0};
    int at_root = 0, to_scatter[64], scattered = 0, to_all[64], from_all[64], before = 0, root = ranks - 1;
    MPI_Request requests[KINDS];

    PERSISTENT(Allreduce)(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    PERSISTENT(Bcast)(&root_value, 1, MPI_INT, root, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    PERSISTENT(Allgather)(&one, 1, MPI_INT, block, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
    PERSISTENT(Reduce_scatter_block)(mine, &mine[ranks], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[3]);
    PERSISTENT(Barrier)(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[4]);
    PERSISTENT(Reduce)(&one, &at_root, 1, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[5]);
    PERSISTENT(Scatter)(to_scatter, 1, MPI_INT, &scattered, 1, MPI_INT, root, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[6]);
    PERSISTENT(Alltoall)(to_all, 1, MPI_INT, from_all, 1, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[7]);
    PERSISTENT(Exscan)(&one, &before, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[8]);
    for (int round = 0; round < rounds; round++) {
        one = rank + round;
        root_value = rank == root ? 1000 + round : -1;
        for (int r = 0; r < ranks; r++) {
            mine[r] = rank + r + round;
            to_scatter[r] = rank == root ? 100 * r + round : -1;
            to_all[r] = 1000 * rank + r + round;
            from_all[r] = -1;
        }
        at_root = scattered = before = -1;
        MPI_Startall(KINDS, requests);
        MPI_Waitall(KINDS, requests, MPI_STATUSES_IGNORE);
        CHECK(sum == sum_of(round, 0), "sum %d in round %d", sum, round);
        CHECK(root_value == 1000 + round, "bcast %d in round %d", root_value, round);
        CHECK(at_root == (rank == root ? sum_of(round, 0) : -1), "reduced %d in round %d", at_root, round);
        CHECK(scattered == 100 * rank + round, "scattered %d in round %d", scattered, round);
        CHECK(rank == 0 || before == rank * (rank - 1) / 2 + rank * round, "sum %d of ranks before in round %d", before, round);
        for (int r = 0; r < ranks; r++) {
            CHECK(block[r] == r + round, "block %d is %d in round %d", r, block[r], round);
            CHECK(from_all[r] == 1000 * r + rank + round, "block %d of all is %d in round %d", r, from_all[r], round);
        }
        CHECK(mine[ranks] == sum_of(round, rank), "own block %d in round %d", mine[ranks], round);
    }
    for (int i = 0; i < KINDS; i++)
        MPI_Request_free(&requests[i]);
}

/* Members make persistent requests in one order, and may start them in any: here the odd ranks in
 * the reverse one, with another call before or behind. */
static void started_in_any_order(MPI_Comm comm, int rounds)
{
    enum { MANY = 4 };
    int given[MANY], sums[MANY], one = 1, all = 0;
    MPI_Request requests[MANY], between;

    for (int n = 0; n < MANY; n++)
        PERSISTENT(Allreduce)(&given[n], &sums[n], 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[n]);
    for (int round = 0; round < rounds; round++) {
        for (int n = 0; n < MANY; n++)
            given[n] = rank + 10 * n + round;
        if (rank % 2 == 0)
            MPI_Iallreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm, &between);
        for (int i = 0; i < MANY; i++)
            MPI_Start(&requests[rank % 2 == 0 ? i : MANY - 1 - i]);
        if (rank % 2 != 0)
            MPI_Iallreduce(&one, &all, 1, MPI_INT, MPI_SUM, comm, &between);
        for (int i = 0; i < MANY; i++)
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        MPI_Wait(&between, MPI_STATUS_IGNORE);
        CHECK(all == ranks, "the sum between is %d", all);
        for (int n = 0; n < MANY; n++)
            CHECK(sums[n] == sum_of(10 * n + round, 0), "sum %d is %d in round %d", n, sums[n], round);
    }
    /* One that some wait for before they start another. */
    MPI_Start(&requests[rank % 2]);
    if (rank % 2 == 0)
        MPI_Start(&requests[1]);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    if (rank % 2 != 0)
        MPI_Start(&requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    for (int n = 0; n < MANY; n++)
        MPI_Request_free(&requests[n]);
}

/* Adds as MPI_SUM does, which the library cannot know. */
static void add(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *length; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

/* A persistent request is started with a type, an operator and a communicator that the program has
 * freed since. Open MPI 4.1 itself ends with a broken address then. */
static void freed_before_the_start(void)
{
    int mine[4] = {rank, -1, rank + 1, -1}, all[2 * 64], sums[2] = {-1, -1};
    MPI_Datatype every_second;
    MPI_Request requests[2];
    MPI_Comm comm;
    MPI_Op own;
    void *others[64];

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Type_vector(2, 1, 2, MPI_INT, &every_second);
    MPI_Type_commit(&every_second);
    MPI_Op_create(add, 1, &own);
    PERSISTENT(Gather)(mine, 1, every_second, all, 2, rank == 0 ? MPI_INT : MPI_DATATYPE_NULL, 0, comm, MPI_INFO_NULL, &requests[0]);
    PERSISTENT(Scan)(mine, sums, 1, MPI_INT, own, comm, MPI_INFO_NULL, &requests[1]);
    MPI_Type_free(&every_second);
    MPI_Op_free(&own);
    MPI_Comm_free(&comm);
    for (int i = 0; i < 64; i++) {
        others[i] = malloc(64 + 32 * (size_t)i); /* where the three have been */
        memset(others[i], 0xa5, 64 + 32 * (size_t)i);
    }
    for (int times = 0; times < 2; times++) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (int r = 0; rank == 0 && r < ranks; r++)
            CHECK(all[2 * r] == r && all[2 * r + 1] == r + 1, "block %d: %d, %d", r, all[2 * r], all[2 * r + 1]);
        CHECK(sums[0] == rank * (rank + 1) / 2, "scan %d", sums[0]);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    for (int i = 0; i < 64; i++)
        free(others[i]);
}

/* Open MPI's own requests look at arrays of counts and displacements when they are made, and
 * programs have come to rely on that. */
static void arrays_change(int round)
{
    int mine[64], blocks[64], own = 0, counts[64], offsets[64];
    MPI_Request requests[2];

    for (int times = 0; times < 2; times++) {
        for (int r = 0; r < ranks; r++) {
            mine[r] = rank + r + round;
            counts[r] = 1;
            offsets[r] = ranks - 1 - r;
        }
        if (times == 0) {
            MPI_Ireduce_scatter(mine, &own, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
            MPI_Iallgatherv(&mine[0], 1, MPI_INT, blocks, counts, offsets, MPI_INT, MPI_COMM_WORLD, &requests[1]);
        } else {
            PERSISTENT(Reduce_scatter)(mine, &own, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
            PERSISTENT(Allgatherv)(&mine[0], 1, MPI_INT, blocks, counts, offsets, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
        }
        for (int r = 0; r < ranks; r++)
            counts[r] = offsets[r] = 0;
        if (times == 1)
            MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(own == sum_of(round, rank), "own block %d", own);
        for (int r = 0; r < ranks; r++)
            CHECK(blocks[ranks - 1 - r] == r + round, "block of rank %d is %d", r, blocks[ranks - 1 - r]);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

/* Half of the ranks know whether a communicator has a tree when they begin what the tree takes, and
 * what it does not take; the others do not yet. */
static void known_to_some(int round)
{
    int one = 1, sum = 0, own_sum = 0, scanned = 0, given[64], taken[64], counts[64], offsets[64], found;
    double patience = MPI_Wtime() + 0.03;
    MPI_Request requests[4];
    MPI_Comm comm;
    MPI_Op own;

    for (int r = 0; r < ranks; r++) {
        given[r] = 100 * rank + r;
        counts[r] = 1;
        offsets[r] = r;
    }
    MPI_Op_create(add, 1, &own);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    while (rank % 2 == round % 2 && MPI_Wtime() < patience)
        MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    if (round % 4 < 2) {
        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[0]);
        MPI_Iallreduce(&one, &own_sum, 1, MPI_INT, own, comm, &requests[1]);
        MPI_Ialltoallv(given, counts, offsets, MPI_INT, taken, counts, offsets, MPI_INT, comm, &requests[2]);
        MPI_Ibarrier(comm, &requests[3]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        CHECK(sum == ranks && own_sum == ranks, "sums %d, %d", sum, own_sum);
        for (int r = 0; r < ranks; r++)
            CHECK(taken[r] == 100 * r + rank, "block %d is %d", r, taken[r]);
    } else {
        PERSISTENT(Scan)(&one, &scanned, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[0]);
        for (one = 1; one < 4; one++) {
            MPI_Start(&requests[0]);
            MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
            CHECK(scanned == one * (rank + 1), "scan %d", scanned);
        }
        MPI_Request_free(&requests[0]);
    }
    MPI_Comm_free(&comm);
    MPI_Op_free(&own);
}

/* Open MPI may finish making these in another order on another rank. */
static void made_at_once(void)
{
    enum { MANY = 12 };
    MPI_Comm comms[MANY];
    MPI_Request requests[MANY];
    int one = 1, sums[MANY];

    for (int i = 0; i < MANY; i++)
        MPI_Comm_idup(MPI_COMM_WORLD, &comms[i], &requests[i]);
    for (int done = 0; done < MANY; done++) {
        int index;
        MPI_Waitany(MANY, requests, &index, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < MANY; i++)
        MPI_Iallreduce(&one, &sums[i], 1, MPI_INT, MPI_SUM, comms[i], &requests[i]);
    MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < MANY; i++) {
        CHECK(sums[i] == ranks, "communicator %d: %d", i, sums[i]);
        MPI_Comm_free(&comms[i]);
    }
}

/* As many persistent requests are alive at once. */
static void alive_at_once(int many)
{
    MPI_Request *requests = malloc((size_t)many * sizeof *requests);
    int *sums = malloc((size_t)many * sizeof *sums);

    for (int n = 0; n < many; n++)
        PERSISTENT(Allreduce)(&rank, &sums[n], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[n]);
    for (int times = 0; times < 2; times++) {
        memset(sums, 0xff, (size_t)many * sizeof *sums);
        MPI_Startall(many, requests);
        MPI_Waitall(many, requests, MPI_STATUSES_IGNORE);
        for (int n = 0; n < many; n++)
            CHECK(sums[n] == ranks * (ranks - 1) / 2, "request %d: %d", n, sums[n]);
    }
    for (int n = 0; n < many; n++)
        MPI_Request_free(&requests[n]);
    free(requests);
    free(sums);
}

int main(int argc, char **argv)
{
    MPI_Comm halves;
    MPI_Request left;
    static int late_given[ELEMENTS], late_taken[ELEMENTS];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(ranks < 32, "at most 31 ranks");
    int rounds = (int)argument(argc, argv, 1, 20);
    frees_early = argc > 2 && strcmp(argv[2], "hard") == 0;
    if (argc > 2 && strcmp(argv[2], "alone") == 0) {
        alive_at_once(rounds);
        return MPI_Finalize();
    }
    for (int round = 0; round < rounds; round++) {
        many_at_once(MPI_COMM_WORLD, round);
        freed_meanwhile(round);
        known_to_some(round);
        arrays_change(round);
        if (frees_early)
            freed_before_the_start();
    }
    persistent(rounds);
    started_in_any_order(MPI_COMM_WORLD, rounds);
    MPI_Comm_dup(MPI_COMM_WORLD, &halves);
    started_in_any_order(halves, 2);
    MPI_Comm_free(&halves);
    made_at_once();
    /* The first thing that some communicators do waits for nobody. */
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &halves);
    int world_rank = rank, world_ranks = ranks;
    MPI_Comm_rank(halves, &rank);
    MPI_Comm_size(halves, &ranks);
    many_at_once(halves, 1);
    rank = world_rank;
    ranks = world_ranks;
    MPI_Comm_free(&halves);
    if (frees_early)
        MPI_Iallreduce(late_given, late_taken, ELEMENTS, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &left);
    MPI_Finalize();
    if (rank == 0)
        printf("{\"test\": \"requests\", \"ranks\": %d, \"rounds\": %d}\n", ranks, rounds);
    return 0;
}
