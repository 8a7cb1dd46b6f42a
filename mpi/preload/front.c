/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "front.h"

#include "aside.h"
#include "counted.h"
#include "launcher.h"
#include "notice.h"
#include "objects.h"
#include "which_mpi.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INITIALISED_PAST "MPI was initialised past libtrib_mpi.so: by a tool that is preloaded before it or linked into the program " \
    "and calls PMPI_Init, or by a program that looks MPI_Init up in its MPI's library. Let LD_PRELOAD name libtrib_mpi.so before tools"
#define INITIALISED_IN_FORTRAN "it initialised MPI in Fortran, and this MPI shows none of Fortran's calls to a preloaded library"

static char folder[PATH_MAX]; /* where this library lies, and the others beside it */
static void *mpi; /* for dlsym */
static const void *mpi_base; /* where it is loaded */
static front_entry targets[FRONT_CALLS_MAX];
static front_entry next_entries[FRONT_CALLS_MAX]; /* what follows this library: a tool's function, or the MPI's */
static void (*count)(unsigned index);
static void (*constructed)(int result, int newcomm);
static bool is_open_mpi, has_library;
static char why_aside[2 * PATH_MAX]; /* why there is no library */
static atomic_bool chosen, saw_init, is_unsaid;

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

/* Says why no library of ours has the calls, once. MPI is initialised. */
static void say_aside(void)
{
    if (atomic_exchange(&is_unsaid, false))
        aside_say(why_aside);
}

/* Finds the MPI by its function with this name, and has what else it has looked up there: a tool
 * that stands before the MPI may have some of its names. */
static bool find_mpi(const char *name, const void *caller)
{
    void *function = objects_find(name, caller);

    if (function != NULL) {
        mpi = objects_handle(function);
        mpi_base = objects_base(function);
    }
    return function != NULL;
}

void *front_mpi_function(const char *name)
{
    return dlsym(mpi, name);
}

/* The MPI's function, or the one that stands in for it; NULL if there is neither. */
static void *find_own(const char *name)
{
    void *found = front_mpi_function(name);

    for (unsigned index = 0; found == NULL && index < front_calls; index++)
        if (strcmp(name + 1, front_table[index].name) == 0)
            found = (void *)front_table[index].narrow;
    return found;
}

/* By this name another copy of this library is known. */
__attribute__((visibility("default"))) const char trib_mpi_front[] = COUNTED_MARK;

/* Whether a function is a tool's: neither of this MPI, nor of another that is linked into the
 * program, nor of another copy of this library that is preloaded, too. */
static bool is_of_a_tool(const void *function)
{
    const void *base = objects_base(function);

    if (base == mpi_base)
        return false;
    void *handle = objects_handle(function);
    void *asked = dlsym(handle, WHICH_MPI_ASK), *copy = dlsym(handle, "trib_mpi_front");
    if (handle != RTLD_DEFAULT)
        dlclose(handle);
    return (asked == NULL || objects_base(asked) != base) && (copy == NULL || objects_base(copy) != base);
}

/* What follows this library under a name in MPI_: the function of a tool that stands behind it,
 * which would be called without this library, too, and calls the MPI's; else the MPI's own. */
static void *find_next(const char *name)
{
    char own[96];

    snprintf(own, sizeof own, "P%s", name);
    void *found = front_mpi_function(own) != NULL ? dlsym(RTLD_NEXT, name) : NULL;
    return found != NULL && is_of_a_tool(found) ? found : find_own(own);
}

/* The MPI's function with a name in PMPI_, and what follows this library under one in MPI_. */
static void *find_for_library(const char *name)
{
    return name[0] == 'P' ? find_own(name) : find_next(name);
}

/* Whether the library at path is of our version, for this ABI, and has all that it needs of the
 * MPI; else writes why not. */
static bool fits(void *library, const char *abi, const char *path, char *why, size_t length)
{
    const char *mark = dlsym(library, "trib_mpi_mark"), *own = dlsym(library, "trib_mpi_abi"), *missing;
    void *linked = dlsym(library, WHICH_MPI_ASK); /* that of MPICH is linked with no MPI */
    const char *(*bind)(void *(*)(const char *)) = (const char *(*)(void *(*)(const char *)))dlsym(library, "trib_mpi_bind");

    if (mark == NULL || strcmp(mark, COUNTED_MARK) != 0 || own == NULL || bind == NULL) {
        snprintf(why, length, "%s and the libtrib_mpi.so beside it are of two versions; install both again", path);
        return false;
    }
    if (strcmp(own, abi) != 0 || (linked != NULL && linked != front_mpi_function(WHICH_MPI_ASK))) {
        snprintf(why, length, "%s was built for another library of the MPI than this program's; build it with that one's mpicc: "
                 "make -C mpi MPICC=...", path);
        return false;
    }
    missing = bind(find_for_library);
    if (missing != NULL)
        snprintf(why, length, "its MPI has no %s", missing);
    return missing == NULL;
}

/* Loads the library that fits the program's MPI; returns NULL and writes why if there is none. */
static void *load_library(const char *version, char *why, size_t length)
{
    char path[PATH_MAX + 64];

    const char *abi = which_mpi_abi(version, why, length);
    if (abi == NULL)
        return NULL;
    snprintf(path, sizeof path, "%s/libtrib_mpi_%s.so", folder, abi);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        snprintf(why, length, "its MPI is \"%.200s\", which needs %s: %s. To build it: %s", version, path, dlerror(), which_mpi_how_to_build(abi));
        return NULL;
    }
    if (fits(library, abi, path, why, length))
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

/* What stands for MPI_Init and MPI_Init_thread where no library does: only when MPI is initialised
 * is it known whether the component has the collectives. */
static int init_aside(word argc, word argv)
{
    int result = ((int (*)(word, word))next_entries[FRONT_MPI_Init])(argc, argv);

    say_aside();
    return result;
}

static int init_thread_aside(word argc, word argv, word required, word provided)
{
    int result = ((int (*)(word, word, word, word))next_entries[FRONT_MPI_Init_thread])(argc, argv, required, provided);

    say_aside();
    return result;
}

/* Leaves every call to what follows this library. */
static void step_aside(void)
{
    memcpy(targets, next_entries, sizeof targets);
    targets[FRONT_MPI_Init] = (front_entry)init_aside;
    targets[FRONT_MPI_Init_thread] = (front_entry)init_thread_aside;
    is_unsaid = true;
}

static void find_entries(void)
{
    for (unsigned index = 0; index < front_calls; index++)
        next_entries[index] = (front_entry)find_next(front_table[index].name);
}

/* The library has the calls that it has a shim for. */
static void set_targets(void *library)
{
    char name[96];

    for (unsigned index = 0; index < front_calls; index++) {
        snprintf(name, sizeof name, "trib_%s", front_table[index].name);
        void *shim = dlsym(library, name);
        targets[index] = shim != NULL ? (front_entry)shim : next_entries[index];
    }
    count = (void (*)(unsigned))dlsym(library, "trib_mpi_count");
    constructed = (void (*)(int, int))dlsym(library, "trib_mpi_constructed");
    has_library = true;
}

/* Leaves the calls to an MPI that cannot be asked which it is: one that is older than 3.0, or what
 * stands in for an MPI in programs of one rank. It may have no names in PMPI_. */
static void choose_unknown(const void *caller)
{
    if (!find_mpi("MPI_Init", caller)) {
        notice("a program called MPI, but no library of an MPI is loaded (is it linked statically?)");
        abort();
    }
    for (unsigned index = 0; index < front_calls; index++) {
        const char *name = front_table[index].name;
        void *found = objects_find_near(name, caller);
        next_entries[index] = (front_entry)(found != NULL || mpi == RTLD_DEFAULT ? found : front_mpi_function(name));
    }
    snprintf(why_aside, sizeof why_aside, "its MPI has no MPI_Get_library_version, which tells one MPI from another; Tributary needs "
             "an MPI of version 3.0 or newer");
    step_aside();
}

static void choose(const void *caller)
{
    char version[WHICH_MPI_LEN];
    void *library = NULL;

    if (!find_mpi(WHICH_MPI_ASK, caller)) {
        choose_unknown(caller);
        return;
    }
    which_mpi_says(version);
    is_open_mpi = strncmp(version, WHICH_MPI_OPEN_MPI, strlen(WHICH_MPI_OPEN_MPI)) == 0;
    find_entries();
    if (!is_one_of_several(why_aside, sizeof why_aside))
        library = load_library(version, why_aside, sizeof why_aside);
    if (library != NULL)
        set_targets(library);
    else
        step_aside();
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

int front_fail(word comm, int error)
{
    int (*call)(word, int) = (int (*)(word, int))front_mpi_function("PMPI_Comm_call_errhandler");

    if (call != NULL)
        call(comm, error);
    return error;
}

/* MPI_ERR_OTHER is 16 in Open MPI and in the standard's ABI. */
int front_absent(word comm)
{
    return front_fail(comm, is_open_mpi || which_mpi_standard_abi() > 0 ? 16 : 15);
}

/* A program that looks for a function before it calls it finds ours, and meets the error only when
 * it calls it. */
static front_entry present(front_entry entry, unsigned index)
{
    if (entry != NULL)
        return entry;
    notice("a program called %s, which its MPI does not have; it gets MPI_ERR_OTHER", front_table[index].name);
    return front_table[index].absent;
}

front_entry front_next_entry(unsigned index)
{
    return present(next_entries[index], index);
}

/* Looks at the first call that came here, if it initialises nothing. Sessions do not count as an
 * initialisation. */
static void say_if_initialised(void)
{
    int (*ask)(int *) = (int (*)(int *))front_mpi_function("PMPI_Initialized");
    int is_initialised = 0;

    if (ask == NULL || ask(&is_initialised) != 0 || !is_initialised)
        return;
    if (has_library)
        aside_say(INITIALISED_PAST);
    else
        say_aside();
}

front_entry front_target(unsigned index, const void *caller)
{
    if (!atomic_load_explicit(&chosen, memory_order_acquire)) {
        front_choose(caller);
        if (!atomic_exchange(&saw_init, true) && index != FRONT_MPI_Init && index != FRONT_MPI_Init_thread)
            say_if_initialised();
    }
    if (index < COUNTED_CALLS && count != NULL)
        count(index);
    return present(targets[index], index);
}

bool front_saw_init(void)
{
    return saw_init;
}

void front_tell_fortran(void)
{
    if (has_library)
        aside_say(is_open_mpi ? INITIALISED_IN_FORTRAN : INITIALISED_PAST);
    else
        say_aside();
}

bool front_is_open_mpi(void)
{
    return is_open_mpi;
}

bool front_takes_fortran(void)
{
    return constructed != NULL;
}

void front_constructed(int result, int newcomm)
{
    if (constructed != NULL)
        constructed(result, newcomm);
}
