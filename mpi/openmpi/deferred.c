/* SPDX-License-Identifier: Apache-2.0 */
#include "deferred.h"

#include "job.h"

#include "ompi/mca/topo/base/base.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void *take_memory(size_t size, enum collective name)
{
    void *memory = calloc(1, size);

    if (memory == NULL)
        job_end("there is no memory for a request of %s", collective_name(name));
    return memory;
}

struct deferred *deferred_new(size_t size, enum collective name,
                              int (*begin)(struct module *, const struct deferred *, ompi_request_t **))
{
    struct deferred *deferred = take_memory(size, name);

    deferred->name = name;
    deferred->begin = begin;
    return deferred;
}

void *deferred_copy(struct deferred *deferred, const void *array, size_t bytes)
{
    if (bytes == 0)
        return (void *)(uintptr_t)array;
    void *copy = memcpy(take_memory(bytes, deferred->name), array, bytes);
    deferred->copies[deferred->copy_count++] = copy;
    return copy;
}

void deferred_free(struct deferred *deferred)
{
    for (int i = 0; deferred != NULL && i < deferred->copy_count; i++)
        free(deferred->copies[i]);
    free(deferred);
}

struct lengths lengths_of_all(ompi_communicator_t *comm, const void *sent)
{
    size_t ranks = (size_t)ompi_comm_size(comm);

    return (struct lengths){.sent = sent == MPI_IN_PLACE ? 0 : ranks, .received = ranks};
}

struct lengths lengths_at_root(ompi_communicator_t *comm, int root)
{
    size_t ranks = root == ompi_comm_rank(comm) ? (size_t)ompi_comm_size(comm) : 0;

    return (struct lengths){.sent = ranks, .received = ranks};
}

/* Not by mca_topo_base_neighbor_count(), which not every Open MPI shows to its components. */
struct lengths lengths_of_neighbours(ompi_communicator_t *comm)
{
    int sent = 0, received = 0;

    if (OMPI_COMM_IS_CART(comm)) {
        sent = received = 2 * comm->c_topo->mtc.cart->ndims;
    } else if (OMPI_COMM_IS_GRAPH(comm)) {
        (void)mca_topo_base_graph_neighbors_count(comm, ompi_comm_rank(comm), &sent);
        received = sent;
    } else if (OMPI_COMM_IS_DIST_GRAPH(comm)) {
        sent = comm->c_topo->mtc.dist_graph->outdegree;
        received = comm->c_topo->mtc.dist_graph->indegree;
    }
    return (struct lengths){.sent = (size_t)sent, .received = (size_t)received};
}
