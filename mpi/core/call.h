/* SPDX-License-Identifier: Apache-2.0
 *
 * A collective as a program calls it.
 */
#ifndef TRIB_MPI_CALL_H
#define TRIB_MPI_CALL_H

#include "collective.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct call {
    enum kind kind;
    enum collective name;
    const void *send; /* may be MPI_IN_PLACE; of a bcast the same as recv */
    void *recv;
    /* Of the vector; of the block that each rank gets, for allgather and reduce_scatter. */
    int64_t count;
    MPI_Datatype datatype;
    /* Of the block that a rank gives to an allgather, unless in place. */
    int64_t send_count;
    MPI_Datatype send_type;
    MPI_Op op; /* of reductions */
    int root;  /* of reduce, bcast, gather and scatter */
    /* Of each rank's block, where they differ, and where it begins in recv, in elements. They
     * belong to the program, and MPI lets it change them only when the call is over. */
    const int *counts, *offsets;
    /* The same of a form for large counts, which has these instead. */
    const MPI_Count *large_counts;
    const MPI_Aint *large_offsets;
    bool is_mpis_own; /* the MPI makes the call for itself: it stays there */
};

/* Ranks may mix the two forms of one operation, so nothing else asks which one a call has. */
static inline bool call_has_counts(const struct call *call)
{
    return call->counts != NULL || call->large_counts != NULL;
}

static inline int64_t call_count(const struct call *call, uint32_t rank)
{
    return call->large_counts != NULL ? call->large_counts[rank] : call->counts[rank];
}

static inline int64_t call_offset(const struct call *call, uint32_t rank)
{
    return call->large_offsets != NULL ? call->large_offsets[rank] : call->offsets[rank];
}

#endif
