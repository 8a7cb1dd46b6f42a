/* SPDX-License-Identifier: Apache-2.0
 *
 * Rank 0 sends a long message to rank 1, and both call MPI_Allreduce until rank 0 sees that it is
 * sent. Rank 1 makes no other call, so that the MPI's progress in these is all there is.
 *
 *   short_calls [bytes = 4194304]
 */
#include "check.h"

#include <string.h>

int main(int argc, char **argv)
{
    int rank, turns = 0, mine, all = 0;
    MPI_Request request;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int length = (int)argument(argc, argv, 1, 4194304);
    char *message = malloc((size_t)length);
    CHECK(message != NULL, "no memory");
    memset(message, rank == 0 ? 7 : 0, (size_t)length);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Isend(message, length, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
    else if (rank == 1)
        MPI_Irecv(message, length, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
    for (; !all; turns++) {
        mine = 1;
        if (rank == 0)
            MPI_Test(&request, &mine, MPI_STATUS_IGNORE);
        MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    }
    if (rank == 1)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(rank > 1 || (message[0] == 7 && message[length - 1] == 7), "the message is broken");
    free(message);
    if (rank == 0)
        printf("{\"test\": \"short_calls\", \"turns\": %d}\n", turns);
    MPI_Finalize();
    return 0;
}
