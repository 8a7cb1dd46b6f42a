/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives in which ranks exchange blocks, in blocking and non-blocking form: lengths, roots,
 * MPI_IN_PLACE, datatypes with gaps, which differ from rank to rank in a bcast, an operator that
 * does not commute, arguments that do not count. Every value is checked, and so is every gap.
 *
 * usage: exchanges [rounds = 30]
 */
#include "check.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define RANKS_MAX 16
#define LENGTH_MAX 40
#define SPACE (RANKS_MAX * LENGTH_MAX)
#define GAP -7

static int rank, ranks;
static int in[2 * SPACE], out[2 * SPACE];
static MPI_Datatype spread; /* every second int */

/* What rank `from` gives to rank `to` as element i. */
static int value(int from, int to, int i)
{
    return from * 10000 + to * 100 + i;
}

static void clear(int *vector)
{
    for (int i = 0; i < 2 * SPACE; i++)
        vector[i] = GAP;
}

/* Completes the call in either form. */
#define BOTH(round, name, Iname, ...) \
    do { \
        if ((round) % 2 == 0) { \
            name(__VA_ARGS__, MPI_COMM_WORLD); \
        } else { \
            MPI_Request request; \
            Iname(__VA_ARGS__, MPI_COMM_WORLD, &request); \
            MPI_Wait(&request, MPI_STATUS_IGNORE); \
        } \
    } while (0)

/* Elements first .. first + count - 1 of out came from `from` for `to`, each `step` behind the one
 * before, with gaps between them. */
static void expect(int first, int count, int step, int from, int to, const char *what)
{
    for (int i = 0; i < count; i++) {
        int at = (first + i) * step;
        CHECK(out[at] == value(from, to, i), "%s: element %d is %d instead of %d", what, at, out[at], value(from, to, i));
        for (int gap = at + 1; gap < at + step; gap++)
            CHECK(out[gap] == GAP, "%s: the gap behind element %d was written: %d", what, at, out[gap]);
    }
}

/* Each rank has the vector in memory in a way of its own: in a row, as one element of such a row,
 * with every second int or with two of three left out. */
static void bcast(int round, int n)
{
    int root = round % ranks, kind = (rank + round) % 4, step = kind < 2 ? 1 : kind, count = kind % 2 == 0 ? n : 1;
    MPI_Datatype row, sparse, type;

    clear(out);
    MPI_Type_contiguous(n, MPI_INT, &row);
    MPI_Type_vector(n, 1, 3, MPI_INT, &sparse);
    MPI_Type_commit(&row);
    MPI_Type_commit(&sparse);
    for (int i = 0; rank == root && i < n; i++)
        out[i * step] = value(root, 0, i);
    type = kind == 0 ? MPI_INT : kind == 1 ? row : kind == 2 ? spread : sparse;
    BOTH(round, MPI_Bcast, MPI_Ibcast, out, count, type, root);
    expect(0, n, step, root, 0, "MPI_Bcast");
    CHECK(out[(n - 1) * step + 1] == GAP, "MPI_Bcast wrote behind the last element");
    MPI_Type_free(&row);
    MPI_Type_free(&sparse);
}

static void gather(int round, int n)
{
    int root = round % ranks;
    bool gaps = round % 3 == 0, in_place = round % 5 == 0 && rank == root;

    clear(in);
    clear(out);
    for (int i = 0; i < n; i++)
        in[i] = value(rank, root, i);
    for (int i = 0; in_place && i < n; i++)
        out[(rank * n + i) * (gaps ? 2 : 1)] = value(rank, root, i);
    /* What is received counts at the root alone. */
    BOTH(round, MPI_Gather, MPI_Igather, in_place ? MPI_IN_PLACE : in, n, MPI_INT, rank == root ? out : NULL,
         rank == root ? n : -3, rank == root ? (gaps ? spread : MPI_INT) : MPI_DATATYPE_NULL, root);
    for (int r = 0; rank == root && r < ranks; r++)
        expect(r * n, n, gaps ? 2 : 1, r, root, "MPI_Gather");
}

static void scatter(int round, int n)
{
    int root = (round + 1) % ranks;
    bool gaps = round % 3 == 1, in_place = round % 5 == 1 && rank == root;

    clear(in);
    clear(out);
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < n; i++)
            in[r * n + i] = value(root, r, i);
    BOTH(round, MPI_Scatter, MPI_Iscatter, rank == root ? in : NULL, rank == root ? n : -1, rank == root ? MPI_INT : MPI_DATATYPE_NULL,
         in_place ? MPI_IN_PLACE : out, n, gaps ? spread : MPI_INT, root);
    if (!in_place)
        expect(0, n, gaps ? 2 : 1, root, rank, "MPI_Scatter");
}

static void alltoall(int round, int n)
{
    bool gaps = round % 3 == 2, in_place = round % 4 == 3;
    int step = gaps ? 2 : 1;

    clear(in);
    clear(out);
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < n; i++) {
            in[r * n + i] = value(rank, r, i);
            if (in_place)
                out[(r * n + i) * step] = value(rank, r, i);
        }
    BOTH(round, MPI_Alltoall, MPI_Ialltoall, in_place ? MPI_IN_PLACE : in, n, MPI_INT, out, n, gaps ? spread : MPI_INT);
    for (int r = 0; r < ranks; r++)
        expect(r * n, n, step, r, rank, "MPI_Alltoall");
}

static void allgatherv(int round, int n)
{
    int counts[RANKS_MAX], offsets[RANKS_MAX], mine;
    bool gaps = round % 3 == 0, in_place = round % 4 == 2;

    clear(in);
    clear(out);
    for (int r = 0, next = 3; r < ranks; r++) {
        counts[r] = (n + 3 * r) % LENGTH_MAX;
        offsets[r] = next;
        next += counts[r] + r % 2;
    }
    mine = counts[rank];
    for (int i = 0; i < mine; i++) {
        in[i] = value(rank, 0, i);
        if (in_place)
            out[(offsets[rank] + i) * (gaps ? 2 : 1)] = value(rank, 0, i);
    }
    BOTH(round, MPI_Allgatherv, MPI_Iallgatherv, in_place ? MPI_IN_PLACE : in, mine, MPI_INT, out, counts, offsets,
         gaps ? spread : MPI_INT);
    for (int r = 0; r < ranks; r++)
        expect(offsets[r], counts[r], gaps ? 2 : 1, r, 0, "MPI_Allgatherv");
}

/* Every third time of blocks that are all as long, which need no exchange. */
static void reduce_scatter(int round, int n)
{
    int counts[RANKS_MAX], before = 0, all = 0, step = round % 3 == 0 ? 0 : 5;
    bool in_place = round % 4 == 1;

    clear(out);
    for (int r = 0; r < ranks; r++) {
        counts[r] = (n + step * r) % LENGTH_MAX;
        before += r < rank ? counts[r] : 0;
        all += counts[r];
    }
    for (int i = 0; i < all; i++)
        in[i] = rank + i;
    if (in_place)
        memcpy(out, in, (size_t)all * sizeof *in);
    BOTH(round, MPI_Reduce_scatter, MPI_Ireduce_scatter, in_place ? MPI_IN_PLACE : in, out, counts, MPI_INT, MPI_SUM);
    for (int i = 0; i < counts[rank]; i++) {
        int expected = ranks * (ranks - 1) / 2 + ranks * (before + i);
        CHECK(out[i] == expected, "MPI_Reduce_scatter: element %d is %d instead of %d", i, out[i], expected);
    }
}

/* x -> factor * x + addend, two of them one after the other: associative, and not commutative. */
struct map {
    int32_t factor, addend;
};

static void chain(void *first, void *second, int *length, MPI_Datatype *type)
{
    const struct map *a = first;
    struct map *b = second;

    (void)type;
    for (int i = 0; i < *length; i++)
        b[i] = (struct map){a[i].factor * b[i].factor, b[i].factor * a[i].addend + b[i].addend};
}

static struct map map_of(int of_rank, int i)
{
    return (struct map){1 + (of_rank + i) % 3, of_rank - i};
}

static void scan(int round, int n, MPI_Op chained)
{
    struct map mine[LENGTH_MAX], result[LENGTH_MAX];
    bool exclusive = round % 3 == 0, in_place = round % 4 == 0;
    int last = exclusive ? rank - 1 : rank;

    for (int i = 0; i < n; i++) {
        mine[i] = map_of(rank, i);
        result[i] = in_place ? mine[i] : (struct map){GAP, GAP};
    }
    const void *given = in_place ? MPI_IN_PLACE : (const void *)mine;
    if (exclusive)
        BOTH(round, MPI_Exscan, MPI_Iexscan, given, result, n, MPI_INT64_T, chained);
    else
        BOTH(round, MPI_Scan, MPI_Iscan, given, result, n, MPI_INT64_T, chained);
    for (int i = 0; last >= 0 && i < n; i++) {
        struct map expected = map_of(0, i);
        for (int r = 1; r <= last; r++) {
            struct map next = map_of(r, i);
            expected = (struct map){expected.factor * next.factor, next.factor * expected.addend + next.addend};
        }
        CHECK(result[i].factor == expected.factor && result[i].addend == expected.addend, "MPI_Scan: element %d is %d, %d", i,
              result[i].factor, result[i].addend);
    }
}

/* What does not count on a rank may be anything there. */
static void not_significant(int round)
{
    int counts[RANKS_MAX], given[RANKS_MAX], got = GAP, before = rank * (rank - 1) / 2, root = round % ranks;
    bool gets_nothing = rank % 3 == 1;

    void *nowhere = round % 3 == 0 ? MPI_IN_PLACE : NULL;
#ifndef OPEN_MPI
    /* MPICH and its kin refuse such addresses where they look at them, in calls that are theirs. */
    nowhere = round % 2 == 0 ? nowhere : &got;
#endif
    BOTH(round, MPI_Exscan, MPI_Iexscan, &rank, rank == 0 ? nowhere : &got, 1, MPI_INT, MPI_SUM);
    CHECK(rank == 0 || got == before, "MPI_Exscan without a vector on rank 0: %d", got);
    for (int r = 0; r < ranks; r++) {
        counts[r] = r % 3 != 1;
        given[r] = r;
    }
    BOTH(round, MPI_Reduce_scatter, MPI_Ireduce_scatter, given, gets_nothing ? NULL : &got, counts, MPI_INT, MPI_MAX);
    CHECK(gets_nothing || got == rank - (rank + 1) / 3, "MPI_Reduce_scatter to all but a few: %d", got);
    BOTH(round, MPI_Scatter, MPI_Iscatter, rank == root ? given : MPI_IN_PLACE, 1, MPI_INT, &got, 1, MPI_INT, root);
    CHECK(got == rank, "MPI_Scatter with anything as what others give: %d", got);
}

int main(int argc, char **argv)
{
    MPI_Op chained;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(ranks <= RANKS_MAX, "at most %d ranks", RANKS_MAX);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spread);
    MPI_Type_commit(&spread);
    MPI_Op_create(chain, 0, &chained);
    int rounds = (int)argument(argc, argv, 1, 30);
    for (int round = 0; round < rounds; round++) {
        int n = 1 + (round * 7) % (LENGTH_MAX - 1);
        bcast(round, n);
        gather(round, n);
        scatter(round, n);
        alltoall(round, n);
        allgatherv(round, n);
        reduce_scatter(round, n);
        scan(round, n, chained);
        not_significant(round);
    }
    MPI_Type_free(&spread);
    MPI_Op_free(&chained);
    MPI_Finalize();
    if (rank == 0)
        printf("{\"test\": \"exchanges\", \"ranks\": %d, \"rounds\": %d}\n", ranks, rounds);
    return 0;
}
