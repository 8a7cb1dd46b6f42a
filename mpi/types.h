/* SPDX-License-Identifier: Apache-2.0
 *
 * What an MPI datatype and operator are to the tree.
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

/* REASON_TREE and *type, or why the tree does not take it. Only predefined handles are known:
 * what MPI calls the same arguments on all ranks is then the same answer on all ranks. */
enum reason types_map(const struct config *config, MPI_Datatype datatype, MPI_Op op, struct wire_type *type);

#endif
