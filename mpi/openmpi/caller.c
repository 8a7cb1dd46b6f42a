/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "caller.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>

static uintptr_t find_end(const void *function)
{
    const ElfW(Sym) *symbol = NULL;
    Dl_info info;

    if (dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) == 0 || symbol == NULL || symbol->st_size == 0)
        return UINTPTR_MAX;
    return (uintptr_t)function + symbol->st_size;
}

bool caller_is_mpi(struct entry *entry, const void *caller)
{
    uintptr_t begin = (uintptr_t)entry->function, end = atomic_load_explicit(&entry->end, memory_order_relaxed);
    struct dl_find_object ours, theirs;

    if (end == 0) {
        end = find_end(entry->function);
        atomic_store_explicit(&entry->end, end, memory_order_relaxed);
    }
    if (end == UINTPTR_MAX || ((uintptr_t)caller >= begin && (uintptr_t)caller <= end))
        return false;
    /* Others hand calls of programs on: OpenSHMEM's, from a library of its own. */
    return _dl_find_object((void *)(uintptr_t)caller, &theirs) == 0 &&
           _dl_find_object((void *)(uintptr_t)entry->function, &ours) == 0 && theirs.dlfo_link_map == ours.dlfo_link_map;
}
