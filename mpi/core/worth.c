/* SPDX-License-Identifier: Apache-2.0 */
#include "worth.h"

#include "exchange.h"
#include "job.h"
#include "measured.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most bytes that ranks exchange, also where it is forced: each needs memory of its own for as
 * much. */
#define EXCHANGED_MAX (UINT64_C(1) << 20)

/* With long vectors a tree gains more than with short ones: one that is as long counts as a call
 * more. */
#define BYTES_OF_A_CALL 16384

static bool is_in(const trib_range *ranges, uint32_t count, uint64_t bytes)
{
    for (uint32_t at = 0; at < count; at++)
        if (bytes >= ranges[at].from && bytes <= ranges[at].to)
            return true;
    return false;
}

/* Without a prediction blocks stay with the MPI, and what it is for goes through the tree. A bcast
 * takes a reduce's way back. */
static bool is_predicted_faster(const trib_prediction *predicted, enum kind kind, uint64_t share, uint64_t whole)
{
    switch (kind) {
    case KIND_ALLREDUCE:
        return !predicted->known || is_in(predicted->allreduce, predicted->allreduces, share);
    case KIND_REDUCE:
    case KIND_BCAST:
        return !predicted->known || is_in(predicted->reduce, predicted->reduces, share);
    case KIND_BARRIER:
        return !predicted->known || predicted->barrier != 0;
    default:
        return is_in(predicted->allreduce, predicted->allreduces, whole);
    }
}

static enum reason worth_of_hosts(const struct group *group, enum kind kind, uint64_t share, uint64_t whole)
{
    bool is_for_model = kind == KIND_ALLREDUCE || kind == KIND_BARRIER;

    /* Its tree is for sums that depend on no order, and these ask for no verdict here. */
    if (group->spread.hosts < 2)
        return REASON_ONE_HOST;
    if (!is_for_model && !measured_faster_over_hosts(group, kind, whole))
        return REASON_MEASURED_SLOWER;
    return is_predicted_faster(&group->prediction, kind, share, whole) ? REASON_TREE : REASON_PREDICTED_SLOWER;
}

enum reason worth_of(const struct group *group, enum kind called, enum kind taken, uint64_t share, uint64_t whole)
{
    if (exchange_is_one(taken) && whole > EXCHANGED_MAX)
        return REASON_MEASURED_SLOWER;
    if (config_is_forced(&job.config))
        return REASON_TREE;
    /* Where most blocks are much shorter than the longest, the MPI moves less than the tree. */
    if (called == KIND_ALLGATHERV && whole / 2 > share * group->size)
        return REASON_MEASURED_SLOWER;
    if (group->prediction.in_memory != 0)
        return measured_faster_in_memory(taken, share, whole) ? REASON_TREE : REASON_MEASURED_SLOWER;
    return worth_of_hosts(group, called, share, whole);
}

/* Whether the MPI may give another result than the tree for the same arguments. It combines ranks
 * in another order, on which sums of floating-point numbers and scans depend; its own rules decide
 * about numbers that are none and about equal ones; and those of Open MPI 4.1 saturate short
 * integers, and compare the longest unsigned ones as if they were signed. */
static bool may_differ(const struct operation *operation)
{
    const struct wire_type *type = &operation->type;

    if (operation->call.kind == KIND_SCAN || operation->call.kind == KIND_EXSCAN)
        return true;
    if (type->width == 0)
        return false;
    if (type->op == TRIB_MIN || type->op == TRIB_MAX)
        return types_is_float(type->dtype) || type->dtype == TRIB_UINT64;
    if (type->op == TRIB_SUM || type->op == TRIB_PROD)
        return types_is_float(type->dtype) || type->width <= sizeof(int16_t);
    return type->op == TRIB_MINLOC || type->op == TRIB_MAXLOC;
}

uint64_t worth_in_calls(const struct operation *operation)
{
    /* The same arguments are to give the same bits each time. So such a call is never done by the
     * MPI first and by the tree later. */
    return may_differ(operation) ? UINT64_MAX : 1 + operation->bytes / BYTES_OF_A_CALL;
}
