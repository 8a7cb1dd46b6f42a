/* SPDX-License-Identifier: Apache-2.0
 *
 * chance.h - random numbers from a seed.
 */
#ifndef CHANCE_H
#define CHANCE_H

#include <stddef.h>
#include <stdint.h>

struct chance {
    uint64_t state;
};

static uint64_t draw(struct chance *chance)
{
    /* splitmix64: any state is good, zero too. */
    uint64_t x = chance->state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* 0 .. count - 1 */
__attribute__((unused)) static size_t below(struct chance *chance, size_t count)
{
    return (size_t)(draw(chance) % count);
}

__attribute__((unused)) static int one_in(struct chance *chance, size_t count)
{
    return below(chance, count) == 0;
}

#endif
