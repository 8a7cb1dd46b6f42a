/* SPDX-License-Identifier: Apache-2.0 */
#include "verdict.h"

#include "job.h"
#include "runtime.h"

#include <stdbool.h>

/* Blocks of up to so many bytes in all are exchanged over the tree: measured on one host, where the
 * others have them in memory; and where it is asked for, whether it pays or not. */
#define EXCHANGE_MAX 4096
#define EXCHANGE_FORCED_MAX (1 << 20)

static bool is_reduction(enum kind kind)
{
    return kind == KIND_ALLREDUCE || kind == KIND_REDUCE || kind == KIND_REDUCE_SCATTER;
}

/* The same for blocks that ranks exchange. */
static enum reason judge_exchange(const struct group *group, const struct call *call, struct operation *operation)
{
    size_t block = exchange_block(group, call);

    if (block == 0)
        return call->kind >= KIND_SCAN && !packing_is_needless(call->datatype) ? REASON_DATATYPE : REASON_EMPTY;
    operation->bytes = operation->count = block;
    if (call->kind == KIND_REDUCE_SCATTERV) {
        enum reason reason = types_map(&job.config, call->datatype, call->op, &operation->type);
        if (reason != REASON_TREE)
            return reason;
        if (operation->type.pair.width != 0)
            return REASON_DATATYPE;
        operation->count = block / operation->type.width;
    } else if (operation->kind == KIND_BCAST) {
        operation->count = exchange_whole(group, call, block);
    }
    uint64_t limit = config_is_forced(&job.config) ? EXCHANGE_FORCED_MAX : EXCHANGE_MAX;
    return exchange_whole(group, call, block) <= limit ? REASON_TREE : REASON_EXCHANGE;
}

/* The verdict on type and operator, and how long the vector is, or a block of it. */
static enum reason judge_elements(const struct group *group, const struct call *call, struct operation *operation)
{
    size_t bytes, distance;

    if (exchange_is_one(call->kind))
        return judge_exchange(group, call, operation);
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

    if (exchange_is_one(operation->call.kind))
        return exchange_whole(group, &operation->call, operation->bytes);
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
 * about the same members, so it is equal on all of them. A bcast takes a reduce's way back. What is
 * not predicted goes through the tree where the ranks of one host have it in their memory. */
static bool pays(const struct group *group, enum kind kind, uint64_t bytes)
{
    const trib_prediction *predicted = &group->prediction;

    if (config_is_forced(&job.config))
        return true;
    if (exchange_is_one(kind) || kind == KIND_ALLGATHER || kind == KIND_REDUCE_SCATTER)
        return predicted->in_memory != 0;
    if (!predicted->known)
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
    if (exchange_is_one(call->kind))
        return exchange_is_wrong(group, call, bytes);
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

/* All verdicts. The communicator's comes first, and the prediction's last. */
static enum reason judge(const struct group *group, const struct call *call, struct operation *operation)
{
    if (group->standing != REASON_TREE && group->standing != REASON_DRY_RUN)
        return group->standing;
    if (config_is_disabled(&job.config, call->name))
        return REASON_DISABLED;
    if (call->kind != KIND_BARRIER) {
        enum reason reason = judge_elements(group, call, operation);
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
    enum kind kind = exchange_is_one(call->kind) ? exchange_as(call->kind) : call->kind;

    *operation = (struct operation){.call = *call, .kind = kind, .group = group};
    return judge(group, call, operation);
}
