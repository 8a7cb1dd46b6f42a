/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime.h"

#include "module.h"
#include "rest.h"

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/group/group.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/info.h"

#include <stdlib.h>

/* Calls the function that Open MPI has for MPI_COMM_WORLD without us, and rests while it waits.
 * Returns whether it worked. */
#define IN_WORLD(name, ...) \
    ({ \
        bool rests = begin_to_rest(); \
        int status = module_of_world->previous.coll_##name(__VA_ARGS__, module_of_world->previous.coll_##name##_module); \
        if (rests) \
            opal_progress_unregister(rest_once); \
        status == OMPI_SUCCESS; \
    })

static struct rest rest;

/* Open MPI calls this each time it has looked for messages. */
static int rest_once(void)
{
    rest_pause(&rest);
    return 0;
}

static bool begin_to_rest(void)
{
    rest = rest_begin();
    return opal_progress_register(rest_once) == OPAL_SUCCESS;
}

int runtime_rank(MPI_Comm comm)
{
    return ompi_comm_rank(comm);
}

int runtime_size(MPI_Comm comm)
{
    return ompi_comm_size(comm);
}

/* Open MPI puts the info into a communicator before it asks its components. */
bool runtime_info(MPI_Comm comm, const char *key, char *value, int most)
{
    int found = 0;

    if (comm->super.s_info == NULL)
        return false;
#if OMPI_MAJOR_VERSION >= 5
    opal_cstring_t *text = NULL;

    if (opal_info_get(comm->super.s_info, key, &text, &found) != OPAL_SUCCESS || !found)
        return false;
    snprintf(value, (size_t)most + 1, "%s", text->string);
    OBJ_RELEASE(text);
#else
    if (opal_info_get(comm->super.s_info, key, most, value, &found) != OPAL_SUCCESS)
        return false;
#endif
    return found != 0;
}

/* Open MPI's own translation searches all of world for each member. A process is named by its
 * program and its number there, which is its rank in the world of that program. */
void runtime_ranks_in(MPI_Comm world, MPI_Comm comm, int first, int count, int ranks[])
{
    ompi_jobid_t program = ompi_group_get_proc_name(world->c_local_group, 0).jobid;

    for (int i = 0; i < count; i++) {
        opal_process_name_t name = ompi_group_get_proc_name(comm->c_local_group, first + i);
        ranks[i] = name.jobid == program ? (int)name.vpid : MPI_UNDEFINED;
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

/* With more ranks than cores Open MPI gives way where it has nothing to move, which takes longer
 * than a barrier in a host's memory. Other threads may be about to read whether it does. */
void runtime_progress_in_passing(void)
{
    bool gives_way = !opal_using_threads() && opal_progress_set_yield_when_idle(false);

    opal_progress();
    if (gives_way)
        (void)opal_progress_set_yield_when_idle(true);
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

/* An element may have more bytes than a program can count in an int. */
void runtime_pack(const void *from, size_t count, MPI_Datatype datatype, void *bytes)
{
    size_t size, distance;
    opal_convertor_t convertor;

    if (count == 0)
        return;
    runtime_extent(datatype, &size, &distance);
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &datatype->super, count, from, 0, &convertor);
    for (size_t done = 0, now = 1; done < count * size && now > 0; done += now) {
        struct iovec piece = {(char *)bytes + done, count * size - done};
        uint32_t pieces = 1;
        now = piece.iov_len;
        opal_convertor_pack(&convertor, &piece, &pieces, &now);
    }
    OBJ_DESTRUCT(&convertor);
}

void runtime_unpack(const void *bytes, size_t count, MPI_Datatype datatype, void *to)
{
    size_t size, distance;
    opal_convertor_t convertor;

    if (count == 0)
        return;
    runtime_extent(datatype, &size, &distance);
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &datatype->super, count, to, 0, &convertor);
    for (size_t done = 0, now = 1; done < count * size && now > 0; done += now) {
        struct iovec piece = {(char *)(uintptr_t)bytes + done, count * size - done};
        uint32_t pieces = 1;
        now = piece.iov_len;
        opal_convertor_unpack(&convertor, &piece, &pieces, &now);
    }
    OBJ_DESTRUCT(&convertor);
}

_Noreturn void runtime_end(void)
{
    ompi_mpi_abort(&ompi_mpi_comm_world.comm, 1);
    abort();
}
