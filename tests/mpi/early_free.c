/* SPDX-License-Identifier: Apache-2.0
 *
 * Communicators that one rank frees at once, while the other one of the two still has them and lets
 * the MPI make progress: `early_free TIMES`. MPI_Comm_free need not wait for others.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void make_progress(double seconds)
{
    double until = MPI_Wtime() + seconds;
    int flag;

    while (MPI_Wtime() < until)
        MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int rank, times = argc > 1 ? atoi(argv[1]) : 20;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int done = 0; done < times; done++) {
        MPI_Comm pair;
        MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pair);
        if (rank % 2 == done % 2)
            make_progress(0.02);
        MPI_Comm_free(&pair);
    }
    if (rank == 0)
        printf("%d communicators\n", times);
    MPI_Finalize();
    return 0;
}
