/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "which_mpi.h"

#include "front.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

/* This one exists since MPI 5, and may be called at any time, too. */
#define ASK_ABI "PMPI_Abi_get_version"

/* An ABI that an MPI has besides the standard's. The MPI's own description tells which one, and the
 * end of its library's name must agree: Open MPI once had another ABI, whose name was MPICH's. */
static const struct abi {
    const char *begins, *soname_end, *name;
} ABIS[] = {
    {WHICH_MPI_OPEN_MPI, ".so.40", "openmpi"},
    {"MPICH Version", ".so.12", "mpich"},
    {"Intel(R) MPI Library", ".so.12", "mpich"},
};

void which_mpi_says(char version[WHICH_MPI_LEN])
{
    int length = 0;
    int (*ask)(char *, int *) = (int (*)(char *, int *))front_mpi_function(WHICH_MPI_ASK);

    memset(version, 0, WHICH_MPI_LEN);
    ask(version, &length);
    version[strcspn(version, ",\n")] = '\0';
    for (char *c = version; *c != '\0'; c++)
        *c = *c == '\t' ? ' ' : *c;
}

int which_mpi_standard_abi(void)
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

    if (dladdr1(front_mpi_function(WHICH_MPI_ASK), &object, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL)
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

const char *which_mpi_abi(const char *version, char *why, size_t length)
{
    const char *soname = soname_of_mpi();
    int standard = which_mpi_standard_abi();

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

const char *which_mpi_how_to_build(const char *abi)
{
    return strcmp(abi, "openmpi") == 0 ? "make -C mpi MPICC=mpicc.openmpi"
           : strcmp(abi, "mpich") == 0 ? "make -C mpi MPICC=mpicc.mpich"
                                       : "make -C mpi";
}
