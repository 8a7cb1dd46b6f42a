/* SPDX-License-Identifier: Apache-2.0
 *
 * One collective through the tree, from the verdict to its end, whatever happens to the tree
 * meanwhile.
 */
#ifndef TRIB_MPI_OPERATION_H
#define TRIB_MPI_OPERATION_H

#include "collective.h"
#include "group.h"
#include "types.h"

#include <mpi.h>
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

enum outcome {
    OUTCOME_DONE,        /* the result is in place */
    OUTCOME_LEFT_TO_MPI, /* the tree failed, nobody has a result, and the buffers are as the program
                          * gave them */
    OUTCOME_ERROR,       /* the program's ranks disagree about the operation; a line on stderr says
                          * how */
};

/* Runs the operation. The call is collective over the group. */
enum outcome operation_run(struct group *group, const struct operation *operation);

/* Length of its vector in bytes. */
size_t operation_bytes(const struct operation *operation);

#endif
