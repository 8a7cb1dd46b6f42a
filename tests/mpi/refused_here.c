/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that the preloaded library refuses itself, because the MPI lacks the function and nothing
 * can stand in: they fail as MPI's own do, through the communicator's error handler.
 *
 *   refused_here return|handler|fatal [count|absent]
 *
 * fatal: the program must not come to its end.
 */
#include "check.h"

#include <dlfcn.h>
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
    int code = strcmp(call, "count") == 0 ? with_too_many() : of_a_missing_function();
    CHECK(code == (strcmp(call, "count") == 0 ? MPI_ERR_COUNT : MPI_ERR_OTHER), "the call returns %d", code);
    if (strcmp(how, "handler") == 0) {
        CHECK(handled == 1 && handled_code == code, "the handler was called %d times, with %d", handled, handled_code);
        MPI_Errhandler_free(&handler);
    }
    MPI_Finalize();
    printf("came to its end\n");
    return 0;
}
