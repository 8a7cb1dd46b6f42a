/* SPDX-License-Identifier: Apache-2.0
 *
 * The operators: names, what they are defined on, and what they give.
 */
#ifndef COLL_TEST_OPERATOR_H
#define COLL_TEST_OPERATOR_H

#include <stdbool.h>

#include "element.h"

extern const char *const operator_names[SHARP_OP_NULL];

/* MINLOC and MAXLOC take pairs of a value and a tag. */
bool operator_takes_pairs(enum sharp_reduce_op op);
/* Logical and bitwise operators know integers only. */
bool operator_is_defined(enum sharp_reduce_op op, const struct element *element);
/* Of plain numbers. */
struct number operator_apply(enum sharp_reduce_op op, struct number left, struct number right);
/* Of pairs: whether the right one is the result. Of equal values the smaller tag wins. */
bool operator_prefers(enum sharp_reduce_op op, struct number value, struct number tag, struct number other_value,
                      struct number other_tag);

#endif
