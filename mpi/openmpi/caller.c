/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "caller.h"

#include <dlfcn.h>
#include <link.h>
#include <mpi.h>
#include <pthread.h>
#include <stddef.h>

static uintptr_t find_end(const void *function)
{
    const ElfW(Sym) *symbol = NULL;
    Dl_info info;

    if (dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) == 0 || symbol == NULL || symbol->st_size == 0)
        return UINTPTR_MAX;
    return (uintptr_t)function + symbol->st_size;
}

/* Where the MPI's library lies. Looking a caller up would take as long as a short message. */
static struct {
    pthread_once_t once;
    uintptr_t begin, end;
} mpi = {.once = PTHREAD_ONCE_INIT};

static int note_if_mpi(struct dl_phdr_info *library, size_t size, void *unused)
{
    uintptr_t begin = UINTPTR_MAX, end = 0, function = (uintptr_t)PMPI_Initialized;

    (void)size, (void)unused;
    for (int i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &library->dlpi_phdr[i];
        uintptr_t from = library->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD)
            continue;
        begin = from < begin ? from : begin;
        end = from + part->p_memsz > end ? from + part->p_memsz : end;
    }
    if (function < begin || function >= end)
        return 0;
    mpi.begin = begin;
    mpi.end = end;
    return 1;
}

static void find_mpi(void)
{
    (void)dl_iterate_phdr(note_if_mpi, NULL);
}

bool caller_is_mpi(struct entry *entry, const void *caller)
{
    uintptr_t begin = (uintptr_t)entry->function, end = atomic_load_explicit(&entry->end, memory_order_relaxed);

    if (end == 0) {
        end = find_end(entry->function);
        atomic_store_explicit(&entry->end, end, memory_order_relaxed);
    }
    if (end == UINTPTR_MAX || ((uintptr_t)caller >= begin && (uintptr_t)caller <= end))
        return false;
    /* Others hand calls of programs on: OpenSHMEM's, from a library of its own. */
    pthread_once(&mpi.once, find_mpi);
    return (uintptr_t)caller >= mpi.begin && (uintptr_t)caller < mpi.end;
}
