/* SPDX-License-Identifier: Apache-2.0 */
#include "worth.h"

#include "exchange.h"
#include "job.h"

#include <stdbool.h>
#include <stddef.h>

/* The most bytes that ranks exchange over the tree where it is asked for, and where it is a matter
 * of latency. */
#define FORCED_MAX (UINT64_C(1) << 20)
#define SHORT_MAX (UINT64_C(64) << 10)
#define FEW_MAX (UINT64_C(8) << 10)
#define LEAST_MAX (UINT64_C(4) << 10)

/* From and to how many bytes the memory of one host is faster than the MPI's: with 2 and with 4
 * ranks on two processors, beside Open MPI 4.1. Of a short collective with a root the MPI's other
 * ranks do not wait for each other. What is not listed always is. */
static const struct {
    enum kind kind;
    uint64_t from, to;
} IN_MEMORY[] = {
    {KIND_BCAST, 1024, UINT64_MAX}, {KIND_REDUCE, 1024, UINT64_MAX}, {KIND_GATHER, 2048, 8192},      {KIND_SCATTER, 1024, 8192},
    {KIND_ALLTOALL, 2048, 8192},    {KIND_ALLGATHERV, 512, 8192},    {KIND_REDUCE_SCATTERV, 0, 8192}, {KIND_SCAN, 2048, 8192},
    {KIND_EXSCAN, 2048, 8192},
};

static bool is_worth_memory(enum kind kind, uint64_t share)
{
    for (size_t i = 0; i < sizeof IN_MEMORY / sizeof *IN_MEMORY; i++)
        if (IN_MEMORY[i].kind == kind)
            return share >= IN_MEMORY[i].from && share <= IN_MEMORY[i].to;
    return true;
}

/* From how many bytes on a collective with a root was measured to be faster over several hosts than
 * the MPI's, whose ranks do not wait for each other there: with one rank on each host, and with
 * several. */
#define REDUCE_MIN (UINT64_C(4) << 10)
#define BCAST_MIN (UINT64_C(16) << 10)
#define ROOTED_MIN (UINT64_C(64) << 10)

static bool share_hosts(const struct group *group)
{
    return group->hosts < group->size;
}

static bool is_worth_waiting(const struct group *group, enum kind kind, uint64_t share)
{
    if (share_hosts(group))
        return share >= ROOTED_MIN;
    return share >= (kind == KIND_BCAST ? BCAST_MIN : REDUCE_MIN);
}

/* Up to how many bytes of all ranks together blocks were measured to be faster over several hosts:
 * blocks are latency as long as they are short, and the tree's is that of an allreduce. */
static uint64_t blocks_max(const struct group *group, enum kind kind)
{
    switch (kind) {
    case KIND_ALLGATHERV:
    case KIND_REDUCE_SCATTERV: /* the MPI takes a step for each rank */
        return share_hosts(group) ? SHORT_MAX : FEW_MAX;
    case KIND_ALLGATHER:
    case KIND_REDUCE_SCATTER:
        return LEAST_MAX;
    case KIND_ALLTOALL:
        return share_hosts(group) ? LEAST_MAX : 0;
    default:
        return 0;
    }
}

static bool is_in(const trib_range *ranges, uint32_t count, uint64_t bytes)
{
    for (uint32_t at = 0; at < count; at++)
        if (bytes >= ranges[at].from && bytes <= ranges[at].to)
            return true;
    return false;
}

/* A bcast takes a reduce's way back. */
static enum reason worth_of_hosts(const struct group *group, enum kind kind, uint64_t share, uint64_t whole)
{
    const trib_prediction *predicted = &group->prediction;
    bool pays;

    switch (kind) {
    case KIND_ALLREDUCE:
        pays = !predicted->known || is_in(predicted->allreduce, predicted->allreduces, share);
        break;
    case KIND_REDUCE:
    case KIND_BCAST:
        if (!is_worth_waiting(group, kind, share))
            return REASON_MEASURED_SLOWER;
        pays = !predicted->known || is_in(predicted->reduce, predicted->reduces, share);
        break;
    case KIND_BARRIER:
        pays = !predicted->known || predicted->barrier != 0;
        break;
    default:
        if (whole > blocks_max(group, kind))
            return REASON_MEASURED_SLOWER;
        pays = is_in(predicted->allreduce, predicted->allreduces, whole);
    }
    return pays ? REASON_TREE : REASON_PREDICTED_SLOWER;
}

enum reason worth_of(const struct group *group, enum kind kind, uint64_t share, uint64_t whole)
{
    if (config_is_forced(&job.config))
        return exchange_is_one(kind) && whole > FORCED_MAX ? REASON_MEASURED_SLOWER : REASON_TREE;
    if (group->prediction.in_memory != 0)
        return is_worth_memory(kind, share) ? REASON_TREE : REASON_MEASURED_SLOWER;
    return worth_of_hosts(group, kind, share, whole);
}
