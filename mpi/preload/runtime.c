/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime.h"

#include "job.h"
#include "pmpi.h"
#include "rest.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

/* So many members are translated at a time, which takes no memory from the heap. */
#define CHUNK 256

int runtime_rank(MPI_Comm comm)
{
    int rank;

    PMPI_Comm_rank(comm, &rank);
    return rank;
}

int runtime_size(MPI_Comm comm)
{
    int size;

    PMPI_Comm_size(comm, &size);
    return size;
}

bool runtime_info(MPI_Comm comm, const char *key, char *value, int most)
{
    MPI_Info info;
    int found = 0;

    if (PMPI_Comm_get_info(comm, &info) != MPI_SUCCESS)
        return false;
    if (PMPI_Info_get(info, key, most, value, &found) != MPI_SUCCESS)
        found = 0;
    PMPI_Info_free(&info);
    return found != 0;
}

void runtime_ranks_in(MPI_Comm world, MPI_Comm comm, int first, int count, int ranks[])
{
    MPI_Group group, world_group;
    int members[CHUNK];

    PMPI_Comm_group(comm, &group);
    PMPI_Comm_group(world, &world_group);
    for (int done = 0; done < count; done += CHUNK) {
        int now = count - done < CHUNK ? count - done : CHUNK;
        for (int i = 0; i < now; i++)
            members[i] = first + done + i;
        PMPI_Group_translate_ranks(group, now, members, world_group, ranks + done);
    }
    PMPI_Group_free(&group);
    PMPI_Group_free(&world_group);
}

/* Rests until a collective is done that was begun with this result. Returns whether it worked. */
static bool await(int result, MPI_Request *request)
{
    struct rest rest = rest_begin();
    int done = 0;

    while (result == MPI_SUCCESS && (result = PMPI_Test(request, &done, MPI_STATUS_IGNORE)) == MPI_SUCCESS && !done)
        rest_pause(&rest);
    return result == MPI_SUCCESS;
}

bool runtime_gather(MPI_Comm comm, const void *own, void *all, int bytes)
{
    MPI_Request request;

    return await(PMPI_Igather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, 0, comm, &request), &request);
}

bool runtime_bcast(MPI_Comm comm, void *buffer, int bytes, int root)
{
    MPI_Request request;

    return await(PMPI_Ibcast(buffer, bytes, MPI_BYTE, root, comm, &request), &request);
}

bool runtime_sum(MPI_Comm comm, const uint64_t *own, uint64_t *all, int count)
{
    MPI_Request request;

    return await(PMPI_Ireduce(own, all, count, MPI_UINT64_T, MPI_SUM, 0, comm, &request), &request);
}

int runtime_least(MPI_Comm comm, int own)
{
    MPI_Request request;
    int least = own;

    await(PMPI_Iallreduce(&own, &least, 1, MPI_INT, MPI_MIN, comm, &request), &request);
    return least;
}

void runtime_barrier(MPI_Comm comm)
{
    MPI_Request request;

    await(PMPI_Ibarrier(comm, &request), &request);
}

/* Looking for a message makes the MPI progress, and nobody sends any on this communicator. */
void runtime_progress(void)
{
    int found;

    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, job.world, &found, MPI_STATUS_IGNORE);
}

void runtime_progress_in_passing(void)
{
    runtime_progress();
}

void runtime_extent(MPI_Datatype datatype, size_t *bytes, size_t *distance)
{
    MPI_Count size = 0;
    MPI_Aint lower, extent = 0;

    if (datatype != MPI_DATATYPE_NULL) {
        PMPI_Type_size_x(datatype, &size);
        PMPI_Type_get_extent(datatype, &lower, &extent);
    }
    *bytes = size > 0 ? (size_t)size : 0;
    *distance = (size_t)extent;
}

bool runtime_is_predefined(MPI_Datatype datatype)
{
    int integers, addresses, datatypes, combiner;

    PMPI_Type_get_envelope(datatype, &integers, &addresses, &datatypes, &combiner);
    return combiner == MPI_COMBINER_NAMED;
}

void runtime_reduce(const void *in, void *inout, size_t count, MPI_Datatype datatype, MPI_Op op)
{
    size_t size, distance;

    runtime_extent(datatype, &size, &distance);
    for (size_t done = 0, now; done < count; done += now) {
        now = count - done < INT_MAX ? count - done : INT_MAX;
        PMPI_Reduce_local((const char *)in + done * distance, (char *)inout + done * distance, (int)now, datatype, op);
    }
}

/* How many elements are packed by one call, which counts bytes in an int. */
static size_t share(size_t bytes)
{
    return bytes == 0 ? INT_MAX : INT_MAX / bytes;
}

/* MPICH's packing takes MPI_BOTTOM for a mistake. Elements there are seen from another address. */
static char anchor;

static MPI_Datatype seen_from_anchor(int count, MPI_Datatype datatype)
{
    MPI_Aint distance = (MPI_Aint)(uintptr_t)MPI_BOTTOM - (MPI_Aint)(uintptr_t)&anchor;
    MPI_Datatype seen;

    PMPI_Type_create_hindexed(1, &count, &distance, datatype, &seen);
    PMPI_Type_commit(&seen);
    return seen;
}

static void pack(const void *from, int count, MPI_Datatype datatype, void *bytes, int room)
{
    int position = 0;

    if (from != MPI_BOTTOM) {
        PMPI_Pack(from, count, datatype, bytes, room, &position, job.world);
        return;
    }
    MPI_Datatype seen = seen_from_anchor(count, datatype);
    PMPI_Pack(&anchor, 1, seen, bytes, room, &position, job.world);
    PMPI_Type_free(&seen);
}

static void unpack(const void *bytes, int room, void *to, int count, MPI_Datatype datatype)
{
    int position = 0;

    if (to != MPI_BOTTOM) {
        PMPI_Unpack(bytes, room, &position, to, count, datatype, job.world);
        return;
    }
    MPI_Datatype seen = seen_from_anchor(count, datatype);
    PMPI_Unpack(bytes, room, &position, &anchor, 1, seen, job.world);
    PMPI_Type_free(&seen);
}

/* A type of so many bytes, more than an int counts. */
static MPI_Datatype long_bytes(size_t bytes)
{
    const int chunk = 1 << 20;
    int counts[2] = {(int)(bytes / (size_t)chunk), (int)(bytes % (size_t)chunk)};
    MPI_Aint offsets[2] = {0, (MPI_Aint)(bytes - bytes % (size_t)chunk)};
    MPI_Datatype types[2] = {MPI_DATATYPE_NULL, MPI_BYTE}, result;

    PMPI_Type_contiguous(chunk, MPI_BYTE, &types[0]);
    PMPI_Type_create_struct(2, counts, offsets, types, &result);
    PMPI_Type_commit(&result);
    PMPI_Type_free(&types[0]);
    return result;
}

/* Copies elements that are too long for MPI_Pack, each as a message to this rank on a communicator
 * that has no other. Threads that copy at the same time would get each other's. */
static void copy_long(const char *from, MPI_Datatype from_type, size_t from_step, char *to, MPI_Datatype to_type, size_t to_step,
                      size_t count)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&lock);
    for (size_t done = 0; done < count; done++)
        PMPI_Sendrecv(from + done * from_step, 1, from_type, job.rank, 0, to + done * to_step, 1, to_type, job.rank, 0, job.world,
                      MPI_STATUS_IGNORE);
    pthread_mutex_unlock(&lock);
}

void runtime_pack(const void *from, size_t count, MPI_Datatype datatype, void *bytes)
{
    size_t size, distance;

    runtime_extent(datatype, &size, &distance);
    if (size > INT_MAX) {
        MPI_Datatype plain = long_bytes(size);
        copy_long(from, datatype, distance, bytes, plain, size, count);
        PMPI_Type_free(&plain);
        return;
    }
    for (size_t done = 0, now; done < count; done += now) {
        now = count - done < share(size) ? count - done : share(size);
        pack((const char *)from + done * distance, (int)now, datatype, (char *)bytes + done * size, (int)(now * size));
    }
}

void runtime_unpack(const void *bytes, size_t count, MPI_Datatype datatype, void *to)
{
    size_t size, distance;

    runtime_extent(datatype, &size, &distance);
    if (size > INT_MAX) {
        MPI_Datatype plain = long_bytes(size);
        copy_long(bytes, plain, size, to, datatype, distance, count);
        PMPI_Type_free(&plain);
        return;
    }
    for (size_t done = 0, now; done < count; done += now) {
        now = count - done < share(size) ? count - done : share(size);
        unpack((const char *)bytes + done * size, (int)(now * size), (char *)to + done * distance, (int)now, datatype);
    }
}

const char *runtime_setting(const char *name)
{
    return getenv(name);
}

_Noreturn void runtime_end(void)
{
    PMPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}
