/* SPDX-License-Identifier: Apache-2.0 */
#include "members.h"

#include <stdlib.h>
#include <string.h>

/* Fills ranks[0 .. size - 1]; false when a member is not in world. */
static bool translate(MPI_Comm comm, MPI_Comm world, uint32_t size, uint32_t *ranks)
{
    MPI_Group group, world_group;
    int *source = malloc(size * sizeof *source), *target = malloc(size * sizeof *target);
    bool complete = source != NULL && target != NULL;

    if (complete) {
        for (uint32_t rank = 0; rank < size; rank++)
            source[rank] = (int)rank;
        PMPI_Comm_group(comm, &group);
        PMPI_Comm_group(world, &world_group);
        PMPI_Group_translate_ranks(group, (int)size, source, world_group, target);
        PMPI_Group_free(&group);
        PMPI_Group_free(&world_group);
    }
    for (uint32_t rank = 0; complete && rank < size; rank++) {
        complete = target[rank] != MPI_UNDEFINED;
        ranks[rank] = (uint32_t)target[rank];
    }
    free(source);
    free(target);
    return complete;
}

static bool is_sequence(const uint32_t *ranks, uint32_t size, int stride)
{
    for (uint32_t rank = 1; rank < size; rank++)
        if ((int)ranks[rank] - (int)ranks[rank - 1] != stride)
            return false;
    return true;
}

bool members_read(MPI_Comm comm, MPI_Comm world, struct members *members, uint32_t **ranks)
{
    int size;

    PMPI_Comm_size(comm, &size);
    *members = (struct members){.size = (uint32_t)size};
    *ranks = malloc((size_t)size * sizeof **ranks);
    if (*ranks == NULL)
        return false;
    if (!translate(comm, world, members->size, *ranks))
        goto refuse;
    members->first = (int)(*ranks)[0];
    members->stride = size > 1 ? (int)(*ranks)[1] - (int)(*ranks)[0] : 0;
    if (is_sequence(*ranks, members->size, members->stride))
        return true;
    members->list = malloc((size_t)size * sizeof *members->list);
    if (members->list == NULL)
        goto refuse;
    memcpy(members->list, *ranks, (size_t)size * sizeof *members->list);
    return true;

refuse:
    free(*ranks);
    *ranks = NULL;
    return false;
}

int members_world_rank(const struct members *members, uint32_t rank)
{
    return members->list != NULL ? (int)members->list[rank] : members->first + (int)rank * members->stride;
}

void members_free(struct members *members)
{
    free(members->list);
    members->list = NULL;
}
