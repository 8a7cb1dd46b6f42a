/* SPDX-License-Identifier: Apache-2.0
 *
 * What goes into a collective and what must come out, without any communication: every rank's
 * numbers follow from its rank, so each rank computes all of them and folds them one after
 * another.
 *
 * Floating-point numbers are chosen so that their results are exact whatever the order; integers
 * overflow.
 */
#ifndef COLL_TEST_REFERENCE_H
#define COLL_TEST_REFERENCE_H

#include "operator.h"

/* A vector of a reduction. */
struct vector {
    const struct element *element;
    const struct element *tag; /* NULL unless the operator takes pairs */
    enum sharp_reduce_op op;
    size_t first; /* what follows is the part of a longer vector that begins here */
    size_t count; /* elements, or pairs */
    unsigned seed;
    int ranks; /* how many reduce it */
};

/* Bytes of one element, or pair. */
size_t vector_stride(const struct vector *vector);
size_t vector_len(const struct vector *vector);
/* The vector that this rank gives. */
void vector_input(const struct vector *vector, int rank, unsigned char *bytes);
/* The result. */
void vector_result(const struct vector *vector, unsigned char *bytes);
/* Bytes of any value, for collectives that only carry them. */
void plain_input(unsigned seed, int rank, size_t len, unsigned char *bytes);

#endif
