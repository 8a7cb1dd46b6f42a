/* SPDX-License-Identifier: Apache-2.0
 *
 * What the test programs share: a check that ends all ranks with the reason, and arguments.
 */
#ifndef TESTS_MPI_CHECK_H
#define TESTS_MPI_CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* A false condition ends the program on all ranks with status 1 and the words given. */
#define CHECK(condition, ...) \
    do { \
        if (!(condition)) { \
            int check_rank; \
            MPI_Comm_rank(MPI_COMM_WORLD, &check_rank); \
            fprintf(stderr, "%s:%d: rank %d: ", __FILE__, __LINE__, check_rank); \
            fprintf(stderr, __VA_ARGS__); \
            fputc('\n', stderr); \
            MPI_Abort(MPI_COMM_WORLD, 1); \
        } \
    } while (0)

/* Argument number index, or fallback when there are not so many. */
static inline long argument(int argc, char **argv, int index, long fallback)
{
    return index < argc ? strtol(argv[index], NULL, 0) : fallback;
}

#endif
