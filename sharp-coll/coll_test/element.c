/* SPDX-License-Identifier: Apache-2.0 */
#include "element.h"

#include <string.h>

#include "half.h"

const struct element elements[SHARP_DTYPE_NULL] = {
    {SHARP_DTYPE_UNSIGNED, "unsigned", 4, NUMBER_UNSIGNED},
    {SHARP_DTYPE_INT, "int", 4, NUMBER_SIGNED},
    {SHARP_DTYPE_UNSIGNED_LONG, "unsigned_long", 8, NUMBER_UNSIGNED},
    {SHARP_DTYPE_LONG, "long", 8, NUMBER_SIGNED},
    {SHARP_DTYPE_FLOAT, "float", 4, NUMBER_FLOAT},
    {SHARP_DTYPE_DOUBLE, "double", 8, NUMBER_FLOAT},
    {SHARP_DTYPE_UNSIGNED_SHORT, "half_unsigned", 2, NUMBER_UNSIGNED},
    {SHARP_DTYPE_SHORT, "half_int", 2, NUMBER_SIGNED},
    {SHARP_DTYPE_FLOAT_SHORT, "half_float", 2, NUMBER_FLOAT},
    {SHARP_DTYPE_BFLOAT16, "bfloat16", 2, NUMBER_FLOAT},
    {SHARP_DTYPE_UINT8, "byte", 1, NUMBER_UNSIGNED},
    {SHARP_DTYPE_INT8, "signed_byte", 1, NUMBER_SIGNED},
};

const struct element *element_named(const char *name)
{
    for (size_t at = 0; at < SHARP_DTYPE_NULL; at++)
        if (strcmp(elements[at].name, name) == 0)
            return &elements[at];
    return NULL;
}

static double load_float(const struct element *element, const unsigned char *bytes)
{
    uint16_t half;
    float single;
    double wide;

    switch (element->size) {
    case 2:
        memcpy(&half, bytes, 2);
        return element->code == SHARP_DTYPE_BFLOAT16 ? bfloat16_value(half) : binary16_value(half);
    case 4:
        memcpy(&single, bytes, 4);
        return single;
    default:
        memcpy(&wide, bytes, 8);
        return wide;
    }
}

static void store_float(const struct element *element, double value, unsigned char *bytes)
{
    uint16_t half;
    float single = (float)value;

    switch (element->size) {
    case 2:
        half = element->code == SHARP_DTYPE_BFLOAT16 ? bfloat16_bits(value) : binary16_bits(value);
        memcpy(bytes, &half, 2);
        break;
    case 4:
        memcpy(bytes, &single, 4);
        break;
    default:
        memcpy(bytes, &value, 8);
    }
}

struct number element_load(const struct element *element, const unsigned char *bytes)
{
    struct number number = {.class = element->class, .bits = 0};

    if (element->class == NUMBER_FLOAT) {
        number.real = load_float(element, bytes);
        return number;
    }
    /* On every machine for which this is made, the least significant byte comes first. */
    memcpy(&number.bits, bytes, element->size);
    if (element->class == NUMBER_SIGNED) {
        unsigned above = 64 - 8 * (unsigned)element->size;
        number.whole = (int64_t)(number.bits << above) >> above;
    }
    return number;
}

void element_store(const struct element *element, struct number number, unsigned char *bytes)
{
    if (element->class == NUMBER_FLOAT)
        store_float(element, number.real, bytes);
    else
        memcpy(bytes, &number.bits, element->size);
}
