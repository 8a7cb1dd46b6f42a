/* SPDX-License-Identifier: Apache-2.0
 *
 * The operation of one cell: its buffers, and what must come out. Two inputs are used in turn,
 * so that a result left over from the previous operation is wrong.
 */
#ifndef WORK_H
#define WORK_H

#include "cell.h"

#include <mpi.h>

enum { IN_FLIGHT = 8 };

struct work {
    enum collective collective;
    enum mode mode;
    int rank, ranks;
    size_t bytes;             /* of the whole vector, rounded up to whole blocks */
    int count;                /* elements of the whole vector, or of one block where blocks are gathered or scattered */
    size_t elements;          /* of an input buffer */
    float *input[2];
    float *output[IN_FLIGHT]; /* only the first one is used unless the mode is FLIGHT */
};

/* Prepares it; false when there is not enough memory. */
bool work_make(struct work *work, const struct cell *cell, int rank, int ranks);
void work_free(struct work *work);
/* Runs one operation, or eight at once in mode FLIGHT. */
void work_run(struct work *work, long iteration);
/* Compares every element of the result of the last iteration; returns how many are wrong. */
size_t work_check(const struct work *work, long iteration);

#endif
