/* SPDX-License-Identifier: Apache-2.0
 *
 * The collectives of the tree and of MPI, and the reasons why one of them may stay with the MPI.
 */
#ifndef TRIB_MPI_COLLECTIVE_H
#define TRIB_MPI_COLLECTIVE_H

#include "counted.h"

/* What can go through the tree. */
enum kind {
    /* The tree does these. */
    KIND_ALLREDUCE,
    KIND_REDUCE,
    KIND_BARRIER,
    KIND_BCAST,
    KIND_ALLGATHER,
    KIND_REDUCE_SCATTER, /* of equal blocks */
    /* The tree cannot reduce these. Short ones go as one of those above (exchange.h). */
    KIND_GATHER,
    KIND_SCATTER,
    KIND_ALLTOALL,
    KIND_ALLGATHERV,
    KIND_REDUCE_SCATTERV, /* of blocks of any length */
    KIND_SCAN,
    KIND_EXSCAN,
};

/* What a program calls: COLLECTIVE_MPI_Allreduce and so on, in the order of calls.toml. */
#define COLLECTIVE_ENUMERATOR(name) COLLECTIVE_##name,
enum collective { ALL_COLLECTIVES(COLLECTIVE_ENUMERATOR) COLLECTIVES };

/* REASON_TREE is the verdict "through the tree"; every other value says why not. Every verdict but
 * REASON_ARGUMENT, which means that the program's call is wrong, comes from values that MPI
 * guarantees equal on all ranks of the communicator. */
enum reason {
    REASON_TREE,
    REASON_NOT_TAKEN,
    REASON_NO_JOB,
    REASON_DRY_RUN,
    REASON_NO_GROUP,
    REASON_FEW,
    REASON_FEW_CALLS,
    REASON_ONE_HOST,
    REASON_DISABLED,
    REASON_DATATYPE,
    REASON_OPERATOR,
    REASON_COMBINATION,
    REASON_EMPTY,
    REASON_SMALL,
    REASON_LARGE,
    REASON_MEASURED_SLOWER,
    REASON_PREDICTED_SLOWER,
    REASON_ARGUMENT,
    REASONS
};

/* The name of the MPI's function: "MPI_Allreduce", ... */
const char *collective_name(enum collective collective);
/* The reason in words for people: "no group: ...". */
const char *reason_text(enum reason reason);
/* The reason as a key for programs: "no_group", ... */
const char *reason_key(enum reason reason);

#endif
