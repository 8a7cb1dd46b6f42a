/* SPDX-License-Identifier: Apache-2.0
 *
 * The datatypes: names, sizes, and numbers in and out of their bytes.
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
    const char *name; /* as option -T has it */
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

/* NULL if there is no such name. */
const struct element *element_named(const char *name);
struct number element_load(const struct element *element, const unsigned char *bytes);
/* Integers wrap; what goes into a floating-point type must fit it exactly. */
void element_store(const struct element *element, struct number number, unsigned char *bytes);

#endif
