/* SPDX-License-Identifier: Apache-2.0
 *
 * At which lengths the tree was measured to be faster than Open MPI 4.1 (docs/mpi-collectives.md).
 * It comes from measurements what no model of ours knows: which algorithm an MPI takes at a length,
 * and whether its ranks wait for each other there.
 */
#ifndef TRIB_MPI_MEASURED_H
#define TRIB_MPI_MEASURED_H

#include "collective.h"
#include "group.h"

#include <stdbool.h>
#include <stdint.h>

/* In the memory of one host. `share` is the bytes of the vector, or of what one rank gives to one
 * other, and `whole` those of all ranks together. */
bool measured_faster_in_memory(enum kind kind, uint64_t share, uint64_t whole);

/* Over several hosts. `bytes` are those of the vector; of blocks those of all ranks together, where
 * each block counts as long as the longest. */
bool measured_faster_over_hosts(const struct group *group, enum kind kind, uint64_t bytes);

#endif
