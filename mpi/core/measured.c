/* SPDX-License-Identifier: Apache-2.0 */
#include "measured.h"

#include <stddef.h>

#define KIB(n) (UINT64_C(n) << 10)
#define MIB(n) (UINT64_C(n) << 20)
#define ANY UINT64_MAX

/* With 2, 4, 8 and 16 ranks on two processors. Of a short collective with a root the MPI's other
 * ranks do not wait for each other. What is not listed always is as fast or faster. Where the tree
 * brings each rank more than it needs, it is faster up to so many bytes of all ranks together; what
 * an alltoall brings grows with the square of the ranks. */
static const struct {
    enum kind kind;
    uint64_t from, to; /* of what one rank gives to one other, or of the whole vector */
    uint64_t most;     /* of what the tree brings to each rank */
} IN_MEMORY[] = {
    {KIND_BCAST, KIB(1), ANY, ANY},
    {KIND_REDUCE, KIB(1), ANY, ANY},
    {KIND_GATHER, KIB(2), KIB(8), KIB(64)},
    {KIND_SCATTER, KIB(1), KIB(8), KIB(256)},
    {KIND_ALLTOALL, KIB(2), KIB(8), KIB(128)},
    {KIND_ALLGATHERV, 0, KIB(8), ANY},
    {KIND_REDUCE_SCATTERV, 0, KIB(8), ANY},
    {KIND_SCAN, KIB(2), KIB(8), KIB(64)},
    {KIND_EXSCAN, KIB(2), KIB(8), KIB(64)},
};

bool measured_faster_in_memory(enum kind kind, uint64_t share, uint64_t whole)
{
    for (size_t i = 0; i < sizeof IN_MEMORY / sizeof *IN_MEMORY; i++)
        if (IN_MEMORY[i].kind == kind)
            return share >= IN_MEMORY[i].from && share <= IN_MEMORY[i].to && whole <= IN_MEMORY[i].most;
    return true;
}

/* How ranks lie on hosts: one on each; or several, and neighbours in rank are on different hosts
 * (APART) or share one (BLOCKS). With 32 ranks and more Open MPI takes other algorithms, and ranks
 * had no processor of their own. */
enum shape {
    ONE_EACH = 1,
    APART = 2,
    APART_MANY = 4,
    BLOCKS = 8,
    BLOCKS_MANY = 16,
    FEW = APART | BLOCKS,
    MANY = APART_MANY | BLOCKS_MANY,
    EVERY = ONE_EACH | FEW | MANY
};

#define MANY_RANKS 32

static enum shape shape_of(const struct group *group)
{
    if (group->spread.hosts == group->size)
        return ONE_EACH;
    if (group->size < MANY_RANKS)
        return group->spread.in_blocks ? BLOCKS : APART;
    return group->spread.in_blocks ? BLOCKS_MANY : APART_MANY;
}

/* What is not listed is slower; allreduce and barrier are the prediction's matter. Short blocks
 * are a matter of latency, and the tree's is that of an allreduce. Long ones it carries at the
 * speed of a host's link, as a ring does, which takes a step for each rank: the more hosts, the
 * shorter are those from which on it gains, so that some limits are divided by the hosts. */
static const struct {
    enum kind kind;
    enum shape shapes;
    uint64_t from, to;
    bool over_hosts; /* `from` is divided by their number */
} OVER_HOSTS[] = {
    {KIND_BCAST, ONE_EACH, KIB(16), ANY, false},
    {KIND_BCAST, FEW, KIB(4), ANY, false},
    {KIND_BCAST, MANY, KIB(64), ANY, false},
    {KIND_REDUCE, ONE_EACH | FEW, KIB(4), ANY, false},
    {KIND_REDUCE, MANY, KIB(64), ANY, false},
    {KIND_ALLGATHER, EVERY, 0, KIB(4), false},
    {KIND_ALLGATHER, ONE_EACH | APART | APART_MANY, MIB(1), ANY, true},
    {KIND_ALLGATHER, BLOCKS, 0, ANY, false},
    {KIND_ALLGATHER, BLOCKS_MANY, MIB(2), ANY, false},
    {KIND_REDUCE_SCATTER, EVERY, 0, KIB(4), false},
    {KIND_REDUCE_SCATTER, ONE_EACH, MIB(4), ANY, true},
    {KIND_REDUCE_SCATTER, APART | APART_MANY, MIB(16), ANY, true},
    {KIND_REDUCE_SCATTER, BLOCKS, 0, ANY, false},
    {KIND_REDUCE_SCATTER, BLOCKS_MANY, MIB(2), ANY, false},
    /* Of these Open MPI takes a step for each rank even if they are short. */
    {KIND_REDUCE_SCATTERV, ONE_EACH, 0, KIB(8), false},
    {KIND_REDUCE_SCATTERV, APART, 0, KIB(4), false},
    {KIND_REDUCE_SCATTERV, APART_MANY, 0, KIB(32), false},
    {KIND_REDUCE_SCATTERV, APART | APART_MANY, MIB(1), ANY, true},
    {KIND_REDUCE_SCATTERV, BLOCKS | BLOCKS_MANY, 0, KIB(64), false},
    {KIND_ALLGATHERV, ONE_EACH, 0, KIB(8), false},
    {KIND_ALLGATHERV, APART, 0, KIB(4), false},
    {KIND_ALLGATHERV, APART_MANY, 0, KIB(32), false},
    {KIND_ALLGATHERV, BLOCKS, 0, ANY, false},
    {KIND_ALLGATHERV, BLOCKS_MANY, 0, KIB(64), false},
    {KIND_ALLTOALL, FEW | MANY, 0, KIB(4), false},
};

bool measured_faster_over_hosts(const struct group *group, enum kind kind, uint64_t bytes)
{
    enum shape shape = shape_of(group);

    for (size_t i = 0; i < sizeof OVER_HOSTS / sizeof *OVER_HOSTS; i++) {
        uint64_t from = OVER_HOSTS[i].from / (OVER_HOSTS[i].over_hosts ? group->spread.hosts : 1);
        if (OVER_HOSTS[i].kind == kind && (OVER_HOSTS[i].shapes & shape) != 0 && bytes >= from && bytes <= OVER_HOSTS[i].to)
            return true;
    }
    return false;
}
