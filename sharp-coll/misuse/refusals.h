/* SPDX-License-Identifier: Apache-2.0
 *
 * refusals.h - calls that contain something impossible: they must give a negative code at once,
 * with nothing posted and no handle written.
 */
#ifndef REFUSALS_H
#define REFUSALS_H

#include "collectives.h"

#define ANY_OF(numbers) ((numbers)[below(&alone, LENGTH(numbers))])

static const int no_root[] = {-1, RANKS_MAX + 1, 0x7fffffff, -0x7fffffff - 1};
static const int no_number[] = {12, 13, 255, 256, 0xffff, 0x7fffffff, -1, -0x7fffffff - 1};
/* More bytes than any memory has, and counts of elements of eight bytes that are too many. */
static const size_t too_many[] = {(size_t)1 << 63, SIZE_MAX, SIZE_MAX - 7, SIZE_MAX / 2 + 1};
static const size_t too_many_elements[] = {((size_t)1 << 62) + 1, (size_t)1 << 61, SIZE_MAX / 8 + 1, SIZE_MAX};

/* Breaks the description of `need` bytes. */
static void break_buffer(struct sharp_coll_data_desc *desc, struct sharp_data_iov *list, struct area *area)
{
    static const unsigned no_count[] = {0, SHARP_COLL_DATA_MAX_IOV + 1, 0x10000, UINT32_MAX};
    static const int no_type[] = {2, 3, -1, 0x7fffffff};
    size_t last;
    switch (below(&alone, 7)) {
    case 0:
        *desc = one_buffer(NULL, area->len, 1);
        return;
    case 1:
        *desc = one_buffer(area->start, area->len, 1);
        desc->type = (enum sharp_data_buffer_type)ANY_OF(no_type);
        return;
    case 2:
        *desc = pieces_of(area->start, area->len, list);
        desc->iov.count = ANY_OF(no_count);
        return;
    case 3:
        *desc = pieces_of(area->start, area->len, list);
        desc->iov.vector = NULL;
        return;
    case 4: /* a byte too short */
        *desc = pieces_of(area->start, area->len - 1, list);
        return;
    case 5:
        *desc = one_buffer(area->start, area->len - 1, 1);
        return;
    default: /* a piece that is nowhere */
        *desc = pieces_of(area->start, area->len, list);
        for (last = desc->iov.count; list[last - 1].length == 0;)
            last--;
        list[last - 1].ptr = NULL;
        return;
    }
}

/* Breaks offset and lengths of a window of `all` elements of `unit` bytes. */
static void break_window(size_t *offset, size_t *window, size_t *block, size_t all, size_t unit)
{
    switch (below(&alone, 6)) {
    case 0: *offset = all * unit + unit; *window = unit; return;
    case 1: *offset = SIZE_MAX - below(&alone, 64); return;
    case 2: *window = (all + 1) * unit; *offset = 0; return;
    case 3: *window = ANY_OF(too_many); return;
    case 4: *block = ANY_OF(too_many); return;
    default: *window = SIZE_MAX; *offset = SIZE_MAX; *block = SIZE_MAX; return;
    }
}

static void break_reduction(struct operation *one, struct call *call)
{
    struct sharp_coll_reduce_spec *spec = &call->reduce;
    int is_window = one->collective == REDUCE_SCATTER;
    switch (below(&alone, is_window ? 7 : 8)) {
    case 0: spec->dtype = (enum sharp_datatype)ANY_OF(no_number); return;
    case 1: spec->op = (enum sharp_reduce_op)ANY_OF(no_number); return;
    case 2: /* the operator is not defined for such numbers */
        spec->dtype = SHARP_DTYPE_BFLOAT16;
        spec->op = one_in(&alone, 2) ? SHARP_OP_BXOR : SHARP_OP_LAND;
        return;
    case 3: /* a tag that is of no type */
        spec->op = one_in(&alone, 2) ? SHARP_OP_MAXLOC : SHARP_OP_MINLOC;
        spec->tag_dtype = (enum sharp_datatype)ANY_OF(no_number);
        return;
    case 7: /* pairs in buffers that hold their values only */
        spec->op = one_in(&alone, 2) ? SHARP_OP_MAXLOC : SHARP_OP_MINLOC;
        spec->tag_dtype = (enum sharp_datatype)below(&alone, SHARP_DTYPE_NULL);
        spec->sbuf_desc = one_buffer(one->in.start, one->in.len, 1);
        return;
    case 4:
        if (!is_window) {
            spec->dtype = SHARP_DTYPE_DOUBLE;
            spec->length = ANY_OF(too_many_elements);
            return;
        }
        /* fall through */
    case 5:
        if (is_window)
            break_window(&spec->offset, &spec->sbuf_desc.buffer.length, &spec->rbuf_desc.buffer.length,
                         one->count * (size_t)own_size, size_of(one->dtype));
        else if (one->collective == REDUCE)
            spec->root = ANY_OF(no_root);
        else
            break_buffer(&spec->rbuf_desc, call->taken, &one->out);
        return;
    default:
        if (is_window) /* a window is one buffer */
            spec->sbuf_desc.type = one_in(&alone, 2) ? SHARP_DATA_IOV : (enum sharp_data_buffer_type)77;
        else
            break_buffer(&spec->sbuf_desc, call->sent, &one->in);
        return;
    }
}

static void break_bcast(struct operation *one, struct call *call)
{
    switch (below(&alone, 3)) {
    case 0: call->bcast.root = ANY_OF(no_root); return;
    case 1: call->bcast.size = ANY_OF(too_many); return;
    default: break_buffer(&call->bcast.buf_desc, call->taken, &one->out); return;
    }
}

static void break_allgather(struct operation *one, struct call *call)
{
    struct sharp_coll_gather_spec *spec = &call->gather;
    size_t start = (size_t)own_rank * one->count, stop = start + one->count;
    switch (below(&alone, 3)) {
    case 0: break_window(&spec->offset, &spec->rbuf_desc.buffer.length, &spec->sbuf_desc.buffer.length,
                         one->count * (size_t)own_size, 1);
        return;
    case 1: (one_in(&alone, 2) ? &spec->sbuf_desc : &spec->rbuf_desc)->type = SHARP_DATA_IOV; return;
    default: /* there is a part to give, but no memory that has it */
        spec->offset = start;
        spec->rbuf_desc.buffer.length = stop - start;
        spec->sbuf_desc.buffer.ptr = NULL;
        return;
    }
}

/* A collective that no rank can start. */
static void refused_collective(struct sharp_coll_comm *comm)
{
    struct operation one = any_operation();
    struct call call;
    void *untouched = &one, *request = untouched;
    /* The part that is broken must be one that the call needs. */
    if (one.collective == BARRIER)
        one.collective = ALLREDUCE;
    one.count = 1 + below(&alone, 100);
    one.from = one.own_from = 0;
    one.len = one.count * (size_t)own_size;
    one.own_len = one.count;
    prepare(&one);
    describe(&one, &call);
    if (one.collective == BCAST)
        break_bcast(&one, &call);
    else if (one.collective == ALLGATHER)
        break_allgather(&one, &call);
    else
        break_reduction(&one, &call);
    int code = make(one.collective, comm, &call, one_in(&alone, 2) ? &request : NULL);
    if (code >= 0)
        fail(__FILE__, __LINE__, "collective %d of %zu elements of type %d: %d for what cannot be", (int)one.collective, one.count,
             (int)one.dtype, code);
    CHECK(request == untouched);
    clear(&one);
}

/* Calls without what they need. */
static void missing_arguments(struct sharp_coll_context *context, struct sharp_coll_comm *comm)
{
    struct sharp_coll_comm *group = NULL;
    struct sharp_coll_context *made = NULL;
    void *request = NULL;
    CHECK(sharp_coll_do_allreduce(comm, NULL) < 0 && sharp_coll_do_allreduce_nb(comm, NULL, &request) < 0);
    CHECK(sharp_coll_do_reduce(comm, NULL) < 0 && sharp_coll_do_reduce_nb(comm, NULL, &request) < 0);
    CHECK(sharp_coll_do_bcast(comm, NULL) < 0 && sharp_coll_do_bcast_nb(comm, NULL, &request) < 0);
    CHECK(sharp_coll_do_reduce_scatter(comm, NULL) < 0 && sharp_coll_do_reduce_scatter_nb(comm, NULL, &request) < 0);
    CHECK(sharp_coll_do_allgather(comm, NULL) < 0 && sharp_coll_do_allgather_nb(comm, NULL, &request) < 0);
    CHECK(sharp_coll_do_barrier_nb(comm, NULL) < 0);
    CHECK(sharp_coll_init(NULL, &made) < 0 && sharp_coll_comm_init(context, NULL, &group) < 0);
    CHECK(sharp_coll_caps_query(context, NULL) < 0);
    CHECK(sharp_coll_reg_mr(context, &made, 8, NULL) < 0 && sharp_coll_reg_mr_v2(context, &made, 8, NULL, NULL) < 0);
    CHECK(sharp_coll_print_config(NULL, SHARP_COLL_CONFIG_PRINT_CONFIG, "x") < 0);
    CHECK(sharp_coll_req_test(NULL) == 1 && sharp_coll_req_wait(NULL) < 0);
    CHECK_OK(sharp_coll_req_free(NULL));
    CHECK(request == NULL && group == NULL && made == NULL);
}

/* Every function that takes a handle, with one that means nothing. */
static void bad_handles(struct job *job)
{
    struct call call;
    struct sharp_coll_caps caps;
    struct sharp_coll_comm *group = NULL;
    struct sharp_coll_comm_init_spec spec = group_spec(&job->oobs[0]);
    void *untouched = &call, *request = untouched, *handle = untouched;
    struct sharp_coll_context *context = (struct sharp_coll_context *)bad_handle(CONTEXT);
    struct sharp_coll_comm *comm = (struct sharp_coll_comm *)bad_handle(COMM);
    struct operation one = any_operation();
    switch (below(&alone, 4)) {
    case CONTEXT:
        CHECK(sharp_coll_caps_query(context, &caps) < 0 && sharp_coll_progress(context) < 0);
        CHECK(sharp_coll_comm_init(context, &spec, &group) < 0 && group == NULL);
        CHECK(sharp_coll_reg_mr(context, &call, 8, &handle) < 0 && handle == NULL);
        CHECK(sharp_coll_reg_mr_v2(context, &call, 8, NULL, &handle) < 0 && handle == NULL);
        CHECK(sharp_coll_dereg_mr(context, any_live(REGION)) < 0);
        CHECK(sharp_coll_dump_stats(context) < 0 && sharp_coll_finalize(context) < 0);
        return;
    case COMM:
        prepare(&one);
        describe(&one, &call);
        CHECK(make(one.collective, comm, &call, NULL) < 0);
        CHECK(make(one.collective, comm, &call, &request) < 0 && request == untouched);
        CHECK(sharp_coll_comm_destroy(comm) < 0);
        clear(&one);
        return;
    case REQUEST:
        /* A test cannot report an error, and if it answered "not done", a client would wait for
         * ever. */
        CHECK(sharp_coll_req_test(bad_handle(REQUEST)) == 1);
        CHECK(sharp_coll_req_wait(bad_handle(REQUEST)) < 0);
        CHECK_OK(sharp_coll_req_free(bad_handle(REQUEST)));
        return;
    default:
        CHECK(sharp_coll_dereg_mr(job->context, bad_handle(REGION)) < 0);
        /* A job cannot deregister a region of another one. */
        handle = jobs[0].regions[below(&alone, REGIONS)];
        CHECK(handle == NULL || sharp_coll_dereg_mr(jobs[1].context, handle) < 0);
        return;
    }
}

#endif
