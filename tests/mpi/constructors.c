/* SPDX-License-Identifier: Apache-2.0
 *
 * Every way to make a communicator: a reduction on each is right, whatever order its ranks are in
 * and whether or not this process is in it. Some are left for MPI_Finalize to free.
 *
 * usage: constructors
 *
 * Rank 0 prints one JSON line: on how many communicators of more than one rank it was, without
 * counting intercommunicators.
 */
#include "check.h"

static int checked;

static void use(MPI_Comm comm, const char *constructor)
{
    int rank, size, inter, least = 0;

    if (comm == MPI_COMM_NULL)
        return;
    MPI_Comm_test_inter(comm, &inter);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Barrier(comm);
    if (inter)
        return;
    unsigned mine = (unsigned)rank + 1, sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_UNSIGNED, MPI_SUM, comm);
    CHECK(sum == (unsigned)(size * (size + 1) / 2), "%s: the ranks sum up to %u", constructor, sum);
    MPI_Reduce(&rank, &least, 1, MPI_INT, MPI_MIN, size - 1, comm);
    CHECK(least == 0, "%s: the smallest rank is %d", constructor, least);
    checked += size > 1;
}

static void topologies(int rank, int size)
{
    int extents[2] = {0, 0}, periodic[2] = {1, 0}, keep[2] = {0, 1}, weights[2] = {1, 1};
    int neighbours[2] = {(rank + 1) % size, (rank + size - 1) % size};
    int *index = malloc((size_t)size * sizeof *index), *edges = malloc((size_t)size * 2 * sizeof *edges), degree = 2;
    MPI_Comm grid, row, ring, sent, adjacent;

    CHECK(index != NULL && edges != NULL, "out of memory");
    MPI_Dims_create(size, 2, extents);
    MPI_Cart_create(MPI_COMM_WORLD, 2, extents, periodic, 1, &grid);
    use(grid, "MPI_Cart_create");
    MPI_Cart_sub(grid, keep, &row);
    use(row, "MPI_Cart_sub");
    for (int i = 0; i < size; i++) {
        index[i] = 2 * (i + 1);
        edges[2 * i] = (i + 1) % size;
        edges[2 * i + 1] = (i + size - 1) % size;
    }
    MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &ring);
    use(ring, "MPI_Graph_create");
    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &degree, neighbours, weights, MPI_INFO_NULL, 0, &sent);
    use(sent, "MPI_Dist_graph_create");
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, neighbours, weights, 2, neighbours, weights, MPI_INFO_NULL, 0,
                                   &adjacent);
    use(adjacent, "MPI_Dist_graph_create_adjacent");
    MPI_Comm_free(&adjacent);
    MPI_Comm_disconnect(&sent);
    MPI_Comm_free(&row);
    free(index);
    free(edges); /* grid and ring are left for MPI_Finalize */
}

static void subsets(int rank, int size)
{
    MPI_Group world, upper;
    MPI_Comm made, made_by_group, shared, ignored;
    int first[1] = {0};

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_excl(world, 1, first, &upper);
    MPI_Comm_create(MPI_COMM_WORLD, upper, &made);
    use(made, "MPI_Comm_create");
    if (rank != 0) {
        MPI_Comm_create_group(MPI_COMM_WORLD, upper, 5, &made_by_group);
        use(made_by_group, "MPI_Comm_create_group");
        MPI_Comm_free(&made_by_group);
        MPI_Comm_free(&made);
    }
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, size - rank, MPI_INFO_NULL, &shared);
    use(shared, "MPI_Comm_split_type");
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 1, rank, &ignored);
    use(ignored, "MPI_Comm_split");
    if (rank != 0)
        MPI_Comm_free(&ignored);
    MPI_Comm_free(&shared);
    MPI_Group_free(&upper);
    MPI_Group_free(&world);
}

static void intercommunicators(int rank, int size)
{
    int lower = rank < size / 2;
    MPI_Comm half, inter, merged, copy;

    MPI_Comm_split(MPI_COMM_WORLD, lower, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, lower ? size / 2 : 0, 9, &inter);
    use(inter, "MPI_Intercomm_create");
    MPI_Comm_dup(inter, &copy);
    use(copy, "MPI_Comm_dup of an intercommunicator");
    MPI_Intercomm_merge(inter, lower, &merged);
    use(merged, "MPI_Intercomm_merge");
    MPI_Comm_free(&merged);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

static void copies(void)
{
    MPI_Comm copy, copy_of_copy, idle;
    MPI_Request request;

    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_dup_with_info(copy, MPI_INFO_NULL, &copy_of_copy);
    MPI_Comm_free(&copy);
    use(copy_of_copy, "MPI_Comm_dup_with_info");
    MPI_Comm_idup(copy_of_copy, &idle, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    use(idle, "MPI_Comm_idup");
    MPI_Comm_free(&idle);
    MPI_Comm_free(&copy_of_copy);
    use(MPI_COMM_SELF, "MPI_COMM_SELF");
}

int main(int argc, char **argv)
{
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(size >= 3, "needs at least 3 ranks");
    topologies(rank, size);
    subsets(rank, size);
    intercommunicators(rank, size);
    copies();
    if (rank == 0)
        printf("{\"test\": \"constructors\", \"ranks\": %d, \"communicators\": %d}\n", size, checked);
    MPI_Finalize();
    return 0;
}
