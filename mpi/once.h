/* SPDX-License-Identifier: Apache-2.0
 *
 * A word that one rank says for all, when ranks can no longer talk to each other: the first on each
 * host that asks.
 */
#ifndef TRIB_MPI_ONCE_H
#define TRIB_MPI_ONCE_H

#include <mpi.h>
#include <stdbool.h>

/* Collective over world, whose ranks know their placement. Where a host has no shared memory
 * each rank is the first. */
void once_open(MPI_Comm world);

/* True for the first rank of this host that calls it. */
bool once_is_first(void);

void once_close(void);

#endif
