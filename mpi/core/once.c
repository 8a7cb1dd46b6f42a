/* SPDX-License-Identifier: Apache-2.0 */
#include "once.h"

#include "placement.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME_LEN 96

static char name[NAME_LEN];
static atomic_int *shared;      /* of all ranks of a host */
static atomic_int own;          /* where there is none */

void once_name(uint64_t program[2])
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    program[0] = (uint64_t)getpid();
    program[1] = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Hosts that share memory and have names of their own do not share this. */
static uint64_t hash_of_host(void)
{
    char host[PLACEMENT_NAME_LEN];
    uint64_t hash = 0;

    placement_read_host(host);
    for (int i = 0; i < PLACEMENT_NAME_LEN; i++)
        hash = hash * 31 + (unsigned char)host[i];
    return hash;
}

/* Whether the file is this user's own, and not one that another has put there. */
static bool is_mine(int file)
{
    struct stat found;

    return fstat(file, &found) == 0 && found.st_uid == geteuid();
}

static void map(int file)
{
    void *memory = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    shared = memory != MAP_FAILED ? memory : NULL;
}

/* The first rank of a host that comes makes the file, and each gives it its length, so that none
 * has to wait for another. */
void once_open(const uint64_t program[2])
{
    int file;

    snprintf(name, NAME_LEN, "/tributary-%" PRIu64 "-%" PRIu64 "-%016" PRIx64, program[0], program[1], hash_of_host());
    file = shm_open(name, O_CREAT | O_RDWR, 0600);
    if (file < 0)
        return;
    if (is_mine(file) && ftruncate(file, sizeof *shared) == 0)
        map(file);
    close(file);
}

/* Nothing is left behind, however the program ends. */
void once_settle(void)
{
    shm_unlink(name);
}

bool once_is_first(void)
{
    return atomic_exchange(shared != NULL ? shared : &own, 1) == 0;
}

void once_close(void)
{
    if (shared != NULL)
        munmap(shared, sizeof *shared);
    shared = NULL;
    own = 0;
}
