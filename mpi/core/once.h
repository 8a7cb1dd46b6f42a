/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses one rank on each host that speaks for all, when ranks can no longer talk to each other:
 * the first one that asks.
 */
#ifndef TRIB_MPI_ONCE_H
#define TRIB_MPI_ONCE_H

#include <stdbool.h>
#include <stdint.h>

/* What tells a program from all others, for rank 0 to give to all ranks. */
void once_name(uint64_t program[2]);

/* Opens the host's shared memory. The call is local; once_settle() follows when all ranks have come
 * here. On a host without shared memory every rank counts as the first. */
void once_open(const uint64_t program[2]);
void once_settle(void);

/* Returns true for the first rank of this host that calls it. */
bool once_is_first(void);

void once_close(void);

#endif
