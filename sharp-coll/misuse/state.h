/* SPDX-License-Identifier: Apache-2.0
 *
 * state.h - what a process of the fuzzer holds: jobs, groups, regions and requests that exist,
 * and handles of those that are gone.
 */
#ifndef STATE_H
#define STATE_H

#include "vectors.h"

/* Random numbers: `together` gives the same ones at all ranks, for what they must agree on, and
   `alone` gives other ones at each rank, for what is its own business. */
static struct chance together, alone;

enum { JOBS = 2, GROUPS = 3, REGIONS = 8, UNDER_WAY = 24, REMEMBERED = 64 };

/* Kinds of handles. */
enum kind { CONTEXT, COMM, REQUEST, REGION, KINDS };

/* Memory with an unreadable page behind it and a pattern before it, so that a byte too far on
   either side is seen. */
struct area {
    unsigned char *map, *start;
    size_t map_len, len;
};

enum collective { BARRIER, ALLREDUCE, REDUCE, BCAST, REDUCE_SCATTER, ALLGATHER, COLLECTIVES };

/* One collective, from post to end. */
struct operation {
    enum collective collective;
    enum sharp_datatype dtype;
    enum sharp_reduce_op op;
    uint64_t key;
    int root;
    /* Elements of a vector, or of a block; bytes if nothing is computed with them. */
    size_t count;
    /* Which part of all blocks this call is about, and where this rank's part of it begins and
       how long it is. */
    size_t from, len, own_from, own_len;
    struct area in, out;
    int is_in_place;
    void *request;
};

static struct job {
    struct sharp_coll_context *context;
    struct oob oobs[GROUPS];
    struct sharp_coll_comm *comms[GROUPS];
    void *regions[REGIONS];
} jobs[JOBS];

static struct operation under_way[UNDER_WAY];

static struct gone {
    void *all[REMEMBERED];
    size_t count;
} gone[KINDS];

static void scribble(void *memory, size_t len)
{
    for (size_t at = 0; at < len; at++)
        ((unsigned char *)memory)[at] = (unsigned char)draw(&alone);
}

__attribute__((unused)) static void forget(enum kind kind, void *handle)
{
    gone[kind].all[gone[kind].count++ % REMEMBERED] = handle;
}

static void *any_gone(enum kind kind)
{
    size_t count = gone[kind].count < REMEMBERED ? gone[kind].count : REMEMBERED;
    return count == 0 ? NULL : gone[kind].all[below(&alone, count)];
}

/* A handle that exists, or null. */
static void *any_live(enum kind kind)
{
    struct job *job = &jobs[below(&alone, JOBS)];
    switch (kind) {
    case CONTEXT: return job->context;
    case COMM: return job->comms[below(&alone, GROUPS)];
    case REGION: return job->regions[below(&alone, REGIONS)];
    default: return under_way[below(&alone, UNDER_WAY)].request;
    }
}

static int is_live(enum kind kind, const void *handle)
{
    for (int j = 0; j < JOBS; j++) {
        if (kind == CONTEXT && jobs[j].context == handle)
            return 1;
        for (int g = 0; g < GROUPS; g++)
            if (kind == COMM && jobs[j].comms[g] == handle)
                return 1;
        for (int r = 0; r < REGIONS; r++)
            if (kind == REGION && jobs[j].regions[r] == handle)
                return 1;
    }
    for (int at = 0; at < UNDER_WAY; at++)
        if (kind == REQUEST && under_way[at].request == handle)
            return 1;
    return 0;
}

/* A handle of this kind that means nothing. */
static void *bad_handle(enum kind kind)
{
    static int object;
    for (;;) {
        uintptr_t number;
        enum kind other = (enum kind)below(&alone, KINDS);
        switch (below(&alone, 8)) {
        case 0: number = 0; break;
        case 1: number = (uintptr_t)any_gone(kind); break;
        case 2: number = other == kind ? 0 : (uintptr_t)any_live(other); break;
        case 3: number = (uintptr_t)any_live(kind) ^ (uintptr_t)1 << below(&alone, 64); break;
        case 4: number = (uintptr_t)any_gone(kind) ^ (uintptr_t)1 << below(&alone, 64); break;
        case 5: number = (uintptr_t)draw(&alone); break;
        case 6: number = below(&alone, 4096); break;
        default: number = one_in(&alone, 2) ? (uintptr_t)&object : UINTPTR_MAX; break;
        }
        if (number == 0 || !is_live(kind, (void *)number))
            return (void *)number;
    }
}

/* What a descriptor may name as a handle: nothing, a region of either job, or anything else; only
   whether it is null counts. */
static void *any_region(void)
{
    switch (below(&alone, 4)) {
    case 0: return NULL;
    case 1: return bad_handle(REGION);
    default: return any_live(REGION);
    }
}

static struct area area_of(size_t len)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (len + 16 + page - 1) / page * page;
    struct area area = {NULL, NULL, room + page, len};
    area.map = (unsigned char *)mmap(NULL, area.map_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(area.map != MAP_FAILED);
    CHECK(mprotect(area.map + room, page, PROT_NONE) == 0);
    area.start = area.map + room - len;
    memset(area.map, 0xa5, room);
    return area;
}

static void release(struct area *area)
{
    if (!area->map)
        return;
    for (const unsigned char *at = area->map; at < area->start; at++)
        if (*at != 0xa5)
            fail(__FILE__, __LINE__, "%td bytes before a buffer something was written", area->start - at);
    CHECK(munmap(area->map, area->map_len) == 0);
    memset(area, 0, sizeof *area);
}

#endif
