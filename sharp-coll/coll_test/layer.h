/* SPDX-License-Identifier: Apache-2.0
 *
 * What carries the collectives: libsharp_coll, or the MPI itself for comparison. A call that
 * fails ends all ranks with the reason, because the others wait for this one.
 */
#ifndef COLL_TEST_LAYER_H
#define COLL_TEST_LAYER_H

#include <mpi.h>

#include "operation.h"
#include "options.h"

/* Masks, in which bit n stands for type or operator n. */
struct abilities {
    uint64_t dtypes, tag_dtypes, reduce_ops;
    bool has_blocks; /* reduce-scatter and allgather */
    bool has_lists;  /* messages of several pieces */
};

struct layer {
    const char *name;
    /* Makes a job of all ranks of the communicator, or prints why there is none. The answer is
       the same at all of them. */
    bool (*join)(const struct options *options, MPI_Comm comm, int local_rank);
    void (*leave)(void);
    struct abilities (*abilities)(void);
    /* Makes a group of all ranks of the communicator, which must live as long as the group. */
    void *(*make_group)(MPI_Comm comm);
    void (*free_group)(void *group);
    void *(*name_memory)(void *start, size_t len);
    void (*forget_memory)(void *handle);
    void (*run)(void *group, const struct operation *operation);
    /* Makes a request; the operation may go when this returns. */
    void *(*post)(void *group, const struct operation *operation);
    /* Waits for the request and frees it; if `polls`, tests it again and again instead of
     * waiting. */
    void (*finish)(void *request, bool polls);
};

extern const struct layer sharp_layer, mpi_layer;

#endif
