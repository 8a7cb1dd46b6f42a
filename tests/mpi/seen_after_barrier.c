/* SPDX-License-Identifier: Apache-2.0
 *
 * What ranks have done before a barrier the others see after it: that an access to a window is
 * completed by the first MPI_Win_test, and a message that was sent by the first MPI_Iprobe. MPI
 * asks for that after several looks only, but programs rely on it (mpi4py's own tests do), as an
 * MPI that waits in a barrier of its own takes in what comes.
 *
 * usage: seen_after_barrier [rounds = 100]
 */
#include "check.h"

static int rank, ranks;

static void access(MPI_Win window, MPI_Group others)
{
    MPI_Win_start(others, 0, window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_complete(window);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void expose(MPI_Win window, MPI_Group first, long round)
{
    int done;

    MPI_Win_post(first, 0, window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_test(window, &done);
    CHECK(done, "round %ld: rank 0 has completed its access, and MPI_Win_test does not see it", round);
}

static void message(long round)
{
    int number = (int)round, found = 1;

    if (rank == 0)
        for (int to = 1; to < ranks; to++)
            MPI_Send(&number, 1, MPI_INT, to, 7, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        return;
    MPI_Iprobe(0, 7, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    CHECK(found, "round %ld: rank 0 has sent a message, and MPI_Iprobe does not see it", round);
    MPI_Recv(&number, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    MPI_Group all, first, others;
    MPI_Win window;
    int zero = 0, memory = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &zero, &first);
    MPI_Group_excl(all, 1, &zero, &others);
    MPI_Win_create(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    for (long round = 0; round < argument(argc, argv, 1, 100); round++) {
        if (rank == 0)
            access(window, others);
        else
            expose(window, first, round);
        message(round);
    }
    MPI_Win_free(&window);
    MPI_Group_free(&first);
    MPI_Group_free(&others);
    MPI_Group_free(&all);
    MPI_Finalize();
    return 0;
}
