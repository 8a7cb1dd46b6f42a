/* SPDX-License-Identifier: Apache-2.0
 *
 * Long sums that are begun while a communicator's tree is in the making, which is then refused, so
 * that the MPI takes them. What the library has copied for them is gone then, and so are the
 * program's vectors soon.
 *
 *   refused_sums [rounds = 8]
 */
#include "check.h"

enum { MANY = 16, BLOCK = 20000 };

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Request requests[MANY];
    double *given[MANY], *taken[MANY];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int rounds = (int)argument(argc, argv, 1, 8);
    int *counts = malloc((size_t)ranks * sizeof *counts), all = 0;
    CHECK(counts != NULL, "no memory");
    for (int r = 0; r < ranks; r++)
        all += counts[r] = BLOCK * (r + 1);
    for (int round = 0; round < rounds; round++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        for (int n = 0; n < MANY; n++) {
            given[n] = malloc((size_t)all * sizeof **given);
            taken[n] = malloc((size_t)counts[rank] * sizeof **taken);
            CHECK(given[n] != NULL && taken[n] != NULL, "no memory");
            for (int i = 0; i < all; i++)
                given[n][i] = rank + n + i;
            MPI_Ireduce_scatter(given[n], taken[n], counts, MPI_DOUBLE, MPI_SUM, comm, &requests[n]);
        }
        MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
        int before = BLOCK * rank * (rank + 1) / 2;
        for (int n = 0; n < MANY; n++) {
            for (int i = 0; i < counts[rank]; i++)
                CHECK(taken[n][i] == ranks * (ranks - 1) / 2 + ranks * (double)(n + before + i), "sum %d element %d: %g", n, i, taken[n][i]);
            free(given[n]);
            free(taken[n]);
        }
        MPI_Comm_free(&comm);
    }
    free(counts);
    MPI_Finalize();
    return 0;
}
