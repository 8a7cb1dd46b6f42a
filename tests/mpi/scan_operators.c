/* SPDX-License-Identifier: Apache-2.0
 *
 * Scans with an operator of MPI's that it does not allow on the type: every rank gets an error, and
 * the communicator's error handler is called on each. What MPI allows is done, whether the tree
 * knows the type or not.
 */
#include "check.h"

static int rank, handled;

static void handle(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    handled++;
}

static void refused(MPI_Datatype datatype, MPI_Op op, const char *what)
{
    double in[2] = {1, 1}, out[2] = {0, 0};

    handled = 0;
    CHECK(MPI_Scan(in, out, 1, datatype, op, MPI_COMM_WORLD) != MPI_SUCCESS && handled == 1, "MPI_Scan, %s: handler called %d times",
          what, handled);
    handled = 0;
    CHECK(MPI_Exscan(in, out, 1, datatype, op, MPI_COMM_WORLD) != MPI_SUCCESS && handled == 1,
          "MPI_Exscan, %s: handler called %d times", what, handled);
}

static void allowed(void)
{
    long double in = 1.5L, out = 0;
    int bits = 1 << rank, all = 0;

    MPI_Scan(&in, &out, 1, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    CHECK(out == 1.5L * (rank + 1), "MPI_Scan of long doubles gives %Lg", out);
    MPI_Scan(&bits, &all, 1, MPI_INT, MPI_BOR, MPI_COMM_WORLD);
    CHECK(all == (2 << rank) - 1, "MPI_Scan of bits gives %x", (unsigned)all);
}

int main(int argc, char **argv)
{
    MPI_Errhandler handler;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_create_errhandler(handle, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    refused(MPI_DOUBLE, MPI_BAND, "MPI_BAND on MPI_DOUBLE");
    refused(MPI_DOUBLE, MPI_OP_NULL, "MPI_OP_NULL");
    refused(MPI_DOUBLE, MPI_REPLACE, "MPI_REPLACE");
    refused(MPI_DOUBLE, MPI_NO_OP, "MPI_NO_OP");
    allowed();
    MPI_Errhandler_free(&handler);
    MPI_Finalize();
    return 0;
}
