/* SPDX-License-Identifier: Apache-2.0
 *
 * One call of a collective, as every layer understands it, and how the work to be done is made
 * into calls.
 *
 * Reduce-scatter and allgather see one vector with a block for each rank, and may work through
 * it in chunks: each call takes a window of the vector, and its part is what the window and this
 * rank's block have in common.
 */
#ifndef COLL_TEST_OPERATION_H
#define COLL_TEST_OPERATION_H

#include "element.h"
#include "message.h"

enum collective_kind {
    KIND_ALLREDUCE,
    KIND_REDUCE,
    KIND_BARRIER,
    KIND_BCAST,
    KIND_REDUCE_SCATTER,
    KIND_ALLGATHER,
};

/* One end of a call: part of a message. */
struct side {
    struct message *message;
    size_t at, len;
};

struct operation {
    enum collective_kind kind;
    const struct element *element, *tag; /* tag: of pairs only */
    enum sharp_reduce_op op;
    size_t count; /* elements; of a vector of blocks: of one block */
    int root;
    size_t offset; /* of the window, bytes */
    struct side send, receive;
};

/* The work to be done, in one call or in several. */
struct work {
    enum collective_kind kind;
    const struct element *element, *tag;
    enum sharp_reduce_op op;
    size_t count;
    int root;
    unsigned chunks; /* of a vector of blocks; otherwise 1 */
    bool is_in_place;
    int rank, size; /* in the group */
};

bool kind_has_blocks(enum collective_kind kind);
bool kind_reduces(enum collective_kind kind);
size_t work_stride(const struct work *work);
/* The lengths of this rank's messages. In place, and for a broadcast, there is only the one that
   receives. */
size_t work_send_len(const struct work *work);
size_t work_receive_len(const struct work *work);
bool work_has_send(const struct work *work);
/* Where this rank's block begins in the message that is sent. */
size_t work_send_at(const struct work *work);
/* The call for one chunk; false if there is none of this number. */
bool work_operation(const struct work *work, unsigned chunk, struct message *send, struct message *receive,
                    struct operation *operation);
/* What a window and a rank's block have in common: its start in the vector; empty if the length is
   0. */
size_t window_overlap(size_t block_len, int rank, size_t offset, size_t len, size_t *start);

#endif
