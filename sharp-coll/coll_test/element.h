/* SPDX-License-Identifier: Apache-2.0
 *
 * The datatypes: their names, their sizes, and how numbers are stored in their bytes.
 */
#ifndef COLL_TEST_ELEMENT_H
#define COLL_TEST_ELEMENT_H

#include <stddef.h>
#include <stdint.h>

#include "api/sharp.h"

enum number_class {
    NUMBER_SIGNED,
    NUMBER_UNSIGNED,
    NUMBER_FLOAT,
};

struct element {
    enum sharp_datatype code;
    const char *name; /* the name in option -T */
    size_t size;
    enum number_class class;
};

/* A number of any class, wide enough for all of them. */
struct number {
    enum number_class class;
    union {
        int64_t whole;
        uint64_t bits;
        double real;
    };
};

extern const struct element elements[SHARP_DTYPE_NULL];

/* Returns NULL if there is no such name. */
const struct element *element_named(const char *name);
struct number element_load(const struct element *element, const unsigned char *bytes);
/* Stores a number. Integers wrap; a floating-point type must be able to hold the number exactly. */
void element_store(const struct element *element, struct number number, unsigned char *bytes);

#endif
