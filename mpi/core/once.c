/* SPDX-License-Identifier: Apache-2.0 */
#include "once.h"

#include "placement.h"
#include "runtime.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME_LEN 96

static atomic_int *shared;      /* of all ranks of a host */
static atomic_int own;          /* where there is none */

/* Makes the shared memory, on the first rank of a host. Returns what open does. */
static int make(const char name[NAME_LEN])
{
    int file = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);

    if (file >= 0 && ftruncate(file, sizeof *shared) != 0) {
        close(file);
        shm_unlink(name);
        file = -1;
    }
    return file;
}

/* Names the memory after rank 0's process and clock, and the first rank on the host. */
static void agree_on_name(MPI_Comm world, int first, char name[NAME_LEN])
{
    struct timespec now;
    struct {
        int64_t process, seconds, nanoseconds;
    } origin;

    clock_gettime(CLOCK_REALTIME, &now);
    origin.process = getpid();
    origin.seconds = now.tv_sec;
    origin.nanoseconds = now.tv_nsec;
    runtime_bcast(world, &origin, sizeof origin, 0);
    snprintf(name, NAME_LEN, "/tributary-%" PRId64 "-%" PRId64 "%09" PRId64 "-%d", origin.process, origin.seconds,
             origin.nanoseconds, first);
}

static void map(int file)
{
    if (file < 0)
        return;
    void *memory = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    shared = memory != MAP_FAILED ? memory : NULL;
    close(file);
}

void once_open(MPI_Comm world)
{
    char name[NAME_LEN];
    int rank = runtime_rank(world), first = placement_leader(rank), file = -1;

    agree_on_name(world, first, name);
    if (rank == first)
        file = make(name);
    runtime_barrier(world);
    if (rank != first)
        file = shm_open(name, O_RDWR, 0);
    map(file);
    runtime_barrier(world);
    if (rank == first)
        shm_unlink(name); /* nothing is left behind, however the program ends */
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
