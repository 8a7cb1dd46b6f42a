/* SPDX-License-Identifier: Apache-2.0
 *
 * What the program does with a turn of groups.
 */
#ifndef COLL_TEST_MODES_H
#define COLL_TEST_MODES_H

#include "collective.h"
#include "trial.h"

/* Tests every collective, type and operator once. */
void basic_run(const struct layer *layer, const struct options *options, const struct turn *turn, struct tally *tally);
/* Tests everything that options offer, drawn by number; `whole` adds every type of tag, and long
   messages. */
void complex_run(const struct layer *layer, const struct options *options, const struct turn *turn, bool whole,
                 struct tally *tally);
/* Prints a table of times. */
void perf_run(const struct layer *layer, const struct options *options, const struct turn *turn);

/* Calls back for every type and operator that is to be tested; with all types of tags, or only
   the first. */
typedef void combination_visitor(const struct element *element, const struct element *tag, enum sharp_reduce_op op, void *more);
void each_combination(const struct layer *layer, const struct options *options, bool all_tags, combination_visitor *visit,
                      void *more);
/* Whether the layer has the collective at all. */
bool layer_has(const struct layer *layer, enum collective_kind kind);
/* The root that option -r stands for in this group. */
int root_of(const struct options *options, const struct group *group);
/* How many elements a message of so many bytes has: at least one. */
size_t count_of(size_t size, size_t stride);
struct message_form send_form(const struct options *options);
struct message_form receive_form(const struct options *options);

#endif
