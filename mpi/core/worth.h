/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a call that the tree can do is faster there than by the MPI. All members of a group come
 * to the same: nothing goes into it but lengths that MPI guarantees equal, what the manager
 * predicted when it admitted the job, and what was measured (docs/mpi-collectives.md).
 */
#ifndef TRIB_MPI_WORTH_H
#define TRIB_MPI_WORTH_H

#include "collective.h"
#include "group.h"
#include "operation.h"

#include <stdint.h>

/* Returns REASON_TREE, or why the MPI is to do it. The MPI's time depends on what the program
 * called, and the tree's on what it takes the call for (operation.h). `share` is the bytes of the
 * vector, or of what one rank gives to one other, and `whole` those of all ranks together. */
enum reason worth_of(const struct group *group, enum kind called, enum kind taken, uint64_t share, uint64_t whole);

/* For how many short calls an operation counts that a tree would do, when it is weighed whether to
 * make one. All members come to the same. */
uint64_t worth_in_calls(const struct operation *operation);

#endif
