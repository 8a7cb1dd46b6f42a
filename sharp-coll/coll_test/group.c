/* SPDX-License-Identifier: Apache-2.0 */
#include "group.h"

#include <stdio.h>
#include <stdlib.h>

#include "fail.h"

struct locality locality_find(void)
{
    struct locality locality;
    MPI_Comm host;
    int size;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &locality.local_rank);
    MPI_Comm_size(host, &size);
    MPI_Comm_free(&host);
    MPI_Allreduce(&size, &locality.most_local, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return locality;
}

bool groups_fit(const struct group_choice *choice)
{
    int size;

    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (choice->splits <= size)
        return true;
    complain_once("-t: %d groups of %d rank%s make no sense", choice->splits, size, size == 1 ? "" : "s");
    return false;
}

static MPI_Comm split(MPI_Comm of, int color, bool is_reversed)
{
    int rank;
    MPI_Comm comm;

    MPI_Comm_rank(of, &rank);
    MPI_Comm_split(of, color, is_reversed ? -rank : rank, &comm);
    return comm;
}

MPI_Comm groups_job(const struct group_choice *choice, const struct locality *locality)
{
    return split(MPI_COMM_WORLD, choice->type == GROUP_PPN_JOBS ? locality->local_rank : 0, false);
}

/* The group in which this rank is; MPI_UNDEFINED: none. */
static int color_of(const struct group_choice *choice, const struct locality *locality)
{
    int rank, size;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    switch (choice->type) {
    case GROUP_SPLIT:
    case GROUP_SPLIT_REVERSED: return rank % choice->splits;
    case GROUP_HALF: return rank < (size + 1) / 2 ? 0 : MPI_UNDEFINED;
    case GROUP_PPN_COMM: return locality->local_rank;
    default: return 0; /* the job's ranks */
    }
}

static void name_turn(struct turn *turn, const struct group_choice *choice, int number, bool is_serial)
{
    static const char *const names[] = {"world", "split:", "split-rev:", "half", "split:ppn-comm", "split:ppn-jobs"};
    const char *name = names[choice->type];

    if (choice->splits > 0)
        snprintf(turn->name, sizeof turn->name, "%s%d", name, choice->splits);
    else if (is_serial)
        snprintf(turn->name, sizeof turn->name, "%s %d", name, number);
    else
        snprintf(turn->name, sizeof turn->name, "%s", name);
}

static struct group make(const struct layer *layer, MPI_Comm comm)
{
    struct group group = {.comm = comm};

    MPI_Comm_rank(comm, &group.rank);
    MPI_Comm_size(comm, &group.size);
    group.handle = layer->make_group(comm);
    return group;
}

struct turns groups_make(const struct layer *layer, const struct group_choice *choice, const struct locality *locality, MPI_Comm job,
                         bool is_parallel)
{
    bool is_serial = choice->type == GROUP_PPN_COMM && !is_parallel;
    struct turns turns = {.count = is_serial ? locality->most_local : 1};
    int color = color_of(choice, locality);

    turns.all = calloc((size_t)turns.count, sizeof *turns.all);
    if (turns.all == NULL) {
        complain("no memory for %d groups", turns.count);
        end_all(EXIT_ENVIRONMENT);
    }
    MPI_Comm own = split(job, color, choice->type == GROUP_SPLIT_REVERSED);
    for (int number = 0; number < turns.count; number++) {
        struct turn *turn = &turns.all[number];
        name_turn(turn, choice, number, is_serial);
        turn->takes_part = own != MPI_COMM_NULL && (!is_serial || locality->local_rank == number);
        turn->active = split(MPI_COMM_WORLD, turn->takes_part ? 0 : MPI_UNDEFINED, false);
        if (turn->takes_part)
            turn->group = make(layer, own);
    }
    return turns;
}

void groups_free(const struct layer *layer, struct turns *turns)
{
    for (int number = 0; number < turns->count; number++) {
        struct turn *turn = &turns->all[number];
        if (!turn->takes_part)
            continue;
        group_free(layer, &turn->group);
        MPI_Comm_free(&turn->active);
    }
    free(turns->all);
}

struct group group_again(const struct layer *layer, const struct group *group)
{
    MPI_Comm comm;
    MPI_Comm_dup(group->comm, &comm);
    return make(layer, comm);
}

void group_free(const struct layer *layer, struct group *group)
{
    layer->free_group(group->handle);
    MPI_Comm_free(&group->comm);
}
