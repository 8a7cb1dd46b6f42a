/* SPDX-License-Identifier: Apache-2.0 */
#include "operator.h"

const char *const operator_names[SHARP_OP_NULL] = {
    "max", "min", "sum", "prod", "land", "band", "lor", "bor", "lxor", "bxor", "maxloc", "minloc",
};

bool operator_takes_pairs(enum sharp_reduce_op op)
{
    return op == SHARP_OP_MAXLOC || op == SHARP_OP_MINLOC;
}

bool operator_is_defined(enum sharp_reduce_op op, const struct element *element)
{
    bool is_of_integers = op >= SHARP_OP_LAND && op <= SHARP_OP_BXOR;
    return !is_of_integers || element->class != NUMBER_FLOAT;
}

static bool is_less(struct number left, struct number right)
{
    switch (left.class) {
    case NUMBER_SIGNED: return left.whole < right.whole;
    case NUMBER_UNSIGNED: return left.bits < right.bits;
    default: return left.real < right.real;
    }
}

static struct number of_floats(enum sharp_reduce_op op, struct number left, struct number right)
{
    left.real = op == SHARP_OP_SUM ? left.real + right.real : left.real * right.real;
    return left;
}

/* In two's complement, sums and products of signed numbers have the same bits as those of
 * unsigned ones. */
static struct number of_integers(enum sharp_reduce_op op, struct number left, struct number right)
{
    switch (op) {
    case SHARP_OP_SUM: left.bits += right.bits; break;
    case SHARP_OP_PROD: left.bits *= right.bits; break;
    case SHARP_OP_BAND: left.bits &= right.bits; break;
    case SHARP_OP_BOR: left.bits |= right.bits; break;
    case SHARP_OP_BXOR: left.bits ^= right.bits; break;
    case SHARP_OP_LAND: left.bits = left.bits && right.bits; break;
    case SHARP_OP_LOR: left.bits = left.bits || right.bits; break;
    default: left.bits = !left.bits != !right.bits; /* LXOR */
    }
    return left;
}

struct number operator_apply(enum sharp_reduce_op op, struct number left, struct number right)
{
    if (op == SHARP_OP_MAX)
        return is_less(left, right) ? right : left;
    if (op == SHARP_OP_MIN)
        return is_less(right, left) ? right : left;
    return left.class == NUMBER_FLOAT ? of_floats(op, left, right) : of_integers(op, left, right);
}

bool operator_prefers(enum sharp_reduce_op op, struct number value, struct number tag, struct number other_value,
                      struct number other_tag)
{
    if (is_less(value, other_value))
        return op == SHARP_OP_MAXLOC;
    if (is_less(other_value, value))
        return op == SHARP_OP_MINLOC;
    return is_less(other_tag, tag);
}
