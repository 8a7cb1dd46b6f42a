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

/* This one exists since MPI 5, and may be called at any time, too. */
#define ASK_ABI "PMPI_Abi_get_version"

#define OPEN_MPI "Open MPI "

/* An ABI that an MPI has besides the standard's. The MPI's own description tells which one, and the
 * end of its library's name must agree: Open MPI once had another ABI, whose name was MPICH's. */
static const struct abi {
    const char *begins, *soname_end, *name;
} ABIS[] = {
    {OPEN_MPI, ".so.40", "openmpi"},
    {"MPICH Version", ".so.12", "mpich"},
    {"Intel(R) MPI Library", ".so.12", "mpich"},
};

static char folder[PATH_MAX]; /* where this library lies, and the others beside it */
static void *mpi; /* for dlsym */
static front_entry targets[FRONT_CALLS_MAX], mpi_entries[FRONT_CALLS_MAX];
static void (*count)(unsigned index);
static void (*tell_fortran)(void);
static void (*constructed)(int result, int newcomm);
static bool is_open_mpi;
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

void *front_mpi_function(const char *name)
{
    return dlsym(mpi, name);
}

/* The MPI's function, or the one that stands in for it; NULL if there is neither. */
static void *find_for_library(const char *name)
{
    void *found = front_mpi_function(name);

    for (unsigned index = 0; found == NULL && index < front_calls; index++)
        if (strcmp(name + 1, front_table[index].name) == 0)
            found = (void *)front_table[index].narrow;
    return found;
}

/* Reads the first line of what the MPI says about itself. */
static void read_version(char version[VERSION_LEN])
{
    int length = 0;
    int (*ask)(char *, int *) = (int (*)(char *, int *))front_mpi_function(ASK_VERSION);

    memset(version, 0, VERSION_LEN);
    ask(version, &length);
    version[strcspn(version, ",\n")] = '\0';
    for (char *c = version; *c != '\0'; c++)
        *c = *c == '\t' ? ' ' : *c;
}

/* The version of the standard's ABI that the MPI speaks; 0 or less if it speaks one of its own. */
static int standard_abi(void)
{
    int (*ask)(int *, int *) = (int (*)(int *, int *))front_mpi_function(ASK_ABI);
    int major = 0, minor = 0;

    return ask != NULL && ask(&major, &minor) == 0 ? major : 0;
}

/* The name under which the MPI's library wants to be linked; "" if it has none, as a program that
 * the MPI is linked into. */
static const char *soname_of_mpi(void)
{
    Dl_info object;
    struct link_map *map = NULL;
    const char *strings = NULL;
    ElfW(Xword) at = 0;

    if (dladdr1(front_mpi_function(ASK_VERSION), &object, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL)
        return "";
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_STRTAB)
            strings = (const char *)entry->d_un.d_ptr;
        else if (entry->d_tag == DT_SONAME)
            at = entry->d_un.d_val;
    }
    return strings != NULL && at != 0 ? strings + at : "";
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), wanted = strlen(end);

    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

/* The middle of the name of the library that fits the MPI; NULL, and why, if there is none. */
static const char *abi_of_mpi(const char *version, char *why, size_t length)
{
    const char *soname = soname_of_mpi();
    int standard = standard_abi();

    if (standard == 1)
        return "abi";
    if (standard > 1) {
        snprintf(why, length, "its MPI is \"%.200s\" with version %d of MPI's standard ABI, and Tributary knows version 1", version,
                 standard);
        return NULL;
    }
    for (size_t i = 0; i < sizeof ABIS / sizeof *ABIS; i++) {
        if (strncmp(version, ABIS[i].begins, strlen(ABIS[i].begins)) != 0)
            continue;
        if (soname[0] == '\0' || ends_with(soname, ABIS[i].soname_end))
            return ABIS[i].name;
        snprintf(why, length, "its MPI is \"%.200s\" in a library named %.200s, and Tributary knows that MPI as one with the ABI of "
                 "lib*%s", version, soname, ABIS[i].soname_end);
        return NULL;
    }
    snprintf(why, length, "its MPI is \"%.200s\", and Tributary knows Open MPI, MPICH, Intel MPI, and every MPI with MPI's standard "
             "ABI", version);
    return NULL;
}

static const char *how_to_build(const char *abi)
{
    return strcmp(abi, "openmpi") == 0 ? "make -C mpi MPICC=mpicc.openmpi"
           : strcmp(abi, "mpich") == 0 ? "make -C mpi MPICC=mpicc.mpich"
                                       : "make -C mpi";
}

/* Whether the library at path is of our version, for this ABI, and has all that it needs of the
 * MPI; else writes why not. */
static bool fits(void *library, const char *abi, const char *path, char *why, size_t length)
{
    const char *mark = dlsym(library, "trib_mpi_mark"), *own = dlsym(library, "trib_mpi_abi"), *missing;
    void *linked = dlsym(library, "PMPI_Init"); /* that of MPICH is linked with no MPI */
    const char *(*bind)(void *(*)(const char *)) = (const char *(*)(void *(*)(const char *)))dlsym(library, "trib_mpi_bind");

    if (mark == NULL || strcmp(mark, COUNTED_MARK) != 0 || own == NULL || bind == NULL) {
        snprintf(why, length, "%s and the libtrib_mpi.so beside it are of two versions; install both again", path);
        return false;
    }
    if (strcmp(own, abi) != 0 || (linked != NULL && linked != front_mpi_function("PMPI_Init"))) {
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

    const char *abi = abi_of_mpi(version, why, length);
    if (abi == NULL)
        return NULL;
    snprintf(path, sizeof path, "%s/libtrib_mpi_%s.so", folder, abi);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        snprintf(why, length, "its MPI is \"%.200s\", which needs %s: %s. To build it: %s", version, path, dlerror(), how_to_build(abi));
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

/* Sets who carries out the calls: the library, if there is one, or the MPI. */
static void set_targets(void *library)
{
    char name[96];

    for (unsigned index = 0; index < front_calls; index++) {
        snprintf(name, sizeof name, "P%s", front_table[index].name);
        mpi_entries[index] = (front_entry)find_for_library(name);
        snprintf(name, sizeof name, "trib_%s", front_table[index].name);
        void *shim = library != NULL ? dlsym(library, name) : NULL;
        targets[index] = shim != NULL ? (front_entry)shim : mpi_entries[index];
    }
}

static void choose(const void *caller)
{
    char why[2 * PATH_MAX], version[VERSION_LEN];
    void *library = NULL;

    if (!find_object(ASK_VERSION, caller, &mpi)) {
        notice("a program called MPI, but no library of an MPI is loaded (is it linked statically?)");
        abort();
    }
    read_version(version);
    is_open_mpi = strncmp(version, OPEN_MPI, strlen(OPEN_MPI)) == 0;
    if (!is_one_of_several(why, sizeof why))
        library = load_library(version, why, sizeof why);
    if (library == NULL)
        step_aside(why);
    set_targets(library);
    if (library != NULL) {
        count = (void (*)(unsigned))dlsym(library, "trib_mpi_count");
        tell_fortran = (void (*)(void))dlsym(library, "trib_mpi_tell_fortran");
        constructed = (void (*)(int, int))dlsym(library, "trib_mpi_constructed");
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

int front_fail(word comm, int error)
{
    ((int (*)(word, int))front_mpi_function("PMPI_Comm_call_errhandler"))(comm, error);
    return error;
}

/* MPI_ERR_OTHER is 16 in Open MPI and in the standard's ABI. */
int front_absent(word comm)
{
    return front_fail(comm, is_open_mpi || standard_abi() > 0 ? 16 : 15);
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

front_entry front_mpi_entry(unsigned index)
{
    return present(mpi_entries[index], index);
}

front_entry front_target(unsigned index, const void *caller)
{
    if (!atomic_load_explicit(&chosen, memory_order_acquire)) {
        front_choose(caller);
        saw_init = true;
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
    if (tell_fortran != NULL)
        tell_fortran();
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
