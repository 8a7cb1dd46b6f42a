/* SPDX-License-Identifier: Apache-2.0 */
#include "placement.h"

#include "runtime.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Longer than any name the manager takes; what is cut off would have been refused there. */
#define NAME_LEN 256

/* For rank 0, that sorts them. */
struct entry {
    char name[NAME_LEN];
    int rank;
};

static int *leaders; /* one per rank of MPI_COMM_WORLD */
static int ranks;

static void read_own_name(struct entry *own)
{
    const char *given = getenv("TRIB_HOST");

    memset(own->name, 0, NAME_LEN);
    if (given != NULL && given[0] != '\0')
        memcpy(own->name, given, strnlen(given, NAME_LEN - 1));
    else
        gethostname(own->name, NAME_LEN - 1);
}

static int by_name_and_rank(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    int order = memcmp(a->name, b->name, NAME_LEN);

    return order != 0 ? order : (a->rank > b->rank) - (a->rank < b->rank);
}

static void find_leaders(struct entry *entries)
{
    qsort(entries, (size_t)ranks, sizeof *entries, by_name_and_rank);
    for (int i = 0; i < ranks; i++) {
        bool follows = i > 0 && memcmp(entries[i].name, entries[i - 1].name, NAME_LEN) == 0;
        leaders[entries[i].rank] = follows ? leaders[entries[i - 1].rank] : entries[i].rank;
    }
}

void placement_read(MPI_Comm world)
{
    struct entry own, *entries = NULL;

    own.rank = runtime_rank(world);
    ranks = runtime_size(world);
    leaders = malloc((size_t)ranks * sizeof *leaders);
    if (own.rank == 0)
        entries = malloc((size_t)ranks * sizeof *entries);
    if (runtime_least(world, leaders != NULL && (own.rank != 0 || entries != NULL)) != 0) {
        read_own_name(&own);
        runtime_gather(world, &own, entries, sizeof own);
        if (own.rank == 0)
            find_leaders(entries);
        runtime_bcast(world, leaders, ranks * (int)sizeof *leaders, 0);
    } else {
        placement_forget();
    }
    free(entries);
}

int placement_leader(int world_rank)
{
    return leaders != NULL ? leaders[world_rank] : world_rank;
}

void placement_forget(void)
{
    free(leaders);
    leaders = NULL;
}
