/* SPDX-License-Identifier: Apache-2.0
 *
 * A call that waits for nobody and that the tree does not take, kept for later: the MPI may not
 * begin it before others of the communicator, and the program does not wait for those either.
 * forwards.c makes one for each of Open MPI's functions, with what the function is to be called
 * with.
 */
#ifndef TRIB_COLL_DEFERRED_H
#define TRIB_COLL_DEFERRED_H

#include "module.h"

#include "ompi/request/request.h"

#include <stddef.h>

struct deferred {
    enum collective name;
    int (*begin)(struct module *module, const struct deferred *deferred, ompi_request_t **request);
    void *copies[6]; /* of arrays: counts, displacements and types of both sides */
    int copy_count;
};

/* What is returned is the first member of a structure of so many bytes. */
struct deferred *deferred_new(size_t size, enum collective name,
                              int (*begin)(struct module *, const struct deferred *, ompi_request_t **));

/* A copy of an array that lives as long as what is deferred; of no bytes the array itself. MPI lets
 * programs change arrays when the call is over and not before. But Open MPI's own requests do not
 * look at counts and displacements again, on which programs have come to rely, and its interface
 * for Fortran makes arrays of types that it frees as soon as the call returns. */
void *deferred_copy(struct deferred *deferred, const void *array, size_t bytes);

/* NULL is allowed. */
void deferred_free(struct deferred *deferred);

/* How many elements arrays have that say what a rank sends and receives; 0 where this rank's mean
 * nothing. */
struct lengths {
    size_t sent, received;
};

struct lengths lengths_of_all(ompi_communicator_t *comm, const void *sent);
struct lengths lengths_at_root(ompi_communicator_t *comm, int root);
struct lengths lengths_of_neighbours(ompi_communicator_t *comm);

#endif
