/* SPDX-License-Identifier: Apache-2.0
 *
 * What libtrib_mpi.so, which programs preload, needs of the library for one MPI besides the shims.
 */
#define _GNU_SOURCE
#include "collective.h"
#include "groups.h"
#include "notice.h"
#include "pmpi.h"
#include "policy.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* The mark shows that both libraries were made from the same table of calls. */
EXPORT extern const char trib_mpi_mark[];
const char trib_mpi_mark[] = COUNTED_MARK;

EXPORT extern const char trib_mpi_abi[];
const char trib_mpi_abi[] = TRIB_MPI_ABI;

/* Takes the MPI's functions from find, and returns the name of one that it does not have; NULL: all
 * are there. An MPI that is found, instead of linked, may be any with this ABI. Under a name in
 * MPI_ find has the function of a tool behind this library, where there is one. */
EXPORT const char *trib_mpi_bind(void *(*find)(const char *name));
const char *trib_mpi_bind(void *(*find)(const char *name))
{
#define BIND(name) \
    pmpi.name = (__typeof__(pmpi.name))find("PMPI_" #name); \
    if (pmpi.name == NULL) \
        return "MPI_" #name;
    PMPI_FUNCTIONS(BIND)
#define BIND_NEXT(name) next.name = (__typeof__(next.name))find("MPI_" #name);
    NEXT_FUNCTIONS(BIND_NEXT)
    groups_ask_whether_revoked((int (*)(MPI_Comm, int *))find("PMPIX_Comm_is_revoked"));
    return NULL;
}

EXPORT void trib_mpi_count(unsigned index);
void trib_mpi_count(unsigned index)
{
    policy_counted((enum collective)index);
}

#ifdef MPICH_VERSION
/* Looks at a communicator that a Fortran program has made past the MPI's C functions. Open MPI has
 * none of this: there the component sees such a program. */
EXPORT void trib_mpi_constructed(int result, int newcomm);
void trib_mpi_constructed(int result, int newcomm)
{
    MPI_Comm comm = MPI_Comm_f2c(newcomm);

    policy_constructed(result, &comm);
}
#endif

/* If this library itself is preloaded, it does nothing, so it says what to preload. */
__attribute__((constructor)) static void check_preload(void)
{
    const char *preload = getenv("LD_PRELOAD");

    if (preload != NULL && strstr(preload, "libtrib_mpi_") != NULL)
        notice("LD_PRELOAD names the library for one MPI; preload libtrib_mpi.so, which finds the right one by itself");
}
