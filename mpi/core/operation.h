/* SPDX-License-Identifier: Apache-2.0
 *
 * One collective through the tree.
 */
#ifndef TRIB_MPI_OPERATION_H
#define TRIB_MPI_OPERATION_H

#include "call.h"
#include "exchange.h"
#include "group.h"
#include "packing.h"
#include "types.h"

#include <stdbool.h>
#include <stddef.h>

struct operation {
    struct call call;  /* as the tree takes it */
    enum kind kind;    /* what the tree does */
    const void *input; /* TRIB_IN_PLACE: it lies in output */
    void *output;      /* of a reduce: significant at the root only */
    size_t count;      /* the tree's elements: of the vector, or of one block; of bcast and allgather
                        * bytes */
    struct wire_type type; /* of reductions */
    uint64_t bytes;        /* of the vector, or of a block */
    struct packing in, out;
    struct exchange exchange;
    const struct group *group;
};

/* Runs the operation. The call is collective over the group. Returns false if the program's ranks
 * disagree about the operation, after a line on stderr that says how. If the tree has failed for
 * good, a line says why, and the program is ended: some ranks may have the result, and nobody else
 * can give it to the others. */
bool operation_run(const struct group *group, struct operation *operation);

/* Begins the operation, whose group may still be in the making. Returns TRIB_OK and sets *request,
 * or an error, which operation_end() or operation_forget() is then told. */
int operation_post(const struct group *group, struct operation *operation, trib_request **request);

/* What follows when the request has ended with this status. Returns as operation_run does. */
bool operation_end(struct operation *operation, int status);

/* Frees what an operation that was posted, and did not take place, holds. */
void operation_forget(struct operation *operation);

#endif
