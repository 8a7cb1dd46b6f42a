/* SPDX-License-Identifier: Apache-2.0
 *
 * collectives.h - correct collectives, with garbage wherever the library may not look: in every
 * word of a spec that its collective does not need, in the descriptor of a result that a rank
 * does not get, and in specs and lists once the call has returned.
 */
#ifndef COLLECTIVES_H
#define COLLECTIVES_H

#include "state.h"

/* The spec of any collective, with lists for both of its descriptors. */
struct call {
    struct sharp_coll_reduce_spec reduce;
    struct sharp_coll_bcast_spec bcast;
    struct sharp_coll_gather_spec gather;
    struct sharp_data_iov sent[SHARP_COLL_DATA_MAX_IOV], taken[SHARP_COLL_DATA_MAX_IOV];
};

static enum sharp_data_memory_type any_memory_type(void)
{
    /* Any type that is not exactly CUDA is host memory. */
    uint32_t number = (uint32_t)draw(&alone);
    return (enum sharp_data_memory_type)(one_in(&alone, 2) || number == SHARP_MEM_TYPE_CUDA ? 0 : number);
}

/* One buffer. It may be longer than its message, except where its length describes a window. */
static struct sharp_coll_data_desc one_buffer(void *start, size_t len, int len_counts)
{
    struct sharp_coll_data_desc desc;
    scribble(&desc, sizeof desc);
    desc.type = SHARP_DATA_BUFFER;
    desc.mem_type = any_memory_type();
    desc.buffer.ptr = start;
    desc.buffer.length = len_counts || one_in(&alone, 2) ? len : len + below(&alone, (size_t)1 << 40);
    desc.buffer.mem_handle = any_region();
    return desc;
}

/* The same memory, cut anywhere, with empty pieces, and with entries behind the last one that
   are not valid. */
static struct sharp_coll_data_desc pieces_of(void *start, size_t len, struct sharp_data_iov *list)
{
    struct sharp_coll_data_desc desc;
    size_t at = 0, count = 1 + below(&alone, SHARP_COLL_DATA_MAX_IOV);
    scribble(&desc, sizeof desc);
    scribble(list, SHARP_COLL_DATA_MAX_IOV * sizeof *list);
    desc.type = SHARP_DATA_IOV;
    desc.mem_type = any_memory_type();
    desc.iov.count = (unsigned)count;
    desc.iov.vector = list;
    for (size_t p = 0; p < count; p++) {
        size_t piece = p + 1 == count ? len - at : one_in(&alone, 4) ? 0 : below(&alone, len - at + 1);
        list[p].ptr = piece == 0 && one_in(&alone, 2) ? NULL : (char *)start + at;
        list[p].length = piece;
        list[p].mem_handle = any_region();
        at += piece;
    }
    return desc;
}

static struct sharp_coll_data_desc any_desc(struct area *area, struct sharp_data_iov *list)
{
    return one_in(&alone, 3) ? pieces_of(area->start, area->len, list) : one_buffer(area->start, area->len, 0);
}

static size_t element_size(const struct operation *operation)
{
    return operation->collective == BCAST || operation->collective == ALLGATHER ? 1 : size_of(operation->dtype);
}

static enum sharp_reduce_op any_operator(struct chance *chance, enum sharp_datatype dtype)
{
    static const enum sharp_reduce_op all[] = {SHARP_OP_SUM,  SHARP_OP_MAX, SHARP_OP_MIN,
                                               SHARP_OP_BAND, SHARP_OP_BOR, SHARP_OP_BXOR};
    return all[below(chance, is_floating(dtype) ? 3 : LENGTH(all))];
}

/* What all ranks must agree on. */
static struct operation any_operation(void)
{
    static const size_t counts[] = {0, 1, 2, 3, 7, 33, 100, 256, 1000, 4097, 20000};
    struct operation one;
    memset(&one, 0, sizeof one);
    one.collective = (enum collective)below(&together, COLLECTIVES);
    one.dtype = (enum sharp_datatype)below(&together, SHARP_DTYPE_NULL);
    one.op = any_operator(&together, one.dtype);
    one.key = draw(&together);
    one.root = (int)below(&together, (size_t)own_size);
    one.count = counts[below(&together, LENGTH(counts))];
    size_t all = one.count * (size_t)own_size, block = one.count * (size_t)own_rank;
    one.len = all;
    if (one_in(&together, 2)) {
        one.from = below(&together, all + 1);
        one.len = below(&together, all - one.from + 1);
    }
    size_t start = block > one.from ? block : one.from;
    size_t stop = block + one.count < one.from + one.len ? block + one.count : one.from + one.len;
    one.own_from = start < stop ? start : 0;
    one.own_len = start < stop ? stop - start : 0;
    return one;
}

/* Makes the buffers, and fills in what this rank gives. */
static void prepare(struct operation *one)
{
    size_t size = element_size(one);
    int is_root = own_rank == one->root;
    switch (one->collective) {
    case BARRIER:
    case COLLECTIVES: return;
    case ALLREDUCE:
    case REDUCE:
        one->is_in_place = (one->collective == ALLREDUCE || is_root) && one_in(&alone, 3);
        one->out = area_of(one->count * size);
        one->in = one->is_in_place ? one->out : area_of(one->count * size);
        fill(one->in.start, 0, one->count, one->key, own_rank, one->dtype);
        return;
    case BCAST:
        one->out = area_of(one->count);
        if (is_root)
            fill(one->out.start, 0, one->count, one->key, one->root, SHARP_DTYPE_UINT8);
        return;
    case REDUCE_SCATTER:
        /* In place: the result begins where the window does. */
        one->is_in_place = one_in(&alone, 3);
        one->in = area_of(one->len * size);
        one->out = one->is_in_place ? one->in : area_of(one->own_len * size);
        fill(one->in.start, one->from, one->len, one->key, own_rank, one->dtype);
        return;
    case ALLGATHER:
        /* In place: this rank's part is where it will be. */
        one->is_in_place = one->own_len > 0 && one_in(&alone, 3);
        one->out = area_of(one->len);
        one->in = one->is_in_place ? one->out : area_of(one->own_len);
        fill(one->is_in_place ? one->out.start + (one->own_from - one->from) : one->in.start, one->own_from, one->own_len,
             one->key, 0, SHARP_DTYPE_UINT8);
        return;
    }
}

/* The spec of an operation. */
static void describe(struct operation *one, struct call *call)
{
    size_t size = element_size(one);
    scribble(call, sizeof *call);
    switch (one->collective) {
    case BARRIER:
    case COLLECTIVES: return;
    case ALLREDUCE:
    case REDUCE:
        if (one->collective == REDUCE)
            call->reduce.root = one->root;
        call->reduce.dtype = one->dtype;
        call->reduce.op = one->op;
        call->reduce.length = one->count;
        call->reduce.sbuf_desc = any_desc(&one->in, call->sent);
        if (one->collective == ALLREDUCE || own_rank == one->root)
            call->reduce.rbuf_desc = any_desc(&one->out, call->taken);
        return;
    case BCAST:
        call->bcast.root = one->root;
        call->bcast.size = one->count;
        call->bcast.buf_desc = any_desc(&one->out, call->taken);
        return;
    case REDUCE_SCATTER:
        call->reduce.dtype = one->dtype;
        call->reduce.op = one->op;
        call->reduce.offset = one->from * size;
        call->reduce.sbuf_desc = one_buffer(one->in.start, one->len * size, 1);
        call->reduce.rbuf_desc = one_buffer(one->out.start, one->count * size, 1);
        return;
    case ALLGATHER:
        call->gather.offset = one->from;
        call->gather.sbuf_desc = one_buffer(
            one->is_in_place ? one->out.start + (one->own_from - one->from) : one->in.start, one->count, 1);
        call->gather.rbuf_desc = one_buffer(one->out.start, one->len, 1);
        return;
    }
}

/* The call itself: without `request` it waits. */
static int make(enum collective collective, struct sharp_coll_comm *comm, struct call *call, void **request)
{
    switch (collective) {
    case BARRIER: return request ? sharp_coll_do_barrier_nb(comm, request) : sharp_coll_do_barrier(comm);
    case ALLREDUCE:
        return request ? sharp_coll_do_allreduce_nb(comm, &call->reduce, request) : sharp_coll_do_allreduce(comm, &call->reduce);
    case REDUCE:
        return request ? sharp_coll_do_reduce_nb(comm, &call->reduce, request) : sharp_coll_do_reduce(comm, &call->reduce);
    case BCAST: return request ? sharp_coll_do_bcast_nb(comm, &call->bcast, request) : sharp_coll_do_bcast(comm, &call->bcast);
    case REDUCE_SCATTER:
        return request ? sharp_coll_do_reduce_scatter_nb(comm, &call->reduce, request)
                       : sharp_coll_do_reduce_scatter(comm, &call->reduce);
    default:
        return request ? sharp_coll_do_allgather_nb(comm, &call->gather, request)
                       : sharp_coll_do_allgather(comm, &call->gather);
    }
}

/* Whether this rank got what it was to get. */
static int is_right(const struct operation *one)
{
    switch (one->collective) {
    case ALLREDUCE: return is_reduced(one->out.start, 0, one->count, one->key, own_size, one->dtype, one->op);
    case REDUCE:
        return own_rank != one->root || is_reduced(one->out.start, 0, one->count, one->key, own_size, one->dtype, one->op);
    case BCAST:
        for (size_t i = 0; i < one->count; i++)
            if (one->out.start[i] != (unsigned char)element(one->key, one->root, i, SHARP_DTYPE_UINT8))
                return 0;
        return 1;
    case REDUCE_SCATTER:
        return is_reduced(one->out.start, one->own_from, one->own_len, one->key, own_size, one->dtype, one->op);
    case ALLGATHER:
        for (size_t i = 0; i < one->len; i++)
            if (one->out.start[i] != (unsigned char)element(one->key, 0, one->from + i, SHARP_DTYPE_UINT8))
                return 0;
        return 1;
    default: return 1;
    }
}

static void clear(struct operation *one)
{
    if (one->is_in_place)
        memset(&one->in, 0, sizeof one->in); /* it is the same area as `out` */
    release(&one->in);
    release(&one->out);
    memset(one, 0, sizeof *one);
}

#endif
