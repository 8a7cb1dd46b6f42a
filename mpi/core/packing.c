/* SPDX-License-Identifier: Apache-2.0 */
#include "packing.h"

#include "job.h"
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

bool packing_is_needless(MPI_Datatype datatype)
{
    size_t bytes, distance;

    runtime_extent(datatype, &bytes, &distance);
    return bytes == distance && runtime_is_predefined(datatype);
}

void packing_open(struct packing *packing, void *vector, size_t count, MPI_Datatype datatype, struct pair_layout pair,
                  size_t bytes)
{
    *packing = (struct packing){malloc(bytes), vector, count, datatype, pair};
    if (packing->memory == NULL)
        job_end("there is no memory for %zu bytes of a vector whose elements do not lie one after the other", bytes);
}

static void copy_pairs(const struct pair_layout *pair, size_t count, const char *from, char *to, bool pads)
{
    size_t from_step = pads ? pair->width : pair->distance, to_step = pads ? pair->distance : pair->width;
    size_t from_index = pads ? pair->value : pair->index, to_index = pads ? pair->index : pair->value;
    size_t index = pair->width - pair->value;

    for (size_t i = 0; i < count; i++, from += from_step, to += to_step) {
        memcpy(to, from, pair->value);
        memcpy(to + to_index, from + from_index, index);
    }
}

void packing_take(struct packing *packing, size_t first, size_t count, size_t at)
{
    size_t bytes, distance;

    runtime_extent(packing->datatype, &bytes, &distance);
    const char *from = (const char *)packing->vector + first * distance;
    if (packing->pair.width != 0)
        copy_pairs(&packing->pair, count, from, (char *)packing->memory + at * packing->pair.width, false);
    else
        runtime_pack(from, count, packing->datatype, (char *)packing->memory + at * bytes);
}

void packing_give_back(const struct packing *packing)
{
    if (packing->pair.width != 0)
        copy_pairs(&packing->pair, packing->count, packing->memory, packing->vector, true);
    else
        runtime_unpack(packing->memory, packing->count, packing->datatype, packing->vector);
}

void packing_close(struct packing *packing)
{
    free(packing->memory);
    *packing = (struct packing){0};
}
