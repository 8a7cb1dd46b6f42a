/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that the preloaded library refuses itself, because the MPI lacks the function and nothing
 * can stand in: they fail as MPI's own do, through the communicator's error handler.
 *
 *   refused_here return|handler|fatal [count|displacement|absent]
 *
 * fatal: the program must not come to its end.
 */
#include "check.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

static int handled, handled_code;

static void handle(MPI_Comm *comm, int *code, ...)
{
    CHECK(*comm == MPI_COMM_WORLD, "the handler gets another communicator");
    handled++;
    handled_code = *code;
}

/* More elements than an int counts, in a form that the tree does not take. */
static int with_too_many(void)
{
    int (*ibcast)(void *, MPI_Count, MPI_Datatype, int, MPI_Comm, MPI_Request *);
    MPI_Request request = MPI_REQUEST_NULL;
    char byte = 0;

    *(void **)&ibcast = dlsym(dlopen(NULL, RTLD_LAZY), "MPI_Ibcast_c");
    CHECK(ibcast != NULL, "there is no MPI_Ibcast_c");
    return ibcast(&byte, (MPI_Count)1 << 31, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
}

/* A displacement that an int does not hold; of the other arrays every number is 0. */
static int too_far_down(void)
{
    int (*alltoallv)(const void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype, void *, const MPI_Count *, const MPI_Aint *,
                     MPI_Datatype, MPI_Comm);
    const MPI_Count counts[64] = {0};
    const MPI_Aint offsets[64] = {0}, far[64] = {-((MPI_Aint)1 << 31) - 1};
    char byte = 0, other = 0;

    *(void **)&alltoallv = dlsym(dlopen(NULL, RTLD_LAZY), "MPI_Alltoallv_c");
    CHECK(alltoallv != NULL, "there is no MPI_Alltoallv_c");
    return alltoallv(&byte, counts, offsets, MPI_BYTE, &other, counts, far, MPI_BYTE, MPI_COMM_WORLD);
}

static int of_a_missing_function(void)
{
    int (*init)(void *, int, MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request *);
    MPI_Request request = MPI_REQUEST_NULL;
    char byte = 0;

    *(void **)&init = dlsym(dlopen(NULL, RTLD_LAZY), "MPI_Bcast_init");
    CHECK(init != NULL, "there is no MPI_Bcast_init");
    return init(&byte, 1, MPI_BYTE, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "return", *call = argc > 2 ? argv[2] : "count";
    MPI_Errhandler handler = MPI_ERRORS_RETURN;

    MPI_Init(&argc, &argv);
    if (strcmp(how, "handler") == 0)
        MPI_Comm_create_errhandler(handle, &handler);
    if (strcmp(how, "fatal") != 0)
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    bool is_absent = strcmp(call, "absent") == 0;
    int code = is_absent ? of_a_missing_function() : strcmp(call, "count") == 0 ? with_too_many() : too_far_down();
    CHECK(code == (is_absent ? MPI_ERR_OTHER : MPI_ERR_COUNT), "the call returns %d", code);
    if (strcmp(how, "handler") == 0) {
        CHECK(handled == 1 && handled_code == code, "the handler was called %d times, with %d", handled, handled_code);
        MPI_Errhandler_free(&handler);
    }
    MPI_Finalize();
    printf("came to its end\n");
    return 0;
}
