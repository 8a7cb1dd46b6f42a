/* SPDX-License-Identifier: Apache-2.0 */
#include "verdict.h"

#include "job.h"
#include "runtime.h"

#include <stdbool.h>

static bool is_reduction(enum kind kind)
{
    return kind == KIND_ALLREDUCE || kind == KIND_REDUCE || kind == KIND_REDUCE_SCATTER;
}

/* The verdict on type and operator, and how long the vector is, or a block of it. */
static enum reason judge_elements(const struct call *call, struct operation *operation)
{
    size_t bytes, distance;

    if (call->count < 0)
        return REASON_ARGUMENT;
    if (is_reduction(call->kind)) {
        if (call->count == 0)
            return REASON_EMPTY;
        enum reason reason = types_map(&job.config, call->datatype, call->op, &operation->type);
        operation->count = (size_t)call->count * operation->type.each;
        operation->bytes = (uint64_t)operation->count * operation->type.width;
        return reason;
    }
    runtime_extent(call->datatype, &bytes, &distance);
    operation->count = (size_t)call->count * bytes;
    operation->bytes = operation->count;
    return operation->bytes > 0 ? REASON_TREE : REASON_EMPTY;
}

/* What the vector is long: that of all ranks together, if each has a block of it. */
static uint64_t whole(const struct group *group, const struct operation *operation)
{
    bool has_blocks = operation->call.kind == KIND_ALLGATHER || operation->call.kind == KIND_REDUCE_SCATTER;

    return has_blocks ? operation->bytes * group->size : operation->bytes;
}

static bool is_in(const trib_range *ranges, uint32_t count, uint64_t bytes)
{
    for (uint32_t at = 0; at < count; at++)
        if (bytes >= ranges[at].from && bytes <= ranges[at].to)
            return true;
    return false;
}

/* The verdict of the manager's prediction. All members have it from the same ticket and ask it
 * about the same members, so it is equal on all of them. A bcast takes a reduce's way back. */
static bool pays(const struct group *group, enum kind kind, uint64_t bytes)
{
    const trib_prediction *predicted = &group->prediction;

    if (config_is_forced(&job.config) || !predicted->known)
        return true;
    switch (kind) {
    case KIND_ALLREDUCE:
        return is_in(predicted->allreduce, predicted->allreduces, bytes);
    case KIND_REDUCE:
    case KIND_BCAST:
        return is_in(predicted->reduce, predicted->reduces, bytes);
    case KIND_BARRIER:
        return predicted->barrier != 0;
    default:
        return false;
    }
}

/* Whether a vector cannot be there. Elements of derived types may have addresses of their own, from
 * which MPI_BOTTOM is no distance. */
static bool is_nowhere(const void *vector, MPI_Datatype datatype)
{
    return vector == NULL && packing_is_needless(datatype);
}

static bool gives_another_length(const struct call *call, uint64_t block)
{
    size_t bytes, distance;

    runtime_extent(call->send_type, &bytes, &distance);
    return call->send_count < 0 || (uint64_t)call->send_count * bytes != block;
}

/* Whether the call is wrong on this rank, which is for the MPI to say. */
static bool is_wrong(const struct group *group, const struct call *call, uint64_t bytes)
{
    bool has_root = call->kind == KIND_REDUCE || call->kind == KIND_BCAST;

    if (call->kind == KIND_BARRIER)
        return false;
    if (has_root && (call->root < 0 || (uint32_t)call->root >= group->size))
        return true;
    bool receives = call->kind != KIND_REDUCE || (uint32_t)call->root == group->rank;
    if (receives && is_nowhere(call->recv, call->datatype))
        return true;
    if (call->send == MPI_IN_PLACE)
        return !receives || call->kind == KIND_BCAST;
    if (call->kind == KIND_ALLGATHER)
        return gives_another_length(call, bytes) || is_nowhere(call->send, call->send_type);
    return is_nowhere(call->send, call->datatype);
}

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

static void prepare(const struct group *group, struct operation *operation)
{
    const struct call *call = &operation->call;

    operation->input = is_in_place(group, call) ? TRIB_IN_PLACE : call->send;
    operation->output = call->kind == KIND_REDUCE && (uint32_t)call->root != group->rank ? NULL : call->recv;
    if (is_reduction(call->kind) && operation->type.pair.width != 0)
        pack_pairs(group, operation);
    else if (call->kind == KIND_BCAST && !packing_is_needless(call->datatype))
        pack_bcast(group, operation);
    else if (call->kind == KIND_ALLGATHER)
        pack_allgather(group, operation);
}

/* All verdicts. The communicator's comes first, and the prediction's last. */
static enum reason judge(const struct group *group, const struct call *call, struct operation *operation)
{
    if (group->standing != REASON_TREE && group->standing != REASON_DRY_RUN)
        return group->standing;
    if (config_is_disabled(&job.config, call->name))
        return REASON_DISABLED;
    if (call->kind != KIND_BARRIER) {
        enum reason reason = judge_elements(call, operation);
        if (reason != REASON_TREE)
            return reason;
        uint64_t bytes = whole(group, operation);
        if (bytes < job.config.min_bytes)
            return REASON_SMALL;
        if (bytes > job.config.max_bytes || (call->kind == KIND_ALLREDUCE && bytes > job.config.max_allreduce))
            return REASON_LARGE;
    }
    if (group->standing == REASON_DRY_RUN)
        return REASON_DRY_RUN;
    if (!pays(group, call->kind, whole(group, operation)))
        return REASON_PREDICTED_SLOWER;
    return is_wrong(group, call, operation->bytes) ? REASON_ARGUMENT : REASON_TREE;
}

enum reason verdict_on(const struct group *group, const struct call *call, struct operation *operation)
{
    *operation = (struct operation){.call = *call};
    enum reason reason = judge(group, call, operation);
    if (reason == REASON_TREE)
        prepare(group, operation);
    return reason;
}
