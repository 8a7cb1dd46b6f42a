/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls for large counts with arrays that MPI does not read, whose addresses lead nowhere. The
 * functions are looked up, as an MPI of version 3 has none of them but for the preloaded library.
 */
#include "check.h"

#include <dlfcn.h>

#define NOWHERE ((void *)16)

typedef int alltoallv(const void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype, void *, const MPI_Count *, const MPI_Aint *,
                      MPI_Datatype, MPI_Comm);
typedef int gatherv(const void *, MPI_Count, MPI_Datatype, void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype, int, MPI_Comm);

static void *function(const char *name)
{
    void *found = dlsym(dlopen(NULL, RTLD_LAZY), name);

    CHECK(found != NULL, "there is no %s", name);
    return found;
}

/* An intercommunicator between the even ranks and the odd ones, of two each. */
static MPI_Comm between(int rank)
{
    MPI_Comm half, both;

    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 0, &both);
    MPI_Comm_free(&half);
    return both;
}

int main(int argc, char **argv)
{
    const MPI_Count ones[4] = {1, 1, 1, 1};
    const MPI_Aint offsets[4] = {0, 1, 2, 3};
    int rank, size, numbers[4];

    MPI_Init(&argc, &argv);
    alltoallv *exchange = (alltoallv *)function("MPI_Alltoallv_c");
    gatherv *gather = (gatherv *)function("MPI_Gatherv_c");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(size == 4, "4 ranks are needed");
    for (int i = 0; i < size; i++)
        numbers[i] = 10 * rank + i;
    exchange(MPI_IN_PLACE, NOWHERE, NOWHERE, MPI_DATATYPE_NULL, numbers, ones, offsets, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        CHECK(numbers[i] == 10 * i + rank, "number %d is %d", i, numbers[i]);
    MPI_Comm both = between(rank);
    if (rank == 0)
        gather(NULL, 0, MPI_INT, numbers, ones, offsets, MPI_INT, MPI_ROOT, both);
    else if (rank == 2)
        gather(NULL, 0, MPI_INT, NULL, NOWHERE, NOWHERE, MPI_INT, MPI_PROC_NULL, both);
    else
        gather(&rank, 1, MPI_INT, NULL, NOWHERE, NOWHERE, MPI_INT, 0, both);
    CHECK(rank != 0 || (numbers[0] == 1 && numbers[1] == 3), "the root has %d and %d", numbers[0], numbers[1]);
    MPI_Comm_free(&both);
    MPI_Finalize();
    return 0;
}
