/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives and regions, and how each can be broken. Blocking calls and posts break their
 * specs in the same way.
 */
#include "posting.h"

static char *bytes_of(const struct sharp_coll_data_desc *desc)
{
    return (char *)desc->buffer.ptr;
}

/* The size of a datatype; the size of its name in messages is of no use here. */
static size_t size_of(enum sharp_datatype dtype)
{
    static const size_t sizes[] = {4, 4, 8, 8, 4, 8, 2, 2, 2, 2, 1, 1};
    return (unsigned)dtype < 12 ? sizes[dtype] : 1;
}

int refused(enum collective collective, const struct call *call)
{
    const struct sharp_coll_reduce_spec *reduce = &call->reduce;
    int reduces = collective <= REDUCE_SCATTER;
    const struct sharp_coll_data_desc *from = reduces ? &reduce->sbuf_desc : &call->gather.sbuf_desc;
    const struct sharp_coll_data_desc *to = reduces ? &reduce->rbuf_desc : &call->gather.rbuf_desc;
    int has_two = collective == ALLREDUCE;
    if (has_two && is("refuses to work in place") && from->buffer.ptr == to->buffer.ptr && reduce->length > 0)
        return SHARP_COLL_EINVAL;
    if (has_two && is("wants a handle for each side") && from->buffer.mem_handle && from->buffer.mem_handle == to->buffer.mem_handle)
        return SHARP_COLL_EINVAL;
    if (has_two && is("wants handles") && !from->buffer.mem_handle)
        return SHARP_COLL_EINVAL;
    if (has_two && is("refuses empty vectors") && reduce->length == 0)
        return SHARP_COLL_EINVAL;
    if (reduces && is("fails on memory of GPUs") && from->mem_type == SHARP_MEM_TYPE_CUDA)
        return SHARP_COLL_ERROR;
    return 0;
}

void change(enum collective collective, struct call *call)
{
    struct sharp_coll_reduce_spec *reduce = &call->reduce;
    switch (collective) {
    case ALLREDUCE:
        if (is("compares unsigned numbers as signed ones") && reduce->dtype == SHARP_DTYPE_UNSIGNED)
            reduce->dtype = SHARP_DTYPE_INT;
        if (is("takes the largest pair for the smallest") && reduce->op == SHARP_OP_MINLOC)
            reduce->op = SHARP_OP_MAXLOC;
        if (is("takes the first piece only") && reduce->sbuf_desc.type == SHARP_DATA_IOV && reduce->sbuf_desc.iov.count > 1 &&
            reduce->sbuf_desc.iov.count <= SHARP_COLL_DATA_MAX_IOV) {
            static char rest[1 << 20];
            struct sharp_data_iov *first = reduce->sbuf_desc.iov.vector;
            first[1].ptr = rest;
        }
        return;
    case REDUCE:
        if (is("knows one root"))
            reduce->root = 0;
        if (is("clears results at all ranks") && reduce->rbuf_desc.type != SHARP_DATA_IOV)
            memset(bytes_of(&reduce->rbuf_desc), 0, 1);
        return;
    case REDUCE_SCATTER:
        if (is("clears whole blocks first"))
            memset(bytes_of(&reduce->rbuf_desc), 0, reduce->rbuf_desc.buffer.length);
        if (is("believes the length of a reduce-scatter"))
            reduce->sbuf_desc.buffer.length = reduce->length * size_of(reduce->dtype) * 2;
        if (is("counts bytes with 32 bits"))
            reduce->offset &= 0xffffffff, reduce->rbuf_desc.buffer.length &= 0xffffffff;
        return;
    case ALLGATHER:
        if (is("believes the size of an allgather"))
            call->gather.rbuf_desc.buffer.length = call->gather.size & 0xffff;
        if (is("reads whole blocks")) {
            volatile const char *block = bytes_of(&call->gather.sbuf_desc);
            for (size_t at = 0; at < call->gather.sbuf_desc.buffer.length; at++)
                (void)block[at];
        }
        if (is("gathers from the first block")) {
            call->gather.sbuf_desc.buffer.ptr = call->gather.rbuf_desc.buffer.ptr;
        }
        return;
    case BCAST:
        if (is("broadcasts even numbers of bytes"))
            call->bcast.size &= ~(size_t)1;
        return;
    default: return;
    }
}

/* What a blocking allreduce does to its result. */
static void spoil(const struct sharp_coll_reduce_spec *spec)
{
    static int calls;
    calls++;
    if (spec->rbuf_desc.type == SHARP_DATA_IOV)
        return;
    uint16_t *shorts = (uint16_t *)spec->rbuf_desc.buffer.ptr;
    int is_short_float = spec->dtype == SHARP_DTYPE_FLOAT_SHORT || spec->dtype == SHARP_DTYPE_BFLOAT16;
    for (size_t i = 0; i < spec->length && is_short_float && is("flushes denormals"); i++)
        shorts[i] = (uint16_t)(shorts[i] & 0x7c00 ? shorts[i] : 0);
    if (is("rounds differently at the last rank") && spec->dtype == SHARP_DTYPE_FLOAT && spec->length > 0 && at_last_rank())
        ((uint32_t *)spec->rbuf_desc.buffer.ptr)[0] ^= 1;
}

static int run(enum collective collective, struct sharp_coll_comm *comm, const void *spec, size_t len)
{
    struct call call;
    if (!spec) {
        int code = make(collective, comm, NULL, NULL);
        return is("gives positive codes") ? -code : code;
    }
    memcpy(&call, spec, len);
    int code = refused(collective, &call);
    if (code)
        return code;
    change(collective, &call);
    code = make(collective, comm, &call, NULL);
    if (code == 0 && collective == ALLREDUCE)
        spoil(&call.reduce);
    return code;
}

int sharp_coll_do_barrier(struct sharp_coll_comm *comm)
{
    if (comm && is("does not wait in barriers"))
        return 0;
    if (is("calls the program's progress, there or not"))
        poll_as_told();
    return REAL(sharp_coll_do_barrier)(comm);
}

int sharp_coll_do_allreduce(struct sharp_coll_comm *comm, struct sharp_coll_reduce_spec *spec)
{
    return run(ALLREDUCE, comm, spec, sizeof *spec);
}

int sharp_coll_do_reduce(struct sharp_coll_comm *comm, struct sharp_coll_reduce_spec *spec)
{
    return run(REDUCE, comm, spec, sizeof *spec);
}

int sharp_coll_do_reduce_scatter(struct sharp_coll_comm *comm, struct sharp_coll_reduce_spec *spec)
{
    return run(REDUCE_SCATTER, comm, spec, sizeof *spec);
}

int sharp_coll_do_allgather(struct sharp_coll_comm *comm, struct sharp_coll_gather_spec *spec)
{
    return run(ALLGATHER, comm, spec, sizeof *spec);
}

int sharp_coll_do_bcast(struct sharp_coll_comm *comm, struct sharp_coll_bcast_spec *spec)
{
    return run(BCAST, comm, spec, sizeof *spec);
}

int sharp_coll_reg_mr(struct sharp_coll_context *context, void *buf, size_t len, void **mr)
{
    void *before = mr ? *mr : NULL;
    if (is("touches regions") && len > 0)
        (void)*(volatile char *)buf;
    int code = REAL(sharp_coll_reg_mr)(context, buf, len, mr);
    if (code < 0 && is("leaves the handle of a failed registration"))
        *mr = before;
    return code;
}

int sharp_coll_reg_mr_v2(struct sharp_coll_context *context, void *buf, size_t len, const struct sharp_coll_reg_params *params,
                         void **mr)
{
    if (is("wants a file for every region") && params && params->dmabuf_fd < 0)
        return SHARP_COLL_EINVAL;
    return REAL(sharp_coll_reg_mr_v2)(context, buf, len, params, mr);
}

int sharp_coll_dereg_mr(struct sharp_coll_context *context, void *mr)
{
    return REAL(sharp_coll_dereg_mr)(context, mr);
}
