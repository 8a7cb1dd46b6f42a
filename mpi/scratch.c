/* SPDX-License-Identifier: Apache-2.0 */
#include "scratch.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>

/* The header in front of each buffer. */
struct header {
    alignas(max_align_t) size_t capacity;
};

static _Atomic(struct header *) spare;

void *scratch_take(size_t bytes)
{
    struct header *header = atomic_exchange(&spare, NULL);

    if (header != NULL && header->capacity >= bytes)
        return header + 1;
    free(header);
    header = malloc(sizeof *header + bytes);
    if (header == NULL)
        return NULL;
    header->capacity = bytes;
    return header + 1;
}

void scratch_give_back(void *buffer)
{
    if (buffer == NULL)
        return;
    struct header *header = (struct header *)buffer - 1;
    if (header->capacity <= SCRATCH_KEPT_BYTES)
        header = atomic_exchange(&spare, header);
    free(header);
}
