/* SPDX-License-Identifier: Apache-2.0
 *
 * Non-blocking file requests at MPI_THREAD_MULTIPLE, one after the other, as any program with
 * MPI-IO makes them; between them an operation that may go through the tree.
 *
 *   file_requests FILE ROUNDS
 */
#include "check.h"

int main(int argc, char **argv)
{
    int rank, size, provided, sum;
    MPI_File file;
    MPI_Request request;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(argc == 3, "usage: file_requests FILE ROUNDS");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    CHECK(MPI_File_open(MPI_COMM_WORLD, argv[1], mode, MPI_INFO_NULL, &file) == MPI_SUCCESS, "cannot open %s", argv[1]);
    long rounds = argument(argc, argv, 2, 1000);
    for (long round = 0; round < rounds; round++) {
        int written = (int)(round * size + rank), read = -1;
        MPI_Offset offset = (MPI_Offset)rank * (MPI_Offset)sizeof written;
        MPI_File_iwrite_at(file, offset, &written, 1, MPI_INT, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_File_iread_at(file, offset, &read, 1, MPI_INT, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(read == written, "round %ld: read %d, not %d", round, read, written);
        if (round % 100 == 0) {
            MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
            CHECK(sum == size * (size - 1) / 2, "the ranks sum up to %d", sum);
        }
    }
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
