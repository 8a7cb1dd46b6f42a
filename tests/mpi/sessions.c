/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions, for MPIs that have them: communicators of a session, and of these others, do
 * collectives whose results are checked. Sessions come and go, beside MPI_Init or without it.
 *
 * usage: sessions [rounds = 3] [world: MPI_Init is called, too]
 */
#include "check.h"

#include <stdbool.h>
#include <string.h>

static void collectives(MPI_Comm comm)
{
    int rank, ranks, one = 1, sum = -1, sum_later = -1, all[64] = {0};
    MPI_Request request;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    CHECK(ranks <= 64, "at most 64 ranks");
    MPI_Barrier(comm);
    MPI_Iallreduce(&one, &sum_later, 1, MPI_INT, MPI_SUM, comm, &request);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(sum == ranks && sum_later == ranks, "sums %d, %d", sum, sum_later);
    MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, comm);
    for (int r = 0; r < ranks; r++)
        CHECK(all[r] == r, "block %d is %d", r, all[r]);
    int word = rank == 0 ? 77 : -1;
    MPI_Bcast(&word, 1, MPI_INT, 0, comm);
    CHECK(word == 77, "bcast %d", word);
}

static void of_session(void)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm, others[4];
    MPI_Request request;
    int rank;

    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "tributary.tests", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Comm_rank(comm, &rank);
    collectives(comm);
    MPI_Comm_dup(comm, &others[0]);
    MPI_Comm_split(comm, rank % 2, rank, &others[1]);
    MPI_Comm_create_group(comm, group, 5, &others[2]);
    MPI_Comm_idup(comm, &others[3], &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < 4; i++) {
        collectives(others[i]);
        MPI_Comm_free(&others[i]);
    }
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
}

int main(int argc, char **argv)
{
    long rounds = argument(argc, argv, 1, 3);
    bool has_world = argc > 2 && strcmp(argv[2], "world") == 0;

    if (has_world)
        MPI_Init(&argc, &argv);
    for (long round = 0; round < rounds; round++) {
        of_session();
        if (has_world)
            collectives(MPI_COMM_WORLD);
    }
    if (has_world)
        MPI_Finalize();
    puts("all right");
    return 0;
}
