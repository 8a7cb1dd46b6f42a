/* SPDX-License-Identifier: Apache-2.0
 *
 * The last rank calls MPI_Allreduce with another count than the others: every rank gets an error.
 *
 *   disagree [after]     and calls that wait for nobody get one afterwards, too
 */
#include "check.h"

#ifdef OPEN_MPI
#include <mpi-ext.h>
#define PERSISTENT(name) MPIX_##name##_init
#else
#define PERSISTENT(name) MPI_##name##_init
#endif

/* The communicator is freed before the error handler of its request is called. */
static void after(MPI_Comm comm)
{
    int one = 1, sum = 0;
    MPI_Request requests[2];

    for (int times = 0; times < 2; times++) {
        int result = MPI_Ibarrier(comm, &requests[0]);
        CHECK(result == MPI_SUCCESS, "beginning a barrier gives %d", result);
        result = MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        CHECK(result == MPI_ERR_OTHER, "the barrier's error is %d", result);
    }
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[0]);
    MPI_Comm_free(&comm);
    int result = MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    CHECK(result == MPI_ERR_OTHER, "the error is %d", result);
}

/* The same of a persistent request, which Open MPI may free then. */
static void persistent(int rank, int size)
{
    int in[4] = {1, 1, 1, 1}, out[4] = {0};
    MPI_Request request;

    PERSISTENT(Allreduce)(in, out, rank + 1 == size ? 3 : 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    int result = MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(result == MPI_ERR_OTHER, "the error is %d", result);
    if (request != MPI_REQUEST_NULL)
        MPI_Request_free(&request);
}

int main(int argc, char **argv)
{
    int rank, size, in[4] = {1, 1, 1, 1}, out[4] = {0};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm comm;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (argc > 1)
        persistent(rank, size);
    int result = MPI_Allreduce(in, out, rank + 1 == size ? 3 : 4, MPI_INT, MPI_SUM, comm);
    CHECK(result == MPI_ERR_OTHER, "the error is %d", result);
    if (argc > 1)
        after(comm);
    else
        MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
