/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of the kinds that options -M and -H name.
 */
#ifndef COLL_TEST_MEMORY_H
#define COLL_TEST_MEMORY_H

#include <stddef.h>

#include "api/sharp.h"

enum host_kind {
    HOST_MALLOC,
    HOST_HUGETLB, /* pages that the administrator has set apart */
    HOST_HUGETHP, /* pages that the kernel makes large if it can; what is shorter than one is as
                   * HOST_MALLOC */
};

struct memory {
    enum sharp_data_memory_type mem_type;
    enum host_kind kind;
    unsigned char *start;
    size_t len;
    size_t mapped_len; /* of HOST_HUGETLB */
};

/* Takes memory; ends all ranks with the reason if there is none. */
struct memory memory_take(enum sharp_data_memory_type mem_type, enum host_kind kind, size_t len);
void memory_give_back(struct memory *memory);
void memory_write(const struct memory *memory, size_t at, const void *from, size_t len);
void memory_read(const struct memory *memory, size_t at, void *to, size_t len);

#endif
