/* SPDX-License-Identifier: Apache-2.0
 *
 * The operators: their names, what types they are defined on, and what they give.
 */
#ifndef COLL_TEST_OPERATOR_H
#define COLL_TEST_OPERATOR_H

#include <stdbool.h>

#include "element.h"

extern const char *const operator_names[SHARP_OP_NULL];

/* MINLOC and MAXLOC take pairs of a value and a tag. */
bool operator_takes_pairs(enum sharp_reduce_op op);
/* Whether the operator is defined on the type; logical and bitwise operators are for integers
 * only. */
bool operator_is_defined(enum sharp_reduce_op op, const struct element *element);
/* The result for plain numbers. */
struct number operator_apply(enum sharp_reduce_op op, struct number left, struct number right);
/* For pairs: whether the right one is the result. Of equal values the smaller tag wins. */
bool operator_prefers(enum sharp_reduce_op op, struct number value, struct number tag, struct number other_value,
                      struct number other_tag);

#endif
