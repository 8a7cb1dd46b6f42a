/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime.h"

#include "module.h"

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/group/group.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/runtime/opal_progress.h"

#include <limits.h>
#include <stdlib.h>

/* Calls the function that Open MPI has for MPI_COMM_WORLD without us. */
#define IN_WORLD(name, ...) \
    (module_of_world->previous.coll_##name(__VA_ARGS__, module_of_world->previous.coll_##name##_module) == OMPI_SUCCESS)

int runtime_rank(MPI_Comm comm)
{
    return ompi_comm_rank(comm);
}

int runtime_size(MPI_Comm comm)
{
    return ompi_comm_size(comm);
}

void runtime_ranks_in(MPI_Comm world, MPI_Comm comm, int first, int count, int ranks[])
{
    for (int i = 0; i < count; i++) {
        int member = first + i;
        ompi_group_translate_ranks(comm->c_local_group, 1, &member, world->c_local_group, &ranks[i]);
    }
}

bool runtime_gather(MPI_Comm comm, const void *own, void *all, int bytes)
{
    return IN_WORLD(gather, own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, 0, comm);
}

bool runtime_bcast(MPI_Comm comm, void *buffer, int bytes, int root)
{
    return IN_WORLD(bcast, buffer, bytes, MPI_BYTE, root, comm);
}

bool runtime_sum(MPI_Comm comm, const uint64_t *own, uint64_t *all, int count)
{
    return IN_WORLD(reduce, own, all, count, MPI_UINT64_T, MPI_SUM, 0, comm);
}

int runtime_least(MPI_Comm comm, int own)
{
    int least = own;

    return IN_WORLD(allreduce, &own, &least, 1, MPI_INT, MPI_MIN, comm) ? least : own;
}

void runtime_barrier(MPI_Comm comm)
{
    (void)IN_WORLD(barrier, comm);
}

void runtime_progress(void)
{
    opal_progress();
}

void runtime_extent(MPI_Datatype datatype, size_t *bytes, size_t *distance)
{
    ptrdiff_t lower, extent = 0;

    *bytes = 0;
    ompi_datatype_type_size(datatype, bytes);
    ompi_datatype_get_extent(datatype, &lower, &extent);
    *distance = (size_t)extent;
}

bool runtime_is_predefined(MPI_Datatype datatype)
{
    return ompi_datatype_is_predefined(datatype);
}

void runtime_reduce(const void *in, void *inout, size_t count, MPI_Datatype datatype, MPI_Op op)
{
    PMPI_Reduce_local(in, inout, (int)count, datatype, op);
}

/* How many elements one call copies, which counts bytes in 32 bits. */
static size_t share(size_t bytes)
{
    return bytes == 0 ? INT_MAX : bytes < INT_MAX / 2 ? INT_MAX / 2 / bytes : 1;
}

void runtime_pack(const void *from, size_t count, MPI_Datatype datatype, void *bytes)
{
    size_t size, distance;

    runtime_extent(datatype, &size, &distance);
    for (size_t done = 0, now; done < count; done += now) {
        now = count - done < share(size) ? count - done : share(size);
        ompi_datatype_sndrcv((const char *)from + done * distance, (int32_t)now, datatype, (char *)bytes + done * size,
                             (int32_t)(now * size), MPI_PACKED);
    }
}

void runtime_unpack(const void *bytes, size_t count, MPI_Datatype datatype, void *to)
{
    size_t size, distance;

    runtime_extent(datatype, &size, &distance);
    for (size_t done = 0, now; done < count; done += now) {
        now = count - done < share(size) ? count - done : share(size);
        ompi_datatype_sndrcv((const char *)bytes + done * size, (int32_t)(now * size), MPI_PACKED,
                             (char *)to + done * distance, (int32_t)now, datatype);
    }
}

_Noreturn void runtime_end(void)
{
    ompi_mpi_abort(&ompi_mpi_comm_world.comm, 1);
    abort();
}
