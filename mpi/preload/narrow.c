/* SPDX-License-Identifier: Apache-2.0 */
#include "narrow.h"

#include "notice.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>

/* MPI_ERR_COUNT of Open MPI and of MPICH. */
#define ERR_COUNT 2

static int ask(const char *name, word comm)
{
    int answer = 0;
    int (*function)(word, int *) = (int (*)(word, int *))front_mpi_function(name);

    function(comm, &answer);
    return answer;
}

void narrow_count(struct narrow *narrow, word count)
{
    if ((int64_t)count > INT_MAX)
        narrow->is_refused = true;
}

word narrow_array(struct narrow *narrow, word array)
{
    const int64_t *wide = (const int64_t *)array;
    bool inter = ask("PMPI_Comm_test_inter", narrow->comm) != 0;

    if (wide == NULL)
        return array;
    if (narrow->root != NULL && !inter && (int)*narrow->root != ask("PMPI_Comm_rank", narrow->comm))
        return array;
    int length = ask(inter ? "PMPI_Comm_remote_size" : "PMPI_Comm_size", narrow->comm);
    int *ints = malloc((size_t)length * sizeof *ints);
    narrow->arrays[narrow->used++] = ints;
    if (ints == NULL)
        narrow->is_refused = true;
    for (int i = 0; ints != NULL && i < length; i++) {
        narrow_count(narrow, (word)wide[i]);
        ints[i] = (int)wide[i];
    }
    return (word)ints;
}

word narrow_neighbours(struct narrow *narrow, word array)
{
    if (array != 0)
        narrow->is_refused = true;
    return array;
}

static void free_arrays(struct narrow *narrow)
{
    for (unsigned i = 0; i < narrow->used; i++)
        free(narrow->arrays[i]);
}

int narrow_refuse(struct narrow *narrow)
{
    notice("%s cannot be done: this MPI has no such function, and the one with ints for counts cannot stand in for it here (a number "
           "above %d, no memory, or numbers for neighbours)", narrow->name, INT_MAX);
    free_arrays(narrow);
    return ERR_COUNT;
}

void narrow_end(struct narrow *narrow)
{
    /* When the MPI has read them is not known here, so the few bytes stay with the process. */
    if (!narrow->lasts)
        free_arrays(narrow);
}
