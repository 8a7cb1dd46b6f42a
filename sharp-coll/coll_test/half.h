/* SPDX-License-Identifier: Apache-2.0
 *
 * The two floating-point types of 16 bits for which C has no names. Only numbers that they hold
 * exactly are turned into bits, and none of them is as small as a denormal.
 */
#ifndef COLL_TEST_HALF_H
#define COLL_TEST_HALF_H

#include <stdint.h>

double binary16_value(uint16_t bits);
uint16_t binary16_bits(double value);
double bfloat16_value(uint16_t bits);
uint16_t bfloat16_bits(double value);

#endif
