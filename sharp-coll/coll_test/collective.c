/* SPDX-License-Identifier: Apache-2.0 */
#include "collective.h"

#include <string.h>

const struct collective collectives[COLLECTIVES] = {
    {"allreduce", KIND_ALLREDUCE, false},
    {"iallreduce", KIND_ALLREDUCE, true},
    {"reduce", KIND_REDUCE, false},
    {"ireduce", KIND_REDUCE, true},
    {"barrier", KIND_BARRIER, false},
    {"ibarrier", KIND_BARRIER, true},
    {"bcast", KIND_BCAST, false},
    {"reduce_scatter", KIND_REDUCE_SCATTER, false},
    {"allgather", KIND_ALLGATHER, false},
};

int collective_named(const char *name, size_t len)
{
    for (int row = 0; row < COLLECTIVES; row++)
        if (strlen(collectives[row].name) == len && strncmp(collectives[row].name, name, len) == 0)
            return row;
    return -1;
}

unsigned collectives_all(void)
{
    return (1u << COLLECTIVES) - 1;
}
