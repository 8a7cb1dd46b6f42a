/* SPDX-License-Identifier: Apache-2.0
 *
 * The groups that option -t makes of the ranks.
 */
#ifndef COLL_TEST_GROUP_H
#define COLL_TEST_GROUP_H

#include <mpi.h>

#include "layer.h"
#include "options.h"

struct group {
    int rank, size;
    MPI_Comm comm;
    void *handle; /* of the layer */
};

/* Groups that work at the same time. A choice of groups makes one turn, or several. */
struct turn {
    char name[64];
    bool takes_part; /* whether this rank does */
    struct group group;
    MPI_Comm active; /* all ranks that take part */
};

struct turns {
    struct turn *all;
    int count;
};

/* This rank's number among the ranks of its host, and how many there are. */
struct locality {
    int local_rank;
    int most_local; /* ranks on the host with most of them */
};

struct locality locality_find(void);
/* Whether there are enough ranks; prints a message if not. */
bool groups_fit(const struct group_choice *choice);
/* The ranks of this rank's job: all, or those of a local rank. */
MPI_Comm groups_job(const struct group_choice *choice, const struct locality *locality);
/* Makes the groups. The call is collective over all ranks. */
struct turns groups_make(const struct layer *layer, const struct group_choice *choice, const struct locality *locality, MPI_Comm job,
                         bool is_parallel);
void groups_free(const struct layer *layer, struct turns *turns);
/* Makes a further group of the same ranks. */
struct group group_again(const struct layer *layer, const struct group *group);
void group_free(const struct layer *layer, struct group *group);

#endif
