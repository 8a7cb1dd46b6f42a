/* SPDX-License-Identifier: Apache-2.0
 *
 * One collective through the tree, to its end.
 */
#ifndef TRIB_MPI_OPERATION_H
#define TRIB_MPI_OPERATION_H

#include "collective.h"
#include "group.h"
#include "types.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

struct operation {
    enum collective collective;
    const void *input; /* TRIB_IN_PLACE: it lies in output */
    void *output;      /* of a reduce: significant at the root only */
    size_t count;      /* elements */
    struct wire_type type;
    uint32_t root;
    MPI_Datatype datatype; /* the same type and operator as the MPI knows them */
    MPI_Op op;
};

/* Runs the operation. The call is collective over the group. Returns false if the program's ranks
 * disagree about the operation, after a line on stderr that says how. If the tree has failed for
 * good, a line says why, and the program is ended: some ranks may have the result, and nobody else
 * can give it to the others. */
bool operation_run(const struct group *group, const struct operation *operation);

/* Length of its vector in bytes. */
size_t operation_bytes(const struct operation *operation);

#endif
