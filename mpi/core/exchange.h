/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives in which ranks exchange blocks, so that nothing can be reduced on the way. Short ones
 * are a matter of latency: one operation of the tree brings more bytes than a rank needs and yet
 * takes less time than the messages of the MPI's own algorithm.
 *
 *   gather, allgatherv, scan, exscan   an allgather of all blocks, the longest length each
 *   alltoall                           an allgather of all that each rank gives
 *   scatter                            a bcast of all blocks
 *   reduce_scatter                     an allreduce of all blocks
 *
 * Each rank then takes what is its own. gatherv, scatterv and alltoallv cannot go this way: there a
 * rank does not know how long the blocks of others are, so ranks could not agree whether it pays.
 */
#ifndef TRIB_MPI_EXCHANGE_H
#define TRIB_MPI_EXCHANGE_H

#include "call.h"
#include "group.h"

#include <stdbool.h>
#include <stddef.h>

/* Memory for an exchange; all zero: the operation is none. */
struct exchange {
    char *given, *all;
    size_t block; /* bytes of a block of `all` */
};

bool exchange_is_one(enum kind kind);

/* Which of the tree's operations it becomes. */
enum kind exchange_as(enum kind kind);

/* The bytes of a block in that operation, which are equal on all ranks; 0 if the call is not one
 * for the tree, or nothing is exchanged. */
size_t exchange_block(const struct group *group, const struct call *call);

/* The bytes of all blocks that the operation brings to a rank. */
size_t exchange_whole(const struct group *group, const struct call *call, size_t block);

/* The bytes that one rank gives to one other; the average of all ranks, where they differ. */
size_t exchange_share(const struct group *group, const struct call *call, size_t block);

/* Whether the vectors of this rank do not fit the block, or are not there. */
bool exchange_is_wrong(const struct group *group, const struct call *call, size_t block);

/* Takes what this rank gives. A program without memory for it is ended. */
void exchange_open(struct exchange *exchange, const struct group *group, const struct call *call, size_t block);

/* Gives the program what is its own, after the operation. */
void exchange_take(const struct exchange *exchange, const struct group *group, const struct call *call);

void exchange_close(struct exchange *exchange);

#endif
