/* SPDX-License-Identifier: Apache-2.0
 *
 * This program uses the interface as NCCL's plugin for reductions in the network does. Each of
 * NCCL's communicators has a job and a group. They are made on one thread, a proxy thread uses
 * all of them, and a third thread closes them. Variables of the environment are set just before.
 * Every process says that it is local rank 0. Reduce-scatter and allgather use windows of
 * vectors. There is a ring of requests of which the oldest is tested, and a request that was
 * never posted.
 */
#include <pthread.h>

#include "../conformance/conformance.h"

enum { COMMUNICATORS = 2, RING = 64, COUNT = 3000 };

struct communicator {
    struct sharp_coll_context *context;
    struct sharp_coll_comm *comm;
    struct oob oob;
    void *handle; /* of the buffer */
    int32_t buffer[2 * RING * COUNT / 16];
};

static struct communicator communicators[COMMUNICATORS];

/* Out of band, NCCL has only an allgather, whose failures are positive. */
static int exchange(struct oob *oob, void *all, int len)
{
    char *own = (char *)malloc((size_t)len);
    CHECK(own != NULL);
    memcpy(own, (char *)all + (size_t)oob->rank * (size_t)len, (size_t)len);
    int code = oob_gather(oob, 0, own, all, len) || oob_bcast(oob, all, len * oob->size, 0) ? 1 : 0;
    free(own);
    return code;
}

static int ring_gather(void *context, int root, void *sbuf, void *rbuf, int len)
{
    struct oob *oob = (struct oob *)context;
    char *all = (char *)malloc((size_t)len * (size_t)oob->size);

    CHECK(all != NULL && len > 0);
    memcpy(all + (size_t)oob->rank * (size_t)len, sbuf, (size_t)len);
    int code = exchange(oob, all, len);
    if (oob->rank == root)
        memcpy(rbuf, all, (size_t)len * (size_t)oob->size);
    free(all);
    return code;
}

static int ring_bcast(void *context, void *buffer, int len, int root)
{
    return oob_bcast(context, buffer, len, root) ? 1 : 0;
}

static int ring_barrier(void *context)
{
    return oob_barrier(context) ? 1 : 0;
}

static void connect_one(struct communicator *communicator)
{
    struct sharp_coll_init_spec spec;
    struct sharp_coll_comm_init_spec group;
    struct sharp_coll_caps caps;
    uint64_t jobs[RANKS_MAX];

    setenv("SHARP_COLL_ENABLE_SAT", "1", 0);
    setenv("SHARP_COLL_LOG_LEVEL", "3", 0);
    setenv("SHARP_COLL_LOCK_ON_COMM_INIT", "1", 0);
    setenv("SHARP_COLL_NUM_COLL_GROUP_RESOURCE_ALLOC_THRESHOLD", "0", 0);
    communicator->oob = world;
    jobs[own_rank] = (uint64_t)0x51a3 << 32 | (uint32_t)(getpid() ^ rand());
    CHECK(exchange(&communicator->oob, jobs, sizeof jobs[0]) == 0);
    {
        char device[16] = "mlx5_0:1";
        garbage(&spec, sizeof spec);
        spec.progress_func = NULL;
        spec.job_id = jobs[0];
        spec.world_rank = own_rank;
        spec.world_size = own_size;
        spec.world_local_rank = 0;
        spec.group_channel_idx = 0;
        spec.enable_thread_support = 1;
        spec.oob_ctx = &communicator->oob;
        spec.oob_colls.barrier = ring_barrier;
        spec.oob_colls.bcast = ring_bcast;
        spec.oob_colls.gather = ring_gather;
        spec.config = sharp_coll_default_config;
        spec.config.user_progress_num_polls = 10000000;
        spec.config.ib_dev_list = device;
        CHECK(sharp_coll_init(&spec, &communicator->context) >= 0);
        memset(device, 'x', sizeof device);
        garbage(&spec, sizeof spec);
    }
    CHECK(sharp_coll_caps_query(communicator->context, &caps) >= 0);
    CHECK(caps.support_mask.dtypes >> SHARP_DTYPE_INT8 & 1);
    garbage(&group, sizeof group);
    group.rank = own_rank;
    group.size = own_size;
    group.oob_ctx = &communicator->oob;
    group.group_world_ranks = NULL;
    CHECK(sharp_coll_comm_init(communicator->context, &group, &communicator->comm) >= 0);
}

static void *connect_all(void *unused)
{
    for (int at = 0; at < COMMUNICATORS; at++)
        connect_one(&communicators[at]);
    return unused;
}

static void register_one(struct communicator *communicator, int with_dmabuf)
{
    struct sharp_coll_reg_params params;

    garbage(&params, sizeof params);
    params.field_mask = SHARP_COLL_REG_FIELD_DMABUF_FD | SHARP_COLL_REG_FIELD_DMABUF_OFFSET | 1u << 30;
    params.dmabuf_fd = -1;
    params.dmabuf_offset = 0;
    if (with_dmabuf)
        CHECK(sharp_coll_reg_mr_v2(communicator->context, communicator->buffer, sizeof communicator->buffer, &params,
                                   &communicator->handle) == 0);
    else
        CHECK(sharp_coll_reg_mr(communicator->context, communicator->buffer, sizeof communicator->buffer,
                                &communicator->handle) == 0);
}

static struct sharp_coll_data_desc part(struct communicator *communicator, void *start, size_t len, int knows_memory)
{
    struct sharp_coll_data_desc desc;

    garbage(&desc, sizeof desc);
    desc.type = SHARP_DATA_BUFFER;
    if (knows_memory)
        desc.mem_type = SHARP_MEM_TYPE_HOST;
    desc.buffer.ptr = start;
    desc.buffer.length = len;
    desc.buffer.mem_handle = communicator->handle;
    return desc;
}

static void post(struct communicator *communicator, int32_t *from, int32_t *to, size_t count, enum sharp_reduce_op op,
                 void **request)
{
    struct sharp_coll_reduce_spec spec;

    garbage(&spec, sizeof spec);
    spec.sbuf_desc = part(communicator, from, count * 4, 1);
    spec.rbuf_desc = part(communicator, to, count * 4, 1);
    spec.length = count;
    spec.dtype = SHARP_DTYPE_INT;
    spec.op = op;
    spec.aggr_mode = SHARP_AGGREGATION_NONE;
    *request = NULL;
    CHECK(sharp_coll_do_allreduce_nb(communicator->comm, &spec, request) == 0);
}

/* The proxy keeps a ring of each communicator busy, and tests the oldest request of each in
 * turn. */
static void rings(void)
{
    static const enum sharp_reduce_op ops[] = {SHARP_OP_SUM, SHARP_OP_MIN, SHARP_OP_MAX};
    enum { COUNT_EACH = COUNT / 16 };
    void *requests[COMMUNICATORS][RING];
    int oldest[COMMUNICATORS] = {0};

    for (int slot = 0; slot < RING; slot++)
        for (int at = 0; at < COMMUNICATORS; at++) {
            int32_t *from = communicators[at].buffer + slot * 2 * COUNT_EACH;
            for (int i = 0; i < COUNT_EACH; i++)
                from[i] = i + own_rank * (slot + 1);
            post(&communicators[at], from, from + COUNT_EACH, COUNT_EACH, ops[slot % 3], &requests[at][slot]);
        }
    for (int left = COMMUNICATORS; left > 0;) {
        left = 0;
        for (int at = 0; at < COMMUNICATORS; at++) {
            if (oldest[at] < RING && sharp_coll_req_test(requests[at][oldest[at]]) == 1)
                CHECK(sharp_coll_req_free(requests[at][oldest[at]++]) == 0);
            left += oldest[at] < RING;
        }
    }
    for (int slot = 0; slot < RING; slot++)
        for (int at = 0; at < COMMUNICATORS; at++)
            for (int i = 0; i < COUNT_EACH; i++) {
                int all = (slot + 1) * own_size * (own_size - 1) / 2 + own_size * i, top = i + (own_size - 1) * (slot + 1);
                int32_t is = communicators[at].buffer[(slot * 2 + 1) * COUNT_EACH + i];
                int results[] = {all, i, top}, expected = results[slot % 3];
                CHECK(is == expected);
            }
}

static void await(void *request)
{
    while (sharp_coll_req_test(request) == 0)
        ;
    CHECK(sharp_coll_req_free(request) == 0);
}

/* What the rank's own block and a window of the vector have in common. */
static size_t meeting(size_t block, size_t at, size_t len, size_t *start)
{
    size_t from = block * (size_t)own_rank, to = from + block;
    *start = at > from ? at : from;
    to = at + len < to ? at + len : to;
    return *start < to ? to - *start : 0;
}

/* Windows are as long as the ring's slots, and neither begin nor end with a block. */
static void windows(struct communicator *communicator)
{
    enum { BLOCK = 4 * 500, STEP = 4 * 300 };
    size_t all = (size_t)BLOCK * (size_t)own_size;
    char *bytes = (char *)communicator->buffer, *blocks = bytes + all;
    struct sharp_coll_reduce_spec reduce;
    struct sharp_coll_gather_spec gather;
    void *request = NULL;

    for (size_t i = 0; i < all / 4; i++)
        communicator->buffer[i] = (int32_t)i - own_rank;
    for (size_t at = 0; at < all; at += STEP) {
        size_t len = at + STEP < all ? STEP : all - at, start = 0, own = meeting(BLOCK, at, len, &start);
        char *mine = blocks + (own ? start - BLOCK * (size_t)own_rank : 0);
        garbage(&reduce, sizeof reduce);
        reduce.sbuf_desc = part(communicator, bytes + at, len, 1);
        reduce.rbuf_desc = part(communicator, mine, BLOCK, 1);
        reduce.length = len / 4;
        reduce.offset = at;
        reduce.dtype = SHARP_DTYPE_INT;
        reduce.op = SHARP_OP_SUM;
        CHECK(sharp_coll_do_reduce_scatter_nb(communicator->comm, &reduce, &request) == 0);
        await(request);
    }
    for (int i = 0; i < BLOCK / 4; i++)
        CHECK(((int32_t *)(void *)blocks)[i] == own_size * (own_rank * (BLOCK / 4) + i) - own_size * (own_size - 1) / 2);
    memset(bytes, 0, all);
    for (size_t at = 0; at < all; at += STEP) {
        size_t len = at + STEP < all ? STEP : all - at, start = 0, own = meeting(BLOCK, at, len, &start);
        garbage(&gather, sizeof gather);
        gather.sbuf_desc = part(communicator, blocks + (own ? start - BLOCK * (size_t)own_rank : 0), BLOCK, 0);
        gather.rbuf_desc = part(communicator, bytes + at, len, 0);
        gather.dtype = SHARP_DTYPE_INT8;
        gather.size = len;
        gather.offset = at;
        CHECK(sharp_coll_do_allgather_nb(communicator->comm, &gather, &request) == 0);
        await(request);
    }
    for (size_t i = 0; i < all / 4; i++)
        CHECK(communicator->buffer[i] == own_size * (int32_t)i - own_size * (own_size - 1) / 2);
}

static void *proxy(void *unused)
{
    for (int at = 0; at < COMMUNICATORS; at++)
        register_one(&communicators[at], at % 2);
    rings();
    for (int at = 0; at < COMMUNICATORS; at++)
        windows(&communicators[at]);
    /* A post that failed leaves NULL, and the proxy tests that like any other request. */
    CHECK(sharp_coll_req_test(NULL) == 1);
    return unused;
}

static void *close_all(void *unused)
{
    for (int at = 0; at < COMMUNICATORS; at++) {
        CHECK(sharp_coll_dereg_mr(communicators[at].context, communicators[at].handle) == 0);
        CHECK(sharp_coll_comm_destroy(communicators[at].comm) >= 0);
        CHECK(sharp_coll_finalize(communicators[at].context) >= 0);
    }
    return unused;
}

static void nccl_plugin(void)
{
    void *(*const steps[])(void *) = {connect_all, proxy, close_all};

    for (int at = 0; at < LENGTH(steps); at++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, steps[at], NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
}

static const struct test tests[] = {{"nccl_plugin", nccl_plugin, 2}};

int main(int argc, char **argv)
{
    return run_tests(tests, LENGTH(tests), argc, argv);
}
