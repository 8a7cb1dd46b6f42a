/* SPDX-License-Identifier: Apache-2.0
 *
 * What ranks give in the programs that time collectives: other numbers on each rank and in each
 * element, so that a block in the wrong order or from the wrong rank is seen.
 */
#ifndef TESTS_MPI_VALUES_H
#define TESTS_MPI_VALUES_H

#include <stddef.h>

/* What rank `from` gives as element i of all that it gives: small, so that sums have room. */
static inline int given(int from, size_t i)
{
    return 3 * from + (int)(i % 1009) + 1;
}

/* The sum of what the ranks before `last` give as element i. */
static inline int sum_before(int last, size_t i)
{
    return 3 * (last * (last - 1) / 2) + last * given(0, i);
}

#endif
