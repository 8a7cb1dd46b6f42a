/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cuda.h"
#include "fail.h"

/* The size of large pages on x86-64 and most other machines. */
static const size_t HUGE_PAGE = 2u << 20;

static size_t rounded(size_t len, size_t unit)
{
    return (len + unit - 1) / unit * unit;
}

static void *take_host(struct memory *memory)
{
    void *start = NULL;

    switch (memory->kind) {
    case HOST_HUGETLB:
        memory->mapped_len = rounded(memory->len, HUGE_PAGE);
        start = mmap(NULL, memory->mapped_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
        return start == MAP_FAILED ? NULL : start;
    case HOST_HUGETHP:
        if (memory->len < HUGE_PAGE)
            return malloc(memory->len);
        start = aligned_alloc(HUGE_PAGE, rounded(memory->len, HUGE_PAGE));
        /* This is only advice: a kernel without large pages is no failure. */
        if (start != NULL)
            madvise(start, rounded(memory->len, HUGE_PAGE), MADV_HUGEPAGE);
        return start;
    default:
        return malloc(memory->len);
    }
}

struct memory memory_take(enum sharp_data_memory_type mem_type, enum host_kind kind, size_t len)
{
    struct memory memory = {.mem_type = mem_type, .kind = kind, .len = len ? len : 1};

    memory.start = mem_type == SHARP_MEM_TYPE_CUDA ? cuda_take(memory.len) : take_host(&memory);
    if (memory.start == NULL) {
        if (mem_type == SHARP_MEM_TYPE_CUDA)
            complain("no %zu bytes of GPU memory", memory.len);
        else if (kind == HOST_HUGETLB)
            complain("-H hugetlb: no %zu bytes of huge pages; /proc/sys/vm/nr_hugepages sets them apart", memory.mapped_len);
        else
            complain("no %zu bytes of memory", memory.len);
        end_all(EXIT_ENVIRONMENT);
    }
    return memory;
}

void memory_give_back(struct memory *memory)
{
    if (memory->mem_type == SHARP_MEM_TYPE_CUDA)
        cuda_give_back(memory->start);
    else if (memory->kind == HOST_HUGETLB)
        munmap(memory->start, memory->mapped_len);
    else
        free(memory->start);
    memory->start = NULL;
}

static void copied(int error)
{
    if (error != 0) {
        complain("a copy between host and GPU failed with %d", error);
        end_all(EXIT_ENVIRONMENT);
    }
}

void memory_write(const struct memory *memory, size_t at, const void *from, size_t len)
{
    if (memory->mem_type == SHARP_MEM_TYPE_CUDA)
        copied(cuda_write(memory->start + at, from, len));
    else
        memcpy(memory->start + at, from, len);
}

void memory_read(const struct memory *memory, size_t at, void *to, size_t len)
{
    if (memory->mem_type == SHARP_MEM_TYPE_CUDA)
        copied(cuda_read(to, memory->start + at, len));
    else
        memcpy(to, memory->start + at, len);
}
