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
#include <stdbool.h>
#include <stddef.h>

/* A C struct of a value and an int, with the bytes that its compiler leaves empty. */
struct pair_layout {
    size_t value;    /* bytes of the value */
    size_t index;    /* where the int lies */
    size_t distance; /* bytes of the struct */
    size_t width;    /* bytes of both without gaps; 0: this is no pair, or has no gaps */
};

struct wire_type {
    enum trib_dtype dtype;
    enum trib_op op;
    size_t width; /* bytes of one of the tree's elements */
    size_t each;  /* the tree's elements in one of the MPI's: a complex number has two */
    struct pair_layout pair;
};

/* Whether sums and products of such elements depend on the order of their terms. */
bool types_is_float(enum trib_dtype dtype);

/* Whether the operator is one of MPI's own, and not the program's. */
bool types_is_mpis(MPI_Op op);

/* Returns REASON_TREE and sets *type, or returns why the tree does not take the type or operator.
 * Only predefined handles are known, so the answer is the same on all ranks for arguments that MPI
 * calls equal. */
enum reason types_map(const struct config *config, MPI_Datatype datatype, MPI_Op op, struct wire_type *type);

#endif
