/* SPDX-License-Identifier: Apache-2.0 */
#include "reference.h"

/* How many ranks give something to a sum of floating-point numbers: 64 times 3 is exact in all
   types. */
enum { RANKS_IN_SUM = 64 };

static uint64_t mixed(uint64_t seed, uint64_t rank, uint64_t at)
{
    uint64_t bits = seed * 0x9e3779b97f4a7c15u + rank * 0xbf58476d1ce4e5b9u + at * 0x94d049bb133111ebu + 1;
    bits ^= bits >> 31;
    bits *= 0xd6e8feb86659fd93u;
    bits ^= bits >> 29;
    bits *= 0xd6e8feb86659fd93u;
    return bits ^ bits >> 32;
}

static double real_input(const struct vector *vector, int rank, uint64_t at, uint64_t bits)
{
    switch (vector->op) {
    case SHARP_OP_SUM: return rank < RANKS_IN_SUM ? (double)(int)(bits % 7) - 3 : 0;
    /* There are few twos, so that no product overflows in 16 bits. */
    case SHARP_OP_PROD: return ((uint64_t)rank + at) % 8 == 0 && rank < RANKS_IN_SUM ? 2 : bits % 2 ? 1 : -1;
    default: return ((double)(int)(bits % 201) - 100) / 2;
    }
}

static struct number plain_number(const struct vector *vector, int rank, uint64_t at)
{
    struct number number = {.class = vector->element->class, .bits = mixed(vector->seed, (uint64_t)rank, at)};
    bool is_logical = vector->op == SHARP_OP_LAND || vector->op == SHARP_OP_LOR || vector->op == SHARP_OP_LXOR;

    if (number.class == NUMBER_FLOAT)
        number.real = real_input(vector, rank, at, number.bits);
    else if (is_logical && number.bits >> 60 < 6)
        number.bits = 0;
    /* Nothing says what becomes of the value of a single rank: it is the result already. */
    else if (is_logical && vector->ranks == 1)
        number.bits = 1;
    return number;
}

static struct number small_number(const struct element *element, uint64_t bits)
{
    struct number number = {.class = element->class, .bits = bits};
    if (element->class == NUMBER_FLOAT)
        number.real = (double)bits;
    return number;
}

static void write_input(const struct vector *vector, int rank, uint64_t at, unsigned char *bytes)
{
    if (vector->tag == NULL) {
        element_store(vector->element, plain_number(vector, rank, at), bytes);
        return;
    }
    /* There are few values, so that many are equal and tags decide. */
    uint64_t bits = mixed(vector->seed, (uint64_t)rank, at);
    element_store(vector->element, small_number(vector->element, bits % 3), bytes);
    element_store(vector->tag, small_number(vector->tag, bits >> 32 & 0x7f), bytes + vector->element->size);
}

static void fold(const struct vector *vector, const unsigned char *next, unsigned char *result)
{
    const struct element *element = vector->element, *tag = vector->tag;
    struct number left = element_load(element, result), right = element_load(element, next);

    if (tag == NULL) {
        element_store(element, operator_apply(vector->op, left, right), result);
        return;
    }
    struct number left_tag = element_load(tag, result + element->size);
    struct number right_tag = element_load(tag, next + element->size);
    if (operator_prefers(vector->op, left, left_tag, right, right_tag)) {
        element_store(element, right, result);
        element_store(tag, right_tag, result + element->size);
    }
}

size_t vector_stride(const struct vector *vector)
{
    return vector->element->size + (vector->tag ? vector->tag->size : 0);
}

size_t vector_len(const struct vector *vector)
{
    return vector->count * vector_stride(vector);
}

void vector_input(const struct vector *vector, int rank, unsigned char *bytes)
{
    for (size_t at = 0; at < vector->count; at++)
        write_input(vector, rank, vector->first + at, bytes + at * vector_stride(vector));
}

void vector_result(const struct vector *vector, unsigned char *bytes)
{
    unsigned char next[16]; /* the widest pair */

    for (size_t at = 0; at < vector->count; at++) {
        unsigned char *result = bytes + at * vector_stride(vector);
        write_input(vector, 0, vector->first + at, result);
        for (int rank = 1; rank < vector->ranks; rank++) {
            write_input(vector, rank, vector->first + at, next);
            fold(vector, next, result);
        }
    }
}

void plain_input(unsigned seed, int rank, size_t len, unsigned char *bytes)
{
    for (size_t at = 0; at < len; at++)
        bytes[at] = (unsigned char)mixed(seed, (uint64_t)rank, at);
}
