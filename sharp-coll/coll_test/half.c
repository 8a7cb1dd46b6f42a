/* SPDX-License-Identifier: Apache-2.0 */
#include "half.h"

#include <math.h>
#include <string.h>

/* sign 1 | exponent 5, bias 15 | fraction 10 */
double binary16_value(uint16_t bits)
{
    int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
    double size;

    if (exponent == 0)
        size = ldexp(fraction, -24);
    else if (exponent == 31)
        size = fraction ? NAN : INFINITY;
    else
        size = ldexp(fraction + 1024, exponent - 25);
    return bits >> 15 ? -size : size;
}

uint16_t binary16_bits(double value)
{
    int exponent;
    unsigned sign = signbit(value) ? 0x8000 : 0;
    double fraction = frexp(fabs(value), &exponent); /* 0.5 <= fraction < 1 */

    if (fraction == 0)
        return (uint16_t)sign;
    return (uint16_t)(sign | (unsigned)(exponent + 14) << 10 | ((unsigned)(fraction * 2048) & 0x3ff));
}

/* The upper half of a binary32. */
double bfloat16_value(uint16_t bits)
{
    uint32_t whole = (uint32_t)bits << 16;
    float value;

    memcpy(&value, &whole, sizeof value);
    return value;
}

uint16_t bfloat16_bits(double value)
{
    float single = (float)value;
    uint32_t whole;

    memcpy(&whole, &single, sizeof whole);
    return (uint16_t)(whole >> 16);
}
