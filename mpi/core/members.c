/* SPDX-License-Identifier: Apache-2.0 */
#include "members.h"

#include "job.h"
#include "placement.h"
#include "runtime.h"

#include <stdlib.h>

/* So many members are translated at a time, which takes no memory from the heap. */
#define CHUNK 256

/* A question about each member; false ends the search. world_rank may be MPI_UNDEFINED. */
typedef bool (*question)(uint32_t rank, int world_rank, void *about);

static bool holds_for_all(MPI_Comm comm, MPI_Comm world, question holds, void *about)
{
    int size = runtime_size(comm), ranks[CHUNK];
    bool so_far = true;

    for (int first = 0; so_far && first < size; first += CHUNK) {
        int count = size - first < CHUNK ? size - first : CHUNK;
        runtime_ranks_in(world, comm, first, count, ranks);
        for (int i = 0; so_far && i < count; i++)
            so_far = holds((uint32_t)(first + i), ranks[i], about);
    }
    return so_far;
}

static bool is_in_world(uint32_t rank, int world_rank, void *about)
{
    (void)rank, (void)about;
    return world_rank != MPI_UNDEFINED;
}

static bool is_on_host_of_first(uint32_t rank, int world_rank, void *about)
{
    int *leader = about;

    if (rank == 0)
        *leader = placement_leader(world_rank);
    return placement_leader(world_rank) == *leader;
}

static bool note_rank(uint32_t rank, int world_rank, void *about)
{
    ((uint32_t *)about)[rank] = (uint32_t)world_rank;
    return true;
}

bool members_are_in(MPI_Comm comm, MPI_Comm world)
{
    return holds_for_all(comm, world, is_in_world, NULL);
}

static int by_value(const void *left, const void *right)
{
    const int *a = left, *b = right;

    return (*a > *b) - (*a < *b);
}

bool members_share_host(MPI_Comm comm, MPI_Comm world)
{
    int leader;

    return holds_for_all(comm, world, is_on_host_of_first, &leader);
}

uint32_t *members_read(MPI_Comm comm, MPI_Comm world)
{
    uint32_t *ranks = malloc((size_t)runtime_size(comm) * sizeof *ranks);

    if (ranks != NULL)
        holds_for_all(comm, world, note_rank, ranks);
    return ranks;
}

/* How many times one is another than the one before it; the first is, too. */
static uint32_t changes(const int *leaders, uint32_t size)
{
    uint32_t changes = 0;

    for (uint32_t i = 0; i < size; i++)
        changes += i == 0 || leaders[i] != leaders[i - 1];
    return changes;
}

struct spread members_spread(MPI_Comm comm, MPI_Comm world)
{
    uint32_t size = (uint32_t)runtime_size(comm);
    uint32_t *ranks = members_read(comm, world);

    if (ranks == NULL)
        job_end("there is no memory for the members of a communicator");
    int *leaders = (int *)ranks;
    for (uint32_t i = 0; i < size; i++)
        leaders[i] = placement_leader((int)ranks[i]);
    uint32_t blocks = changes(leaders, size);
    qsort(leaders, size, sizeof *leaders, by_value);
    uint32_t hosts = changes(leaders, size);
    free(ranks);
    return (struct spread){.hosts = hosts, .in_blocks = blocks == hosts};
}
