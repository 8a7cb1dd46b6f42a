/* SPDX-License-Identifier: Apache-2.0 */
#include "prepare.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether the vector that a rank gives lies where its result goes. */
static bool is_in_place(const struct group *group, const struct call *call)
{
    bool receives = call->kind != KIND_REDUCE || (uint32_t)call->root == group->rank;

    return receives && (call->send == MPI_IN_PLACE || (call->send == call->recv && call->kind != KIND_ALLGATHER));
}

static void pack_pairs(const struct group *group, struct operation *operation)
{
    const struct call *call = &operation->call;
    size_t count = (size_t)call->count, all = call->kind == KIND_REDUCE_SCATTER ? count * group->size : count;
    struct pair_layout pair = operation->type.pair;
    bool in_place = operation->input == TRIB_IN_PLACE;
    void *given = in_place ? call->recv : (void *)(uintptr_t)call->send;

    packing_open(&operation->in, given, all, call->datatype, pair, all * pair.width);
    packing_take(&operation->in, 0, all, 0);
    operation->input = operation->in.memory;
    if (operation->output != NULL) {
        packing_open(&operation->out, call->recv, count, call->datatype, pair, count * pair.width);
        operation->output = operation->out.memory;
    }
}

static void pack_bcast(const struct group *group, struct operation *operation)
{
    const struct call *call = &operation->call;

    packing_open(&operation->out, call->recv, (size_t)call->count, call->datatype, (struct pair_layout){0}, operation->count);
    if ((uint32_t)call->root == group->rank)
        packing_take(&operation->out, 0, (size_t)call->count, 0);
    operation->output = operation->out.memory;
}

static void pack_allgather(const struct group *group, struct operation *operation)
{
    const struct call *call = &operation->call;
    size_t block = (size_t)call->count, mine = block * group->rank;

    if (!packing_is_needless(call->datatype)) {
        packing_open(&operation->out, call->recv, block * group->size, call->datatype, (struct pair_layout){0},
                     operation->count * group->size);
        if (operation->input == TRIB_IN_PLACE)
            packing_take(&operation->out, mine, block, mine);
        operation->output = operation->out.memory;
    }
    if (operation->input != TRIB_IN_PLACE && !packing_is_needless(call->send_type)) {
        packing_open(&operation->in, (void *)(uintptr_t)call->send, (size_t)call->send_count, call->send_type,
                     (struct pair_layout){0}, operation->count);
        packing_take(&operation->in, 0, (size_t)call->send_count, 0);
        operation->input = operation->in.memory;
    }
}

void prepare(const struct group *group, struct operation *operation)
{
    const struct call *call = &operation->call;

    if (exchange_is_one(call->kind)) {
        exchange_open(&operation->exchange, group, call, operation->bytes);
        operation->input = operation->exchange.given == operation->exchange.all ? TRIB_IN_PLACE : operation->exchange.given;
        operation->output = operation->exchange.all;
        return;
    }
    operation->input = is_in_place(group, call) ? TRIB_IN_PLACE : call->send;
    operation->output = call->kind == KIND_REDUCE && (uint32_t)call->root != group->rank ? NULL : call->recv;
    if (operation->type.pair.width != 0)
        pack_pairs(group, operation);
    else if (call->kind == KIND_BCAST && !packing_is_needless(call->datatype))
        pack_bcast(group, operation);
    else if (call->kind == KIND_ALLGATHER)
        pack_allgather(group, operation);
}
