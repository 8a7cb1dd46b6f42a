/* SPDX-License-Identifier: Apache-2.0 */
#include "narrow.h"

#include "notice.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>

/* MPI_ERR_COUNT of Open MPI, of MPICH and of the standard's ABI. */
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
    if ((int64_t)count > INT_MAX || (int64_t)count < INT_MIN)
        narrow->is_refused = true;
}

static int neighbours(word comm, enum whose whose)
{
    enum { CARTESIAN, GRAPH, DISTRIBUTED } kind;
    int topology = ask("PMPI_Topo_test", comm), sources = 0, destinations = 0, weighted;

    /* MPI_CART and MPI_GRAPH are 1 and 2 in Open MPI and 2 and 1 in MPICH. */
    kind = topology == 3 ? DISTRIBUTED : (topology == 1) == front_is_open_mpi() ? CARTESIAN : GRAPH;
    if (topology < 1 || topology > 3)
        return 0; /* the MPI is going to say that there is no topology */
    if (kind == CARTESIAN)
        return 2 * ask("PMPI_Cartdim_get", comm);
    if (kind == GRAPH) {
        ((int (*)(word, int, int *))front_mpi_function("PMPI_Graph_neighbors_count"))(comm, ask("PMPI_Comm_rank", comm), &sources);
        return sources;
    }
    ((int (*)(word, int *, int *, int *))front_mpi_function("PMPI_Dist_graph_neighbors_count"))(comm, &sources, &destinations,
                                                                                             &weighted);
    return whose == SOURCES ? sources : destinations;
}

/* MPI_ROOT, which tells the root from the others of its group in an intercommunicator. */
static int mpi_root(void)
{
    return front_is_open_mpi() ? -4 : -3;
}

bool narrow_is_in_place(word buffer)
{
    return buffer == (front_is_open_mpi() ? (word)1 : (word)-1);
}

word narrow_array(struct narrow *narrow, word array, enum whose whose)
{
    const int64_t *wide = (const int64_t *)array;
    bool inter = ask("PMPI_Comm_test_inter", narrow->comm) != 0;
    int length;

    if (wide == NULL)
        return array;
    if (narrow->root != NULL && (int)*narrow->root != (inter ? mpi_root() : ask("PMPI_Comm_rank", narrow->comm)))
        return array;
    if (whose == SOURCES || whose == DESTINATIONS)
        length = neighbours(narrow->comm, whose);
    else
        length = ask(inter && whose == PEERS ? "PMPI_Comm_remote_size" : "PMPI_Comm_size", narrow->comm);
    int *ints = malloc((size_t)length * sizeof *ints + 1);
    narrow->arrays[narrow->used++] = ints;
    if (ints == NULL)
        narrow->is_refused = true;
    for (int i = 0; ints != NULL && i < length; i++) {
        narrow_count(narrow, (word)wide[i]);
        ints[i] = (int)wide[i];
    }
    return (word)ints;
}

static void free_arrays(struct narrow *narrow)
{
    for (unsigned i = 0; i < narrow->used; i++)
        free(narrow->arrays[i]);
}

int narrow_refuse(struct narrow *narrow)
{
    notice("%s cannot be done: this MPI has no such function, and the one with ints for counts takes no number above %d or below %d (or "
           "there is no memory)", narrow->name, INT_MAX, INT_MIN);
    free_arrays(narrow);
    return front_fail(narrow->comm, ERR_COUNT);
}

void narrow_end(struct narrow *narrow)
{
    /* When the MPI has read them is not known here, so the few bytes stay with the process. */
    if (!narrow->lasts)
        free_arrays(narrow);
}
