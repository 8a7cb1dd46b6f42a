/* SPDX-License-Identifier: Apache-2.0
 *
 * Many communicators that live at the same time, as far as the MPI has room for them: each does
 * sums, in the order they were made and in the other, before all of them are freed.
 *
 * usage: live_communicators [communicators = 5000]
 *
 * Rank 0 prints one JSON line with how many there were.
 */
#include "check.h"

static void use(MPI_Comm comm, int number)
{
    int mine = number, sum = -1, ranks;

    MPI_Comm_size(comm, &ranks);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == ranks * number, "communicator %d: the sum is %d", number, sum);
}

int main(int argc, char **argv)
{
    int rank, ranks, made = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int wanted = (int)argument(argc, argv, 1, 5000);
    MPI_Comm *comms = malloc((size_t)wanted * sizeof *comms);
    CHECK(comms != NULL, "no memory");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    while (made < wanted && MPI_Comm_dup(MPI_COMM_WORLD, &comms[made]) == MPI_SUCCESS)
        made++;
    for (int i = 0; i < made; i++)
        use(comms[i], i);
    for (int i = made - 1; i >= 0; i--) {
        use(comms[i], i);
        MPI_Comm_free(&comms[i]);
    }
    use(MPI_COMM_WORLD, made);
    free(comms);
    if (rank == 0)
        printf("{\"test\": \"live_communicators\", \"ranks\": %d, \"communicators\": %d}\n", ranks, made);
    MPI_Finalize();
    return 0;
}
