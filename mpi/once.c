/* SPDX-License-Identifier: Apache-2.0 */
#include "once.h"

#include "placement.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME_LEN 64

static atomic_int *shared;      /* of all ranks of a host */
static atomic_int own;          /* where there is none */

/* Makes the shared memory, on the first rank of a host. Returns 0 or -1, as open does. */
static int make(char name[NAME_LEN])
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(name, NAME_LEN, "/tributary-%ld-%ld%09ld", (long)getpid(), (long)now.tv_sec, now.tv_nsec);
    int file = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
    if (file >= 0 && ftruncate(file, sizeof *shared) != 0) {
        close(file);
        shm_unlink(name);
        file = -1;
    }
    if (file < 0)
        name[0] = '\0';
    return file;
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
    MPI_Comm host;
    char name[NAME_LEN] = "";
    int rank, file = -1;

    PMPI_Comm_rank(world, &rank);
    PMPI_Comm_split(world, placement_leader(rank), rank, &host);
    PMPI_Comm_rank(host, &rank);
    if (rank == 0)
        file = make(name);
    PMPI_Bcast(name, NAME_LEN, MPI_CHAR, 0, host);
    if (rank != 0 && name[0] != '\0')
        file = shm_open(name, O_RDWR, 0);
    map(file);
    PMPI_Barrier(host);
    if (rank == 0 && name[0] != '\0')
        shm_unlink(name); /* nothing is left behind, however the program ends */
    PMPI_Comm_free(&host);
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
