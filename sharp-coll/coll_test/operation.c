/* SPDX-License-Identifier: Apache-2.0 */
#include "operation.h"

bool kind_has_blocks(enum collective_kind kind)
{
    return kind == KIND_REDUCE_SCATTER || kind == KIND_ALLGATHER;
}

bool kind_reduces(enum collective_kind kind)
{
    return kind == KIND_ALLREDUCE || kind == KIND_REDUCE || kind == KIND_REDUCE_SCATTER;
}

size_t work_stride(const struct work *work)
{
    return work->element->size + (work->tag ? work->tag->size : 0);
}

static size_t block_len(const struct work *work)
{
    return work->kind == KIND_BARRIER ? 0 : work->count * work_stride(work);
}

bool work_has_send(const struct work *work)
{
    return work->kind != KIND_BCAST && !work->is_in_place;
}

size_t work_send_len(const struct work *work)
{
    return work->kind == KIND_REDUCE_SCATTER ? block_len(work) * (size_t)work->size : block_len(work);
}

size_t work_receive_len(const struct work *work)
{
    return work->kind == KIND_ALLGATHER ? block_len(work) * (size_t)work->size : block_len(work);
}

size_t work_send_at(const struct work *work)
{
    return work->kind == KIND_ALLGATHER && work->is_in_place ? block_len(work) * (size_t)work->rank : 0;
}

size_t window_overlap(size_t block_len, int rank, size_t offset, size_t len, size_t *start)
{
    size_t first = block_len * (size_t)rank, end = first + block_len;

    *start = offset > first ? offset : first;
    if (offset + len < end)
        end = offset + len;
    if (*start >= end) {
        *start = first;
        return 0;
    }
    return end - *start;
}

/* The length of a window of whole elements; the last window is what is left. */
static size_t window_len(const struct work *work, unsigned chunk, size_t *offset)
{
    size_t elements = work->count * (size_t)work->size;
    size_t each = (elements + work->chunks - 1) / work->chunks;
    size_t first = each * chunk;

    *offset = first * work_stride(work);
    if (first >= elements)
        return 0;
    return (elements - first < each ? elements - first : each) * work_stride(work);
}

bool work_operation(const struct work *work, unsigned chunk, struct message *send, struct message *receive,
                    struct operation *operation)
{
    size_t start, len = block_len(work);

    *operation = (struct operation){
        .kind = work->kind,
        .element = work->element,
        .tag = work->tag,
        .op = work->op,
        .count = work->count,
        .root = work->root,
        .send = {work_has_send(work) ? send : receive, work_send_at(work), work_send_len(work)},
        .receive = {receive, 0, work_receive_len(work)},
    };
    if (!kind_has_blocks(work->kind))
        return chunk == 0;
    size_t window = window_len(work, chunk, &operation->offset);
    if (window == 0)
        return false;
    window_overlap(len, work->rank, operation->offset, window, &start);
    size_t in_block = start - len * (size_t)work->rank;
    /* The side of the whole vector has the window; the other side is described as a block that
       begins with the part they have in common. */
    struct side *whole = work->kind == KIND_ALLGATHER ? &operation->receive : &operation->send;
    struct side *own = work->kind == KIND_ALLGATHER ? &operation->send : &operation->receive;
    whole->at = operation->offset;
    whole->len = window;
    own->at += in_block;
    return true;
}
