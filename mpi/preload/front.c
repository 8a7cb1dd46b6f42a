/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "front.h"

#include "counted.h"
#include "launcher.h"
#include "notice.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* This function exists in every MPI since 3.0 and may be called before MPI_Init. */
#define ASK_VERSION "PMPI_Get_library_version"
/* This is more than MPI_MAX_LIBRARY_VERSION_STRING of any MPI. */
#define VERSION_LEN 16384

static const struct {
    /* How the MPI's own description begins, and the middle of the library's name. */
    const char *begins, *family;
} FAMILIES[] = {{"Open MPI ", "openmpi"}, {"MPICH Version", "mpich"}};

static char folder[PATH_MAX]; /* where this library lies, and the others beside it */
static front_entry targets[FRONT_CALLS_MAX];
static void (*count)(unsigned index);
static void (*tell_fortran)(void);
static atomic_bool chosen, saw_init;

/* Runs at load, because the program may have another working directory later. */
__attribute__((constructor)) static void find_folder(void)
{
    Dl_info own;
    char path[PATH_MAX];

    if (dladdr((const void *)front_choose, &own) == 0 || realpath(own.dli_fname, path) == NULL)
        return;
    *strrchr(path, '/') = '\0';
    memcpy(folder, path, sizeof folder);
}

/* Says why this library does nothing, unless the user has switched it off. */
static void step_aside(const char *why)
{
    const char *mode = getenv("TRIB_MPI");

    if (launcher_is_first_rank() && (mode == NULL || strcmp(mode, "off") != 0))
        notice("the collectives of this program stay with the MPI: %s", why);
}

/* A handle for dlsym on the object in which caller lies; RTLD_DEFAULT for the program itself. */
static void *object_of(const void *caller)
{
    Dl_info object;

    if (dladdr(caller, &object) == 0 || object.dli_fname == NULL)
        return RTLD_DEFAULT;
    void *handle = dlopen(object.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return handle != NULL ? handle : RTLD_DEFAULT;
}

struct search {
    const char *name;
    void *handle;
};

static int look_into(struct dl_phdr_info *info, size_t size, void *search_)
{
    struct search *search = search_;
    void *handle = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);

    (void)size;
    if (handle == NULL)
        return 0;
    if (dlsym(handle, search->name) != NULL) {
        search->handle = handle;
        return 1;
    }
    dlclose(handle);
    return 0;
}

/* The object that defines name. The search goes first through what the caller was linked with, then
 * through the program, then through everything that is loaded. */
static bool find_object(const char *name, const void *caller, void **object)
{
    struct search search = {.name = name};

    *object = object_of(caller);
    if (*object != RTLD_DEFAULT && dlsym(*object, name) != NULL)
        return true;
    *object = RTLD_DEFAULT;
    if (dlsym(RTLD_DEFAULT, name) != NULL)
        return true;
    dl_iterate_phdr(look_into, &search);
    *object = search.handle;
    return search.handle != NULL;
}

void *front_find(const char *name, const void *caller)
{
    void *object = object_of(caller);
    void *found = object != RTLD_DEFAULT ? dlsym(object, name) : NULL;

    return found != NULL ? found : dlsym(RTLD_NEXT, name);
}

/* Reads the first line of what the MPI says about itself. */
static void read_version(void *mpi, char version[VERSION_LEN])
{
    int length = 0;
    int (*ask)(char *, int *) = (int (*)(char *, int *))dlsym(mpi, ASK_VERSION);

    memset(version, 0, VERSION_LEN);
    ask(version, &length);
    version[strcspn(version, ",\n")] = '\0';
    for (char *c = version; *c != '\0'; c++)
        *c = *c == '\t' ? ' ' : *c;
}

static const char *family_of(const char *version)
{
    for (size_t i = 0; i < sizeof FAMILIES / sizeof *FAMILIES; i++)
        if (strncmp(version, FAMILIES[i].begins, strlen(FAMILIES[i].begins)) == 0)
            return FAMILIES[i].family;
    return NULL;
}

/* Loads the library that fits the program's MPI; returns NULL and writes why if there is none. */
static void *load_library(void *mpi, char *why, size_t length)
{
    char version[VERSION_LEN], path[PATH_MAX + 64];

    read_version(mpi, version);
    const char *family = family_of(version);
    if (family == NULL) {
        snprintf(why, length, "its MPI is \"%.200s\", and Tributary knows Open MPI and MPICH", version);
        return NULL;
    }
    snprintf(path, sizeof path, "%s/libtrib_mpi_%s.so", folder, family);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        snprintf(why, length, "its MPI is \"%.200s\", which needs %s: %s. To build it: make -C mpi MPICC=%s", version, path, dlerror(),
                 strcmp(family, "mpich") == 0 ? "mpicc.mpich" : "mpicc.openmpi");
        return NULL;
    }
    const char *mark = dlsym(library, "trib_mpi_mark");
    if (mark == NULL || strcmp(mark, COUNTED_MARK) != 0)
        snprintf(why, length, "%s and the libtrib_mpi.so beside it are of two versions; install both again", path);
    else if (dlsym(library, "PMPI_Init") != dlsym(mpi, "PMPI_Init"))
        snprintf(why, length, "%s was built for another library of the MPI than this program's; build it with that one's mpicc: "
                 "make -C mpi MPICC=...", path);
    else
        return library;
    dlclose(library);
    return NULL;
}

/* Whether the program consists of several applications, and nobody has said that all of them
 * preload this library; writes why that matters. */
static bool is_one_of_several(char *why, size_t length)
{
    const char *assertion = getenv("TRIB_MPI_APPS");
    struct applications applications = launcher_applications();

    if (applications.all == 1 || (assertion != NULL && strcmp(assertion, "all") == 0))
        return false;
    int written = applications.own > 0 ? snprintf(why, length, "it is application %d of %d", applications.own, applications.all)
                                       : snprintf(why, length, "it is one of %d applications", applications.all);
    snprintf(why + written, length - (size_t)written,
             ", and the launcher does not say whether all of them preload libtrib_mpi.so; if they do, and none initialises MPI in "
             "Fortran, set TRIB_MPI_APPS=all for all of them");
    return true;
}

static void choose(const void *caller)
{
    char why[2 * PATH_MAX], name[96];
    void *mpi, *library = NULL;

    if (!find_object(ASK_VERSION, caller, &mpi)) {
        notice("a program called MPI, but no library of an MPI is loaded (is it linked statically?)");
        abort();
    }
    if (!is_one_of_several(why, sizeof why))
        library = load_library(mpi, why, sizeof why);
    if (library == NULL)
        step_aside(why);
    for (unsigned index = 0; index < front_calls; index++) {
        void *target = NULL;
        if (library != NULL) {
            snprintf(name, sizeof name, "trib_%s", front_names[index]);
            target = dlsym(library, name);
        }
        if (target == NULL) {
            snprintf(name, sizeof name, "P%s", front_names[index]);
            target = dlsym(mpi, name);
        }
        targets[index] = (front_entry)target;
    }
    if (library != NULL) {
        count = (void (*)(unsigned))dlsym(library, "trib_mpi_count");
        tell_fortran = (void (*)(void))dlsym(library, "trib_mpi_tell_fortran");
    }
}

void front_choose(const void *caller)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&lock);
    if (!chosen) {
        choose(caller);
        chosen = true;
    }
    pthread_mutex_unlock(&lock);
}

front_entry front_target(unsigned index, const void *caller)
{
    if (!atomic_load_explicit(&chosen, memory_order_acquire)) {
        front_choose(caller);
        saw_init = true;
    }
    if (index < COUNTED_CALLS && count != NULL)
        count(index);
    if (targets[index] == NULL) {
        notice("a program called %s, which its MPI does not have", front_names[index]);
        abort();
    }
    return targets[index];
}

bool front_saw_init(void)
{
    return saw_init;
}

void front_tell_fortran(void)
{
    if (tell_fortran != NULL)
        tell_fortran();
}
