/* SPDX-License-Identifier: Apache-2.0
 *
 * One collective, which is run and compared with the reference.
 */
#ifndef COLL_TEST_TRIAL_H
#define COLL_TEST_TRIAL_H

#include "group.h"
#include "reference.h"

/* How many trials there were, and how many failed. */
struct tally {
    long trials, wrong;
    unsigned seed; /* of the next one: the same at all ranks of a group, which begin it with 0 */
};

struct trial {
    struct work work; /* rank and size are filled in */
    bool posts;       /* whether it uses requests */
    int at_once;      /* operations under way; 1 unless it posts */
    bool polls;       /* requests are tested, not waited for */
    struct message_form send, receive;
};

/* Runs the trial and prints what is wrong. The call is collective over the group. */
void trial_run(const struct layer *layer, const struct group *group, const struct trial *trial, struct tally *tally);
/* Tests whether a barrier keeps all ranks until a late one has come. */
void trial_barrier(const struct layer *layer, const struct group *group, bool posts, int late_rank, struct tally *tally);
/* Runs the trial in several groups of the same ranks at once, in another order at each rank. */
void trial_groups(const struct layer *layer, const struct group *groups, int count, const struct trial *trial,
                  struct tally *tally);

#endif
