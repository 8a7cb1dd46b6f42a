/* SPDX-License-Identifier: Apache-2.0
 *
 * One cell of the comparison as the command line gives it: COLLECTIVE:BYTES:MODE[:ITERATIONS].
 */
#ifndef CELL_H
#define CELL_H

#include <stdbool.h>
#include <stddef.h>

enum collective { BARRIER, ALLREDUCE, REDUCE, BCAST, REDUCE_SCATTER, ALLGATHER, COLLECTIVES };
enum mode { SUSTAINED, SINGLE, FLIGHT, MODES };

extern const char *const COLLECTIVE_NAMES[COLLECTIVES];
extern const char *const MODE_NAMES[MODES];

struct cell {
    enum collective collective;
    enum mode mode;
    size_t bytes;    /* of the whole vector */
    long iterations; /* 0: as many as fit into the budget */
};

struct options {
    struct cell *cells;
    size_t cell_count;
    double budget; /* seconds of timed operations per cell */
    long min_iterations;
    bool gate; /* whether to wait for a line on stdin before and after each cell */
};

/* Reads the command line; prints what is wrong with it and returns false. */
bool options_read(struct options *options, int argc, char **argv);

#endif
