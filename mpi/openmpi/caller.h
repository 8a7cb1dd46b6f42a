/* SPDX-License-Identifier: Apache-2.0
 *
 * Open MPI calls the functions of collectives for a program, and for itself, as when it makes a
 * communicator. The latter are no calls of the program's: they stay with the MPI and are not
 * counted.
 */
#ifndef TRIB_COLL_CALLER_H
#define TRIB_COLL_CALLER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The function of the MPI that programs call, PMPI_Allreduce for one; the rest is zero at first. */
struct entry {
    const void *function;
    atomic_uintptr_t end; /* where its code ends; UINTPTR_MAX: that is not known */
};

/* Whether the MPI called for itself. caller is the address to which our function returns. Equal on
 * all ranks. */
bool caller_is_mpi(struct entry *entry, const void *caller);

#endif
