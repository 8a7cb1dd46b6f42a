/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses one rank on each host that speaks for all, when ranks can no longer talk to each other:
 * the first one that asks.
 */
#ifndef TRIB_MPI_ONCE_H
#define TRIB_MPI_ONCE_H

#include <mpi.h>
#include <stdbool.h>

/* Opens the host's shared memory. The call is collective over world, whose ranks know their
 * placement. On a host without shared memory every rank counts as the first. */
void once_open(MPI_Comm world);

/* Returns true for the first rank of this host that calls it. */
bool once_is_first(void);

void once_close(void);

#endif
