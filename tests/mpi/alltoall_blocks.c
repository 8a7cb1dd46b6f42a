/* SPDX-License-Identifier: Apache-2.0
 *
 * MPI_Alltoall with blocks of one length. Values are checked.
 *
 * usage: alltoall_blocks BYTES [calls = 3]
 */
#include "check.h"

#include <string.h>

int main(int argc, char **argv)
{
    int rank, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int bytes = (int)argument(argc, argv, 1, 1);
    size_t all = (size_t)bytes * (size_t)ranks;
    unsigned char *in = malloc(all), *out = malloc(all);
    CHECK(in != NULL && out != NULL, "out of memory");
    for (long call = 0; call < argument(argc, argv, 2, 3); call++) {
        for (int r = 0; r < ranks; r++)
            memset(in + (size_t)r * (size_t)bytes, rank * 16 + r, (size_t)bytes);
        memset(out, 0xff, all);
        MPI_Alltoall(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, MPI_COMM_WORLD);
        for (size_t i = 0; i < all; i++)
            CHECK(out[i] == (unsigned char)((int)(i / (size_t)bytes) * 16 + rank), "byte %zu is %d", i, out[i]);
    }
    free(in);
    free(out);
    MPI_Finalize();
    return 0;
}
