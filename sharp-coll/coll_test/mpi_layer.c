/* SPDX-License-Identifier: Apache-2.0
 *
 * The layer of the MPI's own collectives: the tree is compared with it, and it is a second
 * opinion on the reference. It has no types for floating-point numbers of 16 bits and for packed
 * pairs, and predefined operators take no lists of pieces.
 */
#include <stdlib.h>

#include "fail.h"
#include "layer.h"

static const uint64_t DTYPES = ((1u << SHARP_DTYPE_NULL) - 1) & ~(1u << SHARP_DTYPE_FLOAT_SHORT) & ~(1u << SHARP_DTYPE_BFLOAT16);
static const uint64_t REDUCE_OPS = (1u << SHARP_OP_MAXLOC) - 1;

static MPI_Datatype type_of(const struct element *element)
{
    switch (element->code) {
    case SHARP_DTYPE_UNSIGNED: return MPI_UINT32_T;
    case SHARP_DTYPE_INT: return MPI_INT32_T;
    case SHARP_DTYPE_UNSIGNED_LONG: return MPI_UINT64_T;
    case SHARP_DTYPE_LONG: return MPI_INT64_T;
    case SHARP_DTYPE_FLOAT: return MPI_FLOAT;
    case SHARP_DTYPE_DOUBLE: return MPI_DOUBLE;
    case SHARP_DTYPE_UNSIGNED_SHORT: return MPI_UINT16_T;
    case SHARP_DTYPE_SHORT: return MPI_INT16_T;
    case SHARP_DTYPE_UINT8: return MPI_UINT8_T;
    default: return MPI_INT8_T; /* the others are not among the abilities */
    }
}

static MPI_Op op_of(enum sharp_reduce_op op)
{
    switch (op) {
    case SHARP_OP_MAX: return MPI_MAX;
    case SHARP_OP_MIN: return MPI_MIN;
    case SHARP_OP_SUM: return MPI_SUM;
    case SHARP_OP_PROD: return MPI_PROD;
    case SHARP_OP_LAND: return MPI_LAND;
    case SHARP_OP_BAND: return MPI_BAND;
    case SHARP_OP_LOR: return MPI_LOR;
    case SHARP_OP_BOR: return MPI_BOR;
    case SHARP_OP_LXOR: return MPI_LXOR;
    default: return MPI_BXOR;
    }
}

static void *memory_for(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (memory == NULL) {
        complain("no memory for %zu times %zu bytes", count, size);
        end_all(EXIT_ENVIRONMENT);
    }
    return memory;
}

static bool join(const struct options *options, MPI_Comm comm, int local_rank)
{
    (void)options, (void)comm, (void)local_rank;
    return true;
}

static void leave(void)
{
}

static struct abilities abilities(void)
{
    return (struct abilities){.dtypes = DTYPES, .reduce_ops = REDUCE_OPS, .has_blocks = true};
}

static void *make_group(MPI_Comm comm)
{
    MPI_Comm *group = memory_for(1, sizeof *group);
    *group = comm;
    return group;
}

static void free_group(void *group)
{
    free(group);
}

static void *name_memory(void *start, size_t len)
{
    (void)start, (void)len;
    return NULL;
}

static void forget_memory(void *handle)
{
    (void)handle;
}

static void *start_of(const struct side *side)
{
    return message_at(side->message, side->at);
}

/* Every rank's part of the window, in elements, and where the part begins in the window. */
static void parts(const struct operation *operation, size_t window, int size, int *counts, int *displacements)
{
    size_t unit = operation->element->size, start;
    for (int rank = 0; rank < size; rank++) {
        counts[rank] = (int)(window_overlap(operation->count * unit, rank, operation->offset, window, &start) / unit);
        displacements[rank] = counts[rank] ? (int)((start - operation->offset) / unit) : 0;
    }
}

/* Calls one of the collectives that have the same arguments with and without a request. */
#define CALL(blocking, posting, ...) (request ? posting(__VA_ARGS__, &request->handle) : blocking(__VA_ARGS__))

/* A request with the lists that the MPI may read until it is done. */
struct request {
    MPI_Request handle;
    int *counts, *displacements;
};

static void blocks(MPI_Comm comm, const struct operation *operation, struct request *request)
{
    int rank, size;
    void *send = start_of(&operation->send), *receive = start_of(&operation->receive);
    MPI_Datatype type = type_of(operation->element);

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int *counts = memory_for((size_t)size, sizeof *counts), *displacements = memory_for((size_t)size, sizeof *displacements);
    if (operation->kind == KIND_REDUCE_SCATTER) {
        parts(operation, operation->send.len, size, counts, displacements);
        CALL(MPI_Reduce_scatter, MPI_Ireduce_scatter, send, receive, counts, type, op_of(operation->op), comm);
    } else {
        parts(operation, operation->receive.len, size, counts, displacements);
        bool is_in_place = operation->send.message == operation->receive.message;
        CALL(MPI_Allgatherv, MPI_Iallgatherv, is_in_place ? MPI_IN_PLACE : send, counts[rank], type, receive, counts, displacements, type, comm);
    }
    if (request) {
        request->counts = counts;
        request->displacements = displacements;
    } else {
        free(counts);
        free(displacements);
    }
}

static void call(MPI_Comm comm, const struct operation *operation, struct request *request)
{
    int count = (int)operation->count, rank;
    bool is_in_place = operation->send.message == operation->receive.message;
    MPI_Datatype type = operation->element ? type_of(operation->element) : MPI_BYTE;

    MPI_Comm_rank(comm, &rank);
    switch (operation->kind) {
    case KIND_ALLREDUCE:
        CALL(MPI_Allreduce, MPI_Iallreduce, is_in_place ? MPI_IN_PLACE : start_of(&operation->send), start_of(&operation->receive), count, type,
             op_of(operation->op), comm);
        break;
    case KIND_REDUCE:
        CALL(MPI_Reduce, MPI_Ireduce, is_in_place && rank == operation->root ? MPI_IN_PLACE : start_of(&operation->send),
             start_of(&operation->receive), count, type, op_of(operation->op), operation->root, comm);
        break;
    case KIND_BARRIER:
        CALL(MPI_Barrier, MPI_Ibarrier, comm);
        break;
    case KIND_BCAST:
        CALL(MPI_Bcast, MPI_Ibcast, start_of(&operation->receive), count, type, operation->root, comm);
        break;
    default:
        blocks(comm, operation, request);
    }
}

static void run(void *group, const struct operation *operation)
{
    call(*(MPI_Comm *)group, operation, NULL);
}

static void *post(void *group, const struct operation *operation)
{
    struct request *request = memory_for(1, sizeof *request);
    call(*(MPI_Comm *)group, operation, request);
    return request;
}

static void finish(void *opaque, bool polls)
{
    struct request *request = opaque;
    int is_done = 0;

    while (polls && !is_done)
        MPI_Test(&request->handle, &is_done, MPI_STATUS_IGNORE);
    MPI_Wait(&request->handle, MPI_STATUS_IGNORE);
    free(request->counts);
    free(request->displacements);
    free(request);
}

const struct layer mpi_layer = {
    .name = "MPI",
    .join = join,
    .leave = leave,
    .abilities = abilities,
    .make_group = make_group,
    .free_group = free_group,
    .name_memory = name_memory,
    .forget_memory = forget_memory,
    .run = run,
    .post = post,
    .finish = finish,
};
