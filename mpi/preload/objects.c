/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "objects.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

const void *objects_base(const void *address)
{
    Dl_info object;

    return dladdr(address, &object) != 0 ? object.dli_fbase : NULL;
}

void *objects_handle(const void *address)
{
    Dl_info object;

    if (dladdr(address, &object) == 0 || object.dli_fname == NULL)
        return RTLD_DEFAULT;
    void *handle = dlopen(object.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return handle != NULL ? handle : RTLD_DEFAULT;
}

/* The function with this name that a lookup in handle finds, unless it is one of ours. */
static void *find_in(void *handle, const char *name)
{
    void *found = dlsym(handle, name);

    return found != NULL && objects_base(found) != objects_base((const void *)objects_find) ? found : NULL;
}

/* Names of objects one behind the other, each with its end; text is NULL while they are
 * measured. */
struct names {
    char *text;
    size_t room, used;
};

static int note_name(struct dl_phdr_info *info, size_t size, void *names_)
{
    struct names *names = names_;
    size_t length = strlen(info->dlpi_name) + 1;

    (void)size;
    if (names->text != NULL && names->used + length > names->room)
        return 1; /* one was loaded meanwhile */
    if (names->text != NULL)
        memcpy(names->text + names->used, info->dlpi_name, length);
    names->used += length;
    return 0;
}

/* Looks into every object. The names come first, because the loader holds a lock while it tells
 * them, under which another thread's dlopen() would wait for ours and ours for it. */
static void *find_anywhere(const char *name)
{
    struct names names = {0};
    void *found = NULL;

    dl_iterate_phdr(note_name, &names);
    names = (struct names){.text = malloc(names.used), .room = names.used};
    if (names.text == NULL)
        return NULL;
    dl_iterate_phdr(note_name, &names);
    for (size_t at = 0; at < names.used && found == NULL; at += strlen(names.text + at) + 1) {
        void *handle = dlopen(names.text + at, RTLD_LAZY | RTLD_NOLOAD);
        if (handle == NULL)
            continue;
        found = find_in(handle, name);
        dlclose(handle);
    }
    free(names.text);
    return found;
}

void *objects_find_near(const char *name, const void *caller)
{
    void *object = objects_handle(caller);
    void *found = object != RTLD_DEFAULT ? find_in(object, name) : NULL;

    return found != NULL ? found : dlsym(RTLD_NEXT, name);
}

void *objects_find(const char *name, const void *caller)
{
    void *found = objects_find_near(name, caller);

    return found != NULL ? found : find_anywhere(name);
}
