/* SPDX-License-Identifier: Apache-2.0
 *
 * The tree's datatype and operator for those of MPI.
 */
#ifndef TRIB_MPI_TYPES_H
#define TRIB_MPI_TYPES_H

#include "collective.h"
#include "config.h"
#include "tributary.h"

#include <mpi.h>
#include <stddef.h>

struct wire_type {
    enum trib_dtype dtype;
    enum trib_op op;
    size_t width; /* bytes of one element */
};

/* Returns REASON_TREE and sets *type, or returns why the tree does not take the type or operator.
 * Only predefined handles are known, so the answer is the same on all ranks for arguments that MPI
 * calls equal. */
enum reason types_map(const struct config *config, MPI_Datatype datatype, MPI_Op op, struct wire_type *type);

#endif
