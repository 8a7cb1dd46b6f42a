/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher.h"

#include <stddef.h>
#include <stdlib.h>

/* Returns -1 unless the variable is a number. */
static long number(const char *name)
{
    const char *text = getenv(name);
    char *end;

    if (text == NULL || text[0] < '0' || text[0] > '9')
        return -1;
    long value = strtol(text, &end, 10);
    return *end == '\0' ? value : -1;
}

static long own_rank(void)
{
    static const char *const NAMES[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};

    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (getenv(NAMES[i]) != NULL)
            return number(NAMES[i]);
    return 0;
}

/* Finds the application of this rank in Open MPI's list of their sizes ("2 4"), in which ranks are
 * numbered one application after the other. Returns its number from 1, or 0, and its first rank. */
static int find_own(long rank, long *first)
{
    const char *sizes = getenv("OMPI_APP_CTX_NUM_PROCS");
    char *rest;

    *first = 0;
    for (int at = 1; sizes != NULL; at++, sizes = rest) {
        long size = strtol(sizes, &rest, 10);
        if (rest == sizes || size <= 0)
            break;
        if (rank < *first + size)
            return at;
        *first += size;
    }
    *first = 0;
    return 0;
}

struct applications launcher_applications(void)
{
    long all = number("OMPI_NUM_APP_CTX"), first;

    if (all < 2)
        return (struct applications){1, 1};
    return (struct applications){find_own(own_rank(), &first), (int)all};
}

bool launcher_is_first_rank(void)
{
    long rank = own_rank(), first = 0;

    if (launcher_applications().all > 1)
        find_own(rank, &first);
    return rank == first;
}
