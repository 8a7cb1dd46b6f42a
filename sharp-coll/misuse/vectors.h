/* SPDX-License-Identifier: Apache-2.0
 *
 * vectors.h - what ranks put in, and what must come out. An element depends only on the key of
 * its operation, its rank and its index, so that every rank can compute what all have given.
 */
#ifndef VECTORS_H
#define VECTORS_H

#include "chance.h"
#include "conformance.h"

static int is_floating(enum sharp_datatype dtype)
{
    return dtype == SHARP_DTYPE_FLOAT || dtype == SHARP_DTYPE_DOUBLE || dtype == SHARP_DTYPE_FLOAT_SHORT ||
           dtype == SHARP_DTYPE_BFLOAT16;
}

static int is_signed(enum sharp_datatype dtype)
{
    return dtype == SHARP_DTYPE_INT || dtype == SHARP_DTYPE_LONG || dtype == SHARP_DTYPE_SHORT || dtype == SHARP_DTYPE_INT8;
}

/* A number that stands for element i of a rank: it has any bits for an integer type, and is 0 to
   3 for floating-point types, whose sums are then exact. */
static uint64_t element(uint64_t key, int rank, size_t i, enum sharp_datatype dtype)
{
    struct chance chance = {key + (uint64_t)rank * 0x632be59bd9b4e019u + i * 0xd1342543de82ef95u};
    return is_floating(dtype) ? draw(&chance) % 4 : draw(&chance);
}

/* Numbers of two-byte floating-point types are stored as patterns of denormals: their sums are
   the patterns of the sums. */
static void store(void *at, uint64_t number, enum sharp_datatype dtype)
{
    float f32 = (float)number;
    double f64 = (double)number;
    if (dtype == SHARP_DTYPE_FLOAT)
        memcpy(at, &f32, sizeof f32);
    else if (dtype == SHARP_DTYPE_DOUBLE)
        memcpy(at, &f64, sizeof f64);
    else
        memcpy(at, &number, size_of(dtype));
}

static void fill(void *vector, size_t from, size_t count, uint64_t key, int rank, enum sharp_datatype dtype)
{
    for (size_t i = 0; i < count; i++)
        store((char *)vector + i * size_of(dtype), element(key, rank, from + i, dtype), dtype);
}

static int is_less(uint64_t a, uint64_t b, enum sharp_datatype dtype)
{
    /* The bits become the highest of a word, so that signs are where comparisons look for them. */
    int shift = 64 - 8 * (int)size_of(dtype);
    if (is_signed(dtype))
        return (int64_t)(a << shift) < (int64_t)(b << shift);
    return is_floating(dtype) ? a < b : a << shift < b << shift;
}

static uint64_t combined(uint64_t a, uint64_t b, enum sharp_datatype dtype, enum sharp_reduce_op op)
{
    switch (op) {
    case SHARP_OP_MAX: return is_less(a, b, dtype) ? b : a;
    case SHARP_OP_MIN: return is_less(b, a, dtype) ? b : a;
    case SHARP_OP_BAND: return a & b;
    case SHARP_OP_BOR: return a | b;
    case SHARP_OP_BXOR: return a ^ b;
    default: return a + b;
    }
}

/* Whether `count` elements from index `from` on are what an operator makes of those of all
   ranks. */
static int is_reduced(const void *vector, size_t from, size_t count, uint64_t key, int ranks, enum sharp_datatype dtype,
                      enum sharp_reduce_op op)
{
    for (size_t i = 0; i < count; i++) {
        unsigned char expected[8];
        uint64_t sum = element(key, 0, from + i, dtype);
        for (int r = 1; r < ranks; r++)
            sum = combined(sum, element(key, r, from + i, dtype), dtype, op);
        store(expected, sum, dtype);
        if (memcmp(expected, (const char *)vector + i * size_of(dtype), size_of(dtype)) != 0)
            return 0;
    }
    return 1;
}

#endif
