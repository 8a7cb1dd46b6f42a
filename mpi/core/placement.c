/* SPDX-License-Identifier: Apache-2.0 */
#include "placement.h"

#include "job.h"
#include "runtime.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* For rank 0, that sorts them. */
struct entry {
    char name[PLACEMENT_NAME_LEN];
    int rank;
};

static int *leaders; /* one per rank of MPI_COMM_WORLD */
static int ranks;

void placement_read_host(char name[PLACEMENT_NAME_LEN])
{
    const char *given = getenv("TRIB_HOST");

    memset(name, 0, PLACEMENT_NAME_LEN);
    if (given != NULL && given[0] != '\0')
        memcpy(name, given, strnlen(given, PLACEMENT_NAME_LEN - 1));
    else
        gethostname(name, PLACEMENT_NAME_LEN - 1);
}

static int by_name_and_rank(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    int order = memcmp(a->name, b->name, PLACEMENT_NAME_LEN);

    return order != 0 ? order : (a->rank > b->rank) - (a->rank < b->rank);
}

static void find_leaders(struct entry *entries)
{
    qsort(entries, (size_t)ranks, sizeof *entries, by_name_and_rank);
    for (int i = 0; i < ranks; i++) {
        bool follows = i > 0 && memcmp(entries[i].name, entries[i - 1].name, PLACEMENT_NAME_LEN) == 0;
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
    if (leaders == NULL || (own.rank == 0 && entries == NULL))
        job_end("there is no memory for the names of hosts");
    placement_read_host(own.name);
    runtime_gather(world, &own, entries, sizeof own);
    if (own.rank == 0)
        find_leaders(entries);
    runtime_bcast(world, leaders, ranks * (int)sizeof *leaders, 0);
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
