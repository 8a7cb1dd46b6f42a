/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange.h"

#include "job.h"
#include "packing.h"
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

bool exchange_is_one(enum kind kind)
{
    return kind >= KIND_GATHER;
}

enum kind exchange_as(enum kind kind)
{
    return kind == KIND_SCATTER ? KIND_BCAST : kind == KIND_REDUCE_SCATTERV ? KIND_ALLREDUCE : KIND_ALLGATHER;
}

static size_t size_of(int64_t count, MPI_Datatype datatype)
{
    size_t bytes, distance;

    runtime_extent(datatype, &bytes, &distance);
    return count > 0 ? (size_t)count * bytes : 0;
}

static size_t distance_of(MPI_Datatype datatype)
{
    size_t bytes, distance;

    runtime_extent(datatype, &bytes, &distance);
    return distance;
}

/* The longest of all blocks, or the sum of all, in elements. */
static size_t counts_of(const struct group *group, const struct call *call, bool sum)
{
    size_t result = 0;

    for (uint32_t rank = 0; rank < group->size; rank++) {
        size_t count = call_count(call, rank) > 0 ? (size_t)call_count(call, rank) : 0;
        result = sum ? result + count : count > result ? count : result;
    }
    return result;
}

static bool is_root(const struct group *group, const struct call *call)
{
    return call->root >= 0 && (uint32_t)call->root == group->rank;
}

size_t exchange_block(const struct group *group, const struct call *call)
{
    switch (call->kind) {
    case KIND_GATHER: /* what is received counts at the root alone, and what is given may lie in it there */
        return is_root(group, call) ? size_of(call->count, call->datatype) : size_of(call->send_count, call->send_type);
    case KIND_SCATTER:
        return is_root(group, call) ? size_of(call->send_count, call->send_type) : size_of(call->count, call->datatype);
    case KIND_ALLTOALL:
        return size_of(call->count, call->datatype) * group->size;
    case KIND_ALLGATHERV:
        return size_of((int64_t)counts_of(group, call, false), call->datatype);
    case KIND_REDUCE_SCATTERV:
        return size_of((int64_t)counts_of(group, call, true), call->datatype);
    case KIND_SCAN:
    case KIND_EXSCAN: /* the MPI's own operators work on elements that lie as the program's do */
        return packing_is_needless(call->datatype) ? size_of(call->count, call->datatype) : 0;
    default:
        return 0;
    }
}

size_t exchange_whole(const struct group *group, const struct call *call, size_t block)
{
    return call->kind == KIND_REDUCE_SCATTERV ? block : block * group->size;
}

size_t exchange_share(const struct group *group, const struct call *call, size_t block)
{
    switch (call->kind) {
    case KIND_ALLTOALL:
    case KIND_REDUCE_SCATTERV:
        return block / group->size;
    case KIND_ALLGATHERV:
        return size_of((int64_t)counts_of(group, call, true), call->datatype) / group->size;
    default:
        return block;
    }
}

/* The bytes that this rank gives. */
static size_t given_bytes(const struct group *group, const struct call *call, size_t block)
{
    switch (call->kind) {
    case KIND_SCATTER:
        return is_root(group, call) ? block * group->size : 0;
    case KIND_ALLGATHERV:
        return size_of(call_count(call, group->rank), call->datatype);
    default:
        return block;
    }
}

/* Whether what this rank gives has another length than the others expect, or is not there. Of a
 * scatter it counts at the root alone. */
static bool gives_wrongly(const struct group *group, const struct call *call, size_t block)
{
    size_t expected = given_bytes(group, call, block);

    if (call->kind == KIND_SCATTER && !is_root(group, call))
        return false;
    if (call->send == MPI_IN_PLACE)
        return call->kind == KIND_SCATTER || (call->kind == KIND_GATHER && !is_root(group, call));
    if (call->kind == KIND_REDUCE_SCATTERV || call->kind >= KIND_SCAN)
        return false;
    size_t times = call->kind == KIND_SCATTER || call->kind == KIND_ALLTOALL ? group->size : 1;
    return size_of(call->send_count, call->send_type) * times != expected ||
           (expected > 0 && call->send == NULL && packing_is_needless(call->send_type));
}

/* Whether recv counts on this rank: MPI lets programs give anything where it does not, and where
 * nothing is to be received. */
static bool receives(const struct group *group, const struct call *call)
{
    switch (call->kind) {
    case KIND_GATHER:
        return is_root(group, call);
    case KIND_REDUCE_SCATTERV:
        return call_count(call, group->rank) != 0 || call->send == MPI_IN_PLACE;
    case KIND_EXSCAN:
        return group->rank != 0 || call->send == MPI_IN_PLACE;
    default:
        return true;
    }
}

bool exchange_is_wrong(const struct group *group, const struct call *call, size_t block)
{
    bool has_root = call->kind == KIND_GATHER || call->kind == KIND_SCATTER;

    if (has_root && (call->root < 0 || (uint32_t)call->root >= group->size))
        return true;
    if (gives_wrongly(group, call, block))
        return true;
    if (!receives(group, call))
        return false;
    if (call->recv == MPI_IN_PLACE)
        return call->kind != KIND_SCATTER || !is_root(group, call);
    if (call->kind == KIND_SCATTER && size_of(call->count, call->datatype) != block)
        return true;
    return call->recv == NULL && packing_is_needless(call->datatype);
}

/* Where rank's block of the received vector begins. */
static char *block_of(const struct call *call, size_t rank)
{
    return (char *)call->recv + (size_t)call->count * rank * distance_of(call->datatype);
}

static const char *given_in_place(const struct group *group, const struct call *call)
{
    switch (call->kind) {
    case KIND_GATHER:
        return block_of(call, group->rank);
    case KIND_ALLGATHERV:
        return (const char *)call->recv + call_offset(call, group->rank) * (ptrdiff_t)distance_of(call->datatype);
    default:
        return call->recv;
    }
}

/* Copies what this rank gives to memory without gaps. */
static void give(const struct group *group, const struct call *call, char *to)
{
    bool in_place = call->send == MPI_IN_PLACE;
    const void *from = in_place ? given_in_place(group, call) : call->send;
    size_t ranks = group->size;

    switch (call->kind) {
    case KIND_GATHER:
        runtime_pack(from, (size_t)(in_place ? call->count : call->send_count), in_place ? call->datatype : call->send_type, to);
        break;
    case KIND_SCATTER:
        if (is_root(group, call))
            runtime_pack(call->send, (size_t)call->send_count * ranks, call->send_type, to);
        break;
    case KIND_ALLTOALL:
        runtime_pack(from, (size_t)(in_place ? call->count : call->send_count) * ranks, in_place ? call->datatype : call->send_type, to);
        break;
    case KIND_ALLGATHERV:
        runtime_pack(from, (size_t)(in_place ? call_count(call, group->rank) : call->send_count),
                     in_place ? call->datatype : call->send_type, to);
        break;
    case KIND_REDUCE_SCATTERV:
        runtime_pack(from, counts_of(group, call, true), call->datatype, to);
        break;
    default:
        runtime_pack(from, (size_t)call->count, call->datatype, to);
    }
}

void exchange_open(struct exchange *exchange, const struct group *group, const struct call *call, size_t block)
{
    size_t whole = exchange_whole(group, call, block);

    exchange->block = block;
    exchange->all = calloc(1, whole);
    exchange->given = exchange_as(call->kind) == KIND_ALLGATHER ? calloc(1, block) : exchange->all;
    if (exchange->all == NULL || exchange->given == NULL)
        job_end("there is no memory for %zu bytes that ranks exchange", whole);
    give(group, call, exchange->given);
}

/* How elements are put where the program wants them. It is asked once for the blocks of all ranks:
 * asking the MPI about a type costs as much as a short block. */
struct layout {
    size_t bytes, distance;
    bool is_plain; /* they lie one after the other, so that a copy is all */
};

static struct layout layout_of(MPI_Datatype datatype)
{
    struct layout layout = {.is_plain = packing_is_needless(datatype)};

    runtime_extent(datatype, &layout.bytes, &layout.distance);
    return layout;
}

static void put(const struct layout *layout, const char *from, int64_t count, MPI_Datatype datatype, char *to)
{
    if (count <= 0)
        return;
    if (layout->is_plain)
        memcpy(to, from, (size_t)count * layout->bytes);
    else
        runtime_unpack(from, (size_t)count, datatype, to);
}

/* Puts the blocks that begin at `from` in each rank's part, one after the other. */
static void take_blocks(const struct exchange *exchange, const struct group *group, const struct call *call, size_t from)
{
    struct layout layout = layout_of(call->datatype);
    size_t step = (size_t)call->count * layout.distance;
    bool is_mine_there = call->kind == KIND_GATHER && call->send == MPI_IN_PLACE;

    for (uint32_t rank = 0; rank < group->size; rank++)
        if (rank != group->rank || !is_mine_there)
            put(&layout, exchange->all + exchange->block * rank + from, call->count, call->datatype, (char *)call->recv + step * rank);
}

static void take_allgatherv(const struct exchange *exchange, const struct group *group, const struct call *call)
{
    struct layout layout = layout_of(call->datatype);

    for (uint32_t rank = 0; rank < group->size; rank++)
        if (rank != group->rank || call->send != MPI_IN_PLACE)
            put(&layout, exchange->all + exchange->block * rank, call_count(call, rank), call->datatype,
                (char *)call->recv + call_offset(call, rank) * (ptrdiff_t)layout.distance);
}

static void take_reduced(const struct exchange *exchange, const struct group *group, const struct call *call)
{
    size_t before = 0;

    for (uint32_t rank = 0; rank < group->rank; rank++)
        before += (size_t)call_count(call, rank);
    runtime_unpack(exchange->all + size_of((int64_t)before, call->datatype), (size_t)call_count(call, group->rank),
                   call->datatype, call->recv);
}

/* Folds the blocks in the order of ranks, as an operator that does not commute wants it. */
static void take_scan(const struct exchange *exchange, const struct group *group, const struct call *call)
{
    uint32_t last = call->kind == KIND_SCAN ? group->rank : group->rank - 1;

    if (call->kind == KIND_EXSCAN && group->rank == 0)
        return;
    for (uint32_t rank = 1; rank <= last; rank++)
        runtime_reduce(exchange->all + exchange->block * (rank - 1), exchange->all + exchange->block * rank, (size_t)call->count,
                       call->datatype, call->op);
    memcpy(call->recv, exchange->all + exchange->block * last, exchange->block);
}

void exchange_take(const struct exchange *exchange, const struct group *group, const struct call *call)
{
    switch (call->kind) {
    case KIND_GATHER:
        if (is_root(group, call))
            take_blocks(exchange, group, call, 0);
        break;
    case KIND_SCATTER:
        if (call->recv != MPI_IN_PLACE)
            runtime_unpack(exchange->all + exchange->block * group->rank, (size_t)call->count, call->datatype, call->recv);
        break;
    case KIND_ALLTOALL:
        take_blocks(exchange, group, call, exchange->block / group->size * group->rank);
        break;
    case KIND_ALLGATHERV:
        take_allgatherv(exchange, group, call);
        break;
    case KIND_REDUCE_SCATTERV:
        take_reduced(exchange, group, call);
        break;
    default:
        take_scan(exchange, group, call);
    }
}

void exchange_close(struct exchange *exchange)
{
    if (exchange->given != exchange->all)
        free(exchange->given);
    free(exchange->all);
    *exchange = (struct exchange){0};
}
