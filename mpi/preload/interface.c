/* SPDX-License-Identifier: Apache-2.0
 *
 * What libtrib_mpi.so, which programs preload, needs of the library for one MPI besides the shims.
 */
#define _GNU_SOURCE
#include "collective.h"
#include "notice.h"
#include "policy.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* The mark shows that both libraries were made from the same table of calls. */
EXPORT extern const char trib_mpi_mark[];
const char trib_mpi_mark[] = COUNTED_MARK;

EXPORT void trib_mpi_count(unsigned index);
void trib_mpi_count(unsigned index)
{
    policy_counted((enum collective)index);
}

EXPORT void trib_mpi_tell_fortran(void);
void trib_mpi_tell_fortran(void)
{
    policy_tell_fortran();
}

/* If this library itself is preloaded, it does nothing, so it says what to preload. */
__attribute__((constructor)) static void check_preload(void)
{
    const char *preload = getenv("LD_PRELOAD");

    if (preload != NULL && strstr(preload, "libtrib_mpi_") != NULL)
        notice("LD_PRELOAD names the library for one MPI; preload libtrib_mpi.so, which finds the right one by itself");
}
