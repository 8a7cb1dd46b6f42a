/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the tree finds a vector and puts the result: in the program's memory, or in memory of ours
 * where elements have gaps or ranks exchange blocks.
 */
#ifndef TRIB_MPI_PREPARE_H
#define TRIB_MPI_PREPARE_H

#include "group.h"
#include "operation.h"

/* Sets the input and output of an operation that the verdict has let into the tree. */
void prepare(const struct group *group, struct operation *operation);

#endif
