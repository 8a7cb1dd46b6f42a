/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of Fortran that pass the MPI's C functions by.
 *
 * Open MPI's Fortran functions call its C functions by inner names, so no call of a Fortran program
 * passes our stubs. The program's user is then told so. Where C has initialised such an MPI, the
 * end that Fortran calls is C's.
 *
 * MPICH's call the C functions by the names that programs use, and the stubs see them with C's
 * arguments: the MPI has translated handles, MPI_IN_PLACE, MPI_BOTTOM and the descriptors of
 * mpi_f08. Those functions of mpi_f08 that have no buffer are different: they call PMPI_ functions.
 * Of these the ones that matter here are below and, for constructors, generated.
 *
 * The names are those of compilers that append an underscore, which today's do.
 */
#define _GNU_SOURCE
#include "fortran.h"

#include "counted.h"
#include "front.h"
#include "notice.h"
#include "objects.h"

#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

void *fortran_find(fortran_kept *kept, const char *name, const void *caller)
{
    void *found = *kept;

    if (found != NULL)
        return found;
    found = objects_find(name, caller);
    if (found == NULL) {
        notice("a program called %s, which its MPI does not have", name);
        abort();
    }
    *kept = found;
    return found;
}

void fortran_constructed(int result, const int *newcomm)
{
    front_constructed(result, *newcomm);
}

static void tell(const void *caller)
{
    if (front_saw_init())
        return;
    front_choose(caller);
    front_tell_fortran();
}

static void set(int *error, int result)
{
    if (error != NULL)
        *error = result;
}

#define INIT(name) \
    EXPORT void name(int *error); \
    EXPORT void name(int *error) \
    { \
        static fortran_kept kept; \
\
        ((void (*)(int *))fortran_find(&kept, #name, __builtin_return_address(0)))(error); \
        tell(__builtin_return_address(0)); \
    }

#define INIT_THREAD(name) \
    EXPORT void name(const int *required, int *provided, int *error); \
    EXPORT void name(const int *required, int *provided, int *error) \
    { \
        static fortran_kept kept; \
\
        ((void (*)(const int *, int *, int *))fortran_find(&kept, #name, __builtin_return_address(0)))(required, provided, error); \
        tell(__builtin_return_address(0)); \
    }

INIT(mpi_init_)
INIT_THREAD(mpi_init_thread_)

EXPORT void mpi_init_f08_(int *error);
EXPORT void mpi_init_f08_(int *error)
{
    static fortran_kept kept;
    const void *caller = __builtin_return_address(0);

    front_choose(caller);
    if (front_takes_fortran()) {
        set(error, ((int (*)(word, word))front_target(FRONT_MPI_Init, caller))(0, 0));
        return;
    }
    ((void (*)(int *))fortran_find(&kept, "mpi_init_f08_", caller))(error);
    front_tell_fortran();
}

EXPORT void mpi_init_thread_f08_(const int *required, int *provided, int *error);
EXPORT void mpi_init_thread_f08_(const int *required, int *provided, int *error)
{
    static fortran_kept kept;
    const void *caller = __builtin_return_address(0);

    front_choose(caller);
    if (front_takes_fortran()) {
        set(error, ((int (*)(word, word, int, int *))front_target(FRONT_MPI_Init_thread, caller))(0, 0, *required, provided));
        return;
    }
    ((void (*)(const int *, int *, int *))fortran_find(&kept, "mpi_init_thread_f08_", caller))(required, provided, error);
    front_tell_fortran();
}

/* Whether C has initialised an MPI whose Fortran functions pass C's by. A library of ours may have
 * joined a job then, and has to hear of the end. */
static bool ends_what_c_began(void)
{
    return front_saw_init() && front_is_open_mpi();
}

static void finalize(fortran_kept *kept, const char *name, const void *caller, int *error)
{
    if (front_takes_fortran() || ends_what_c_began())
        set(error, ((int (*)(void))front_target(FRONT_MPI_Finalize, caller))());
    else
        ((void (*)(int *))fortran_find(kept, name, caller))(error);
}

static void abort_all(fortran_kept *kept, const char *name, const void *caller, const int *comm, const int *code, int *error)
{
    if (ends_what_c_began())
        set(error, ((int (*)(word, int))front_target(FRONT_MPI_Abort, caller))(
                       ((word (*)(int))front_mpi_function("PMPI_Comm_f2c"))(*comm), *code));
    else if (front_takes_fortran())
        set(error, ((int (*)(int, int))front_target(FRONT_MPI_Abort, caller))(*comm, *code));
    else
        ((void (*)(const int *, const int *, int *))fortran_find(kept, name, caller))(comm, code, error);
}

#define FINALIZE(name) \
    EXPORT void name(int *error); \
    EXPORT void name(int *error) \
    { \
        static fortran_kept kept; \
\
        finalize(&kept, #name, __builtin_return_address(0), error); \
    }

#define ABORT(name) \
    EXPORT void name(const int *comm, const int *code, int *error); \
    EXPORT void name(const int *comm, const int *code, int *error) \
    { \
        static fortran_kept kept; \
\
        abort_all(&kept, #name, __builtin_return_address(0), comm, code, error); \
    }

FINALIZE(mpi_finalize_)
FINALIZE(mpi_finalize_f08_)
ABORT(mpi_abort_)
ABORT(mpi_abort_f08_)

EXPORT void mpi_barrier_f08_(const int *comm, int *error);
EXPORT void mpi_barrier_f08_(const int *comm, int *error)
{
    static fortran_kept kept;
    const void *caller = __builtin_return_address(0);

    if (front_takes_fortran())
        set(error, ((int (*)(int))front_target(FRONT_MPI_Barrier, caller))(*comm));
    else
        ((void (*)(const int *, int *))fortran_find(&kept, "mpi_barrier_f08_", caller))(comm, error);
}
