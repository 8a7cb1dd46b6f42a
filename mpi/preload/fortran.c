/* SPDX-License-Identifier: Apache-2.0
 *
 * How Fortran initialises MPI. Where the MPI's Fortran functions call its C functions by inner
 * names (Open MPI), no call of a Fortran program passes our stubs. The program's user is then told
 * so.
 *
 * The names are those of compilers that append an underscore, which today's do.
 */
#define _GNU_SOURCE
#include "front.h"

#include "notice.h"

#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

static void *find(const char *name, const void *caller)
{
    void *found = front_find(name, caller);

    if (found == NULL) {
        notice("a program called %s, which its MPI does not have", name);
        abort();
    }
    return found;
}

static void tell(const void *caller)
{
    if (front_saw_init())
        return;
    front_choose(caller);
    front_tell_fortran();
}

#define INIT(name) \
    EXPORT void name(int *error); \
    EXPORT void name(int *error) \
    { \
        ((void (*)(int *))find(#name, __builtin_return_address(0)))(error); \
        tell(__builtin_return_address(0)); \
    }

#define INIT_THREAD(name) \
    EXPORT void name(const int *required, int *provided, int *error); \
    EXPORT void name(const int *required, int *provided, int *error) \
    { \
        ((void (*)(const int *, int *, int *))find(#name, __builtin_return_address(0)))(required, provided, error); \
        tell(__builtin_return_address(0)); \
    }

INIT(mpi_init_)
INIT(mpi_init_f08_)
INIT_THREAD(mpi_init_thread_)
INIT_THREAD(mpi_init_thread_f08_)
