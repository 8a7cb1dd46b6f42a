/* SPDX-License-Identifier: Apache-2.0
 *
 * One collective, run and held against the reference.
 */
#ifndef COLL_TEST_TRIAL_H
#define COLL_TEST_TRIAL_H

#include "group.h"
#include "reference.h"

/* How many there were. */
struct tally {
    long trials, wrong;
    unsigned seed; /* of the next one: the same at all ranks of a group, which begin it with 0 */
};

struct trial {
    struct work work; /* rank and size are filled in */
    bool posts;       /* by requests */
    int at_once;      /* so many operations under way; 1 unless it posts */
    bool polls;       /* requests are asked for, not waited for */
    struct message_form send, receive;
};

/* Says what is wrong. Collective over the group. */
void trial_run(const struct layer *layer, const struct group *group, const struct trial *trial, struct tally *tally);
/* Whether a barrier keeps all ranks until a late one has come. */
void trial_barrier(const struct layer *layer, const struct group *group, bool posts, int late_rank, struct tally *tally);
/* The same, in an order of each rank's own, in several groups of the same ranks at once. */
void trial_groups(const struct layer *layer, const struct group *groups, int count, const struct trial *trial,
                  struct tally *tally);

#endif
