/* SPDX-License-Identifier: Apache-2.0
 *
 * Non-blocking collectives that the tree does not take, begun right behind sums for which a
 * communicator gets its tree. None of them may wait until other ranks have begun theirs: ranks
 * begin those of two communicators in different orders, or after a message from a rank that has
 * begun. Every value is checked.
 *
 * usage: waitless, with three or more ranks
 */
#include "check.h"

#include <stdbool.h>
#include <string.h>

#define MOST 32
#define ROOT 1
#define TAG 7

enum kind {
    ALLTOALLV,
    ALLTOALLV_IN_PLACE,
    ALLTOALLW,
    ALLTOALLW_OF_FREED_TYPES,
    GATHERV,
    SCATTERV,
    NEIGHBOR_ALLGATHER, /* from here on among neighbours in a ring */
    NEIGHBOR_ALLGATHERV,
    NEIGHBOR_ALLTOALL,
    NEIGHBOR_ALLTOALLV,
    NEIGHBOR_ALLTOALLW,
    KINDS
};

/* A sum and an exchange behind it, on a communicator of their own. */
struct pair {
    enum kind kind;
    MPI_Comm comm;
    int peers[MOST], count; /* with whom this rank exchanges */
    double mine, sum;
    int given[MOST], taken[MOST]; /* the element of peer i lies at place count - 1 - i */
    MPI_Datatype types[MOST];
    MPI_Request requests[2];
};

static int rank, ranks;

/* What one rank gives another. */
static int value(int from, int to)
{
    return 100 * from + to;
}

static void find_peers(struct pair *pair)
{
    bool is_ring = pair->kind >= NEIGHBOR_ALLGATHER;

    pair->count = is_ring ? 2 : ranks;
    for (int i = 0; i < pair->count; i++)
        pair->peers[i] = is_ring ? (rank + (i == 0 ? ranks - 1 : 1)) % ranks : i;
}

/* The same ring as each kind of topology that there is. */
static void make_ring(struct pair *pair)
{
    int is_periodic = 1, ends[MOST], edges[2 * MOST], weights[2] = {1, 1};
    const int *mine = &edges[2 * rank];

    for (int r = 0; r < ranks; r++) {
        ends[r] = 2 * (r + 1);
        edges[2 * r] = (r + ranks - 1) % ranks;
        edges[2 * r + 1] = (r + 1) % ranks;
    }
    if (pair->kind == NEIGHBOR_ALLTOALLV)
        MPI_Graph_create(MPI_COMM_WORLD, ranks, ends, edges, 0, &pair->comm);
    else if (pair->kind == NEIGHBOR_ALLTOALLW)
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, mine, weights, 2, mine, weights, MPI_INFO_NULL, 0, &pair->comm);
    else
        MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &is_periodic, 0, &pair->comm);
}

static void make(struct pair *pair, enum kind kind)
{
    pair->kind = kind;
    if (kind >= NEIGHBOR_ALLGATHER)
        make_ring(pair);
    else
        MPI_Comm_dup(MPI_COMM_WORLD, &pair->comm);
    find_peers(pair);
    pair->mine = rank + 0.5;
    pair->sum = -1;
    for (int i = 0; i < pair->count; i++) {
        pair->given[pair->count - 1 - i] = value(rank, pair->peers[i]);
        pair->taken[i] = -1;
        pair->types[i] = MPI_INT;
    }
    if (kind == ALLTOALLV_IN_PLACE)
        memcpy(pair->taken, pair->given, sizeof pair->taken);
}

static void begin_alltoallw(struct pair *pair, const int *counts, const int *bytes)
{
    bool frees = pair->kind == ALLTOALLW_OF_FREED_TYPES;
    MPI_Datatype own;

    for (int i = 0; frees && i < pair->count; i++) {
        MPI_Type_contiguous(1, MPI_INT, &pair->types[i]);
        MPI_Type_commit(&pair->types[i]);
    }
    MPI_Ialltoallw(pair->given, counts, bytes, pair->types, pair->taken, counts, bytes, pair->types, pair->comm, &pair->requests[1]);
    for (int i = 0; frees && i < pair->count; i++) {
        own = pair->types[i];
        MPI_Type_free(&own);
    }
}

/* Of a root's arrays and its type the other ranks have none. */
static void begin_at_root(struct pair *pair, const int *counts, const int *places)
{
    bool is_root = rank == ROOT;
    MPI_Datatype type = is_root ? MPI_INT : MPI_DATATYPE_NULL;
    int *given = &pair->given[pair->count - 1 - ROOT];

    if (!is_root)
        counts = places = NULL;
    if (pair->kind == GATHERV)
        MPI_Igatherv(given, 1, MPI_INT, pair->taken, counts, places, type, ROOT, pair->comm, &pair->requests[1]);
    else
        MPI_Iscatterv(pair->given, counts, places, type, pair->taken, 1, MPI_INT, ROOT, pair->comm, &pair->requests[1]);
}

static void begin_among_neighbours(struct pair *pair, const int *counts, const int *places, const MPI_Aint *bytes)
{
    int *given = pair->given, *taken = pair->taken;
    MPI_Request *request = &pair->requests[1];

    if (pair->kind == NEIGHBOR_ALLGATHER)
        MPI_Ineighbor_allgather(&rank, 1, MPI_INT, taken, 1, MPI_INT, pair->comm, request);
    else if (pair->kind == NEIGHBOR_ALLGATHERV)
        MPI_Ineighbor_allgatherv(&rank, 1, MPI_INT, taken, counts, places, MPI_INT, pair->comm, request);
    else if (pair->kind == NEIGHBOR_ALLTOALL)
        MPI_Ineighbor_alltoall(given, 1, MPI_INT, taken, 1, MPI_INT, pair->comm, request);
    else if (pair->kind == NEIGHBOR_ALLTOALLV)
        MPI_Ineighbor_alltoallv(given, counts, places, MPI_INT, taken, counts, places, MPI_INT, pair->comm, request);
    else
        MPI_Ineighbor_alltoallw(given, counts, bytes, pair->types, taken, counts, bytes, pair->types, pair->comm, request);
}

/* Open MPI's own requests look at the arrays of a call once, and its Fortran interface frees arrays
 * of types that it has made for a call when that returns. So all of them change here at once, but
 * those with types of the program's own, at which Open MPI looks again. */
static void begin(struct pair *pair)
{
    int counts[MOST], places[MOST], bytes[MOST];
    MPI_Aint long_bytes[MOST];

    for (int i = 0; i < pair->count; i++) {
        counts[i] = 1;
        places[i] = pair->count - 1 - i;
        bytes[i] = places[i] * (int)sizeof(int);
        long_bytes[i] = bytes[i];
    }
    MPI_Iallreduce(&pair->mine, &pair->sum, 1, MPI_DOUBLE, MPI_SUM, pair->comm, &pair->requests[0]);
    if (pair->kind == ALLTOALLV)
        MPI_Ialltoallv(pair->given, counts, places, MPI_INT, pair->taken, counts, places, MPI_INT, pair->comm, &pair->requests[1]);
    else if (pair->kind == ALLTOALLV_IN_PLACE)
        MPI_Ialltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, pair->taken, counts, places, MPI_INT, pair->comm, &pair->requests[1]);
    else if (pair->kind == ALLTOALLW || pair->kind == ALLTOALLW_OF_FREED_TYPES)
        begin_alltoallw(pair, counts, bytes);
    else if (pair->kind == GATHERV || pair->kind == SCATTERV)
        begin_at_root(pair, counts, places);
    else
        begin_among_neighbours(pair, counts, places, long_bytes);
    memset(counts, 0xa5, sizeof counts);
    memset(places, 0xa5, sizeof places);
    memset(bytes, 0xa5, sizeof bytes);
    memset(long_bytes, 0xa5, sizeof long_bytes);
    if (pair->kind != ALLTOALLW_OF_FREED_TYPES)
        memset(pair->types, 0, sizeof pair->types);
}

static void check_exchange(const struct pair *pair)
{
    bool is_in_order = pair->kind == NEIGHBOR_ALLGATHER || pair->kind == NEIGHBOR_ALLTOALL;

    if (pair->kind == SCATTERV) {
        CHECK(pair->taken[0] == value(ROOT, rank), "kind %d: %d from the root", pair->kind, pair->taken[0]);
        return;
    }
    for (int i = 0; i < pair->count && (pair->kind != GATHERV || rank == ROOT); i++) {
        int peer = pair->peers[i], expected = value(peer, rank), got = pair->taken[is_in_order ? i : pair->count - 1 - i];
        if (pair->kind == NEIGHBOR_ALLGATHER || pair->kind == NEIGHBOR_ALLGATHERV)
            expected = peer;
        /* Element i goes to peer i, and was made for the other one. */
        if (pair->kind == NEIGHBOR_ALLTOALL)
            expected = value(peer, (peer + (i == 0 ? ranks - 1 : 1)) % ranks);
        CHECK(got == expected, "kind %d: %d instead of %d from rank %d", pair->kind, got, expected, peer);
    }
}

static void end(struct pair *pair)
{
    double sum = ranks * (ranks - 1) / 2 + 0.5 * ranks;

    CHECK(pair->sum == sum, "kind %d: sum %g", pair->kind, pair->sum);
    check_exchange(pair);
    MPI_Comm_free(&pair->comm);
}

/* Half of the ranks begin with the second communicator. */
static void in_two_orders(enum kind kind)
{
    struct pair pairs[2];
    MPI_Request all[4];
    int index;

    make(&pairs[0], kind);
    make(&pairs[1], kind);
    begin(&pairs[rank % 2]);
    begin(&pairs[1 - rank % 2]);
    for (int i = 0; i < 4; i++)
        all[i] = pairs[i / 2].requests[i % 2];
    for (int done = 0; kind % 2 == 1 && done < 4; done++) {
        MPI_Waitany(4, all, &index, MPI_STATUS_IGNORE);
        CHECK(index >= 0 && index < 4, "request %d is done", index);
    }
    MPI_Waitall(4, all, MPI_STATUSES_IGNORE);
    end(&pairs[0]);
    end(&pairs[1]);
}

/* All other ranks begin when a message of the first one says that it has begun. */
static void after_a_message(enum kind kind)
{
    struct pair pair;

    make(&pair, kind);
    if (rank > 0)
        MPI_Recv(NULL, 0, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    begin(&pair);
    for (int other = 1; rank == 0 && other < ranks; other++)
        MPI_Send(NULL, 0, MPI_INT, other, TAG, MPI_COMM_WORLD);
    MPI_Waitall(2, pair.requests, MPI_STATUSES_IGNORE);
    end(&pair);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(ranks >= 3 && ranks <= MOST, "3 to %d ranks", MOST);
    for (enum kind kind = 0; kind < KINDS; kind++) {
        in_two_orders(kind);
        after_a_message(kind);
    }
    MPI_Finalize();
    if (rank == 0)
        printf("{\"test\": \"waitless\", \"ranks\": %d}\n", ranks);
    return 0;
}
