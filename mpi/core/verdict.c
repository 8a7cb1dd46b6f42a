/* SPDX-License-Identifier: Apache-2.0 */
#include "verdict.h"

#include "job.h"
#include "runtime.h"
#include "sums.h"
#include "worth.h"

#include <stdbool.h>

static bool is_reduction(enum kind kind)
{
    return kind == KIND_ALLREDUCE || kind == KIND_REDUCE || kind == KIND_REDUCE_SCATTER;
}

/* The product of floating-point numbers does, and there is no other way to take it. */
static bool depends_on_order(const struct group *group, const struct wire_type *type)
{
    return sums_have_no_order(group->sums) && type->op == TRIB_PROD && types_is_float(type->dtype);
}

static bool has_counts(enum kind kind)
{
    return kind == KIND_ALLGATHERV || kind == KIND_REDUCE_SCATTERV;
}

/* The call as the tree takes it: a reduce_scatter whose blocks have one length, as all ranks can
 * see, is one of equal blocks, of which each rank gets its own and nothing else. */
static struct call taken(const struct group *group, const struct call *call)
{
    struct call taken = *call;

    if (call->kind != KIND_REDUCE_SCATTERV || !call_has_counts(call))
        return taken;
    for (uint32_t rank = 1; rank < group->size; rank++)
        if (call_count(call, rank) != call_count(call, 0))
            return taken;
    taken.kind = KIND_REDUCE_SCATTER;
    taken.count = call_count(call, 0);
    return taken;
}

/* Whether the lengths of all ranks' blocks, which every rank gives, make sense. */
static bool counts_are_wrong(const struct group *group, const struct call *call)
{
    if (!call_has_counts(call))
        return true;
    for (uint32_t rank = 0; rank < group->size; rank++)
        if (call_count(call, rank) < 0)
            return true;
    return false;
}

/* The verdict on type and operator of blocks that ranks exchange, and how long one is. */
static enum reason judge_exchange(const struct group *group, const struct call *call, struct operation *operation)
{
    if (has_counts(call->kind) && counts_are_wrong(group, call))
        return REASON_ARGUMENT;
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
        if (depends_on_order(group, &operation->type))
            return REASON_COMBINATION;
        operation->count = block / operation->type.width;
    } else if (call->kind >= KIND_SCAN && types_is_mpis(call->op)) {
        /* Rank 0 folds nothing, so that it would not see that MPI does not allow the operator on
         * the type: the MPI tells all ranks. What MPI allows and the tree does not know stays with
         * it, too. */
        struct wire_type unused;
        return types_map(&job.config, call->datatype, call->op, &unused);
    } else if (operation->kind == KIND_BCAST) {
        operation->count = exchange_whole(group, call, block);
    }
    return REASON_TREE;
}

/* The verdict on type and operator, and how long the vector is, or a block of it. */
static enum reason judge_elements(const struct group *group, const struct call *call, struct operation *operation)
{
    size_t bytes, distance;

    if (exchange_is_one(call->kind))
        return judge_exchange(group, call, operation);
    if (call->count < 0)
        return REASON_ARGUMENT;
    if (is_reduction(call->kind) && call->count > 0) {
        enum reason reason = types_map(&job.config, call->datatype, call->op, &operation->type);
        if (reason == REASON_TREE && depends_on_order(group, &operation->type))
            reason = REASON_COMBINATION;
        if (reason == REASON_TREE) {
            operation->count = (size_t)call->count * operation->type.each;
            operation->bytes = (uint64_t)operation->count * operation->type.width;
            return REASON_TREE;
        }
        runtime_extent(call->datatype, &bytes, &distance);
        operation->bytes = (uint64_t)call->count * bytes; /* for the report */
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

/* What one rank gives to one other, or the whole vector. */
static uint64_t share(const struct group *group, const struct operation *operation)
{
    if (exchange_is_one(operation->call.kind))
        return exchange_share(group, &operation->call, operation->bytes);
    return operation->bytes;
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

/* Whether only the tree gives the result that was asked for: a sum that depends on no order. */
static bool is_for_the_tree_alone(const struct group *group, const struct operation *operation)
{
    const struct wire_type *type = &operation->type;

    return sums_have_no_order(group->sums) && is_reduction(operation->kind) && type->width > 0 && type->op == TRIB_SUM &&
           types_is_float(type->dtype);
}

/* All verdicts, from what the program set to what its communicator has come to. */
static enum reason judge(const struct group *group, enum kind called, struct operation *operation)
{
    const struct call *call = &operation->call;

    if (config_is_disabled(&job.config, call->name))
        return REASON_DISABLED;
    if (call->kind != KIND_BARRIER) {
        enum reason reason = judge_elements(group, call, operation);
        if (reason != REASON_TREE)
            return reason;
        if (is_for_the_tree_alone(group, operation))
            return is_wrong(group, call, operation->bytes) ? REASON_ARGUMENT : group->standing;
        uint64_t bytes = whole(group, operation);
        if (bytes < job.config.min_bytes)
            return REASON_SMALL;
        if (bytes > job.config.max_bytes || (call->kind == KIND_ALLREDUCE && bytes > job.config.max_allreduce))
            return REASON_LARGE;
    }
    if (group->standing == REASON_DRY_RUN)
        return REASON_DRY_RUN;
    enum reason worth = worth_of(group, called, call->kind, share(group, operation), whole(group, operation));
    if (worth != REASON_TREE)
        return worth;
    return is_wrong(group, call, operation->bytes) ? REASON_ARGUMENT : group->standing;
}

enum reason verdict_on(const struct group *group, const struct call *call, struct operation *operation)
{
    *operation = (struct operation){.call = *call, .group = group};
    if (call->is_mpis_own)
        return REASON_NOT_TAKEN;
    if (group->standing != REASON_TREE && group->standing != REASON_FEW_CALLS && group->standing != REASON_DRY_RUN)
        return group->standing;
    operation->call = taken(group, call);
    operation->kind = exchange_is_one(operation->call.kind) ? exchange_as(operation->call.kind) : operation->call.kind;
    enum reason reason = judge(group, call->kind, operation);
    /* The report counts the whole vector, as it does of blocks of other lengths. */
    if (operation->call.kind != call->kind)
        operation->bytes *= group->size;
    return reason;
}
