/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>

#include "real.h"

/* Every library has this object: a program's own object of this name replaces it. */
const struct sharp_coll_config sharp_coll_default_config = {NULL, 128, -1, 0, {0, 0, 0}};

static void *library;

__attribute__((constructor)) static void load(void)
{
    const char *path = getenv("SHARP_REAL");
    library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library)
        abort();
}

__attribute__((destructor)) static void unload(void)
{
    dlclose(library);
}

void *real_symbol(const char *name)
{
    void *symbol = dlsym(library, name);
    if (!symbol)
        abort();
    return symbol;
}

int is(const char *mutant)
{
    const char *broken = getenv("SHARP_MUTANT");
    return broken && strcmp(broken, mutant) == 0;
}

#ifdef NEEDS_ANOTHER_LIBRARY
double cos(double);

double angle;

__attribute__((constructor)) static void turn(void)
{
    angle = cos(angle);
}
#endif
