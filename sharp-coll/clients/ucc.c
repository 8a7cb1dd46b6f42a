/* SPDX-License-Identifier: Apache-2.0
 *
 * This program uses the interface as UCC's SHARP team layer does. Each team has a context of its
 * own. Out-of-band collectives spin in UCC's progress engine, which in turn calls
 * sharp_coll_progress. Specs are on the stack, and only some of their fields are set.
 * Registrations come from a cache that rounds them to 16 bytes. Requests are tested and never
 * waited for.
 */
#include "../conformance/conformance.h"

/* What UCC keeps: a callback of its progress engine, which does not say for what it is called. */
static unsigned (*progress_callback)(void *);
static void *progress_argument;

static void progress_engine(void)
{
    if (progress_callback != NULL)
        progress_callback(progress_argument);
}

/* UCC has its own codes: failures are negative. */
static int service_bcast(void *context, void *buffer, int len, int root)
{
    progress_engine();
    return oob_bcast(context, buffer, len, root) ? -1 : 0;
}

static int service_barrier(void *context)
{
    progress_engine();
    return oob_barrier(context) ? -1 : 0;
}

static int service_gather(void *context, int root, void *sbuf, void *rbuf, int len)
{
    progress_engine();
    return oob_gather(context, root, sbuf, rbuf, len) ? -1 : 0;
}

struct team {
    struct sharp_coll_context *context;
    struct sharp_coll_comm *comm;
    struct oob oob;
    struct sharp_coll_caps caps;
};

static struct sharp_coll_context *open_context(struct oob *oob)
{
    struct sharp_coll_init_spec spec;
    struct sharp_coll_context *context = NULL;
    uint64_t job = (uint64_t)getpid() * 2654435761u;

    CHECK(service_bcast(oob, &job, sizeof job, 0) == 0);
    garbage(&spec, sizeof spec);
    spec.progress_func = NULL;
    spec.job_id = job;
    spec.world_rank = oob->rank;
    spec.world_size = oob->size;
    spec.world_local_rank = oob->rank;
    spec.group_channel_idx = 0;
    spec.enable_thread_support = 0;
    spec.oob_ctx = oob;
    spec.config = sharp_coll_default_config;
    spec.config.ib_dev_list = "";
    spec.config.user_progress_num_polls = 9999;
    spec.config.flags |= SHARP_COLL_HIDE_ERRORS | SHARP_COLL_DISABLE_LAZY_GROUP_RESOURCE_ALLOC;
    spec.oob_colls.bcast = service_bcast;
    spec.oob_colls.barrier = service_barrier;
    spec.oob_colls.gather = service_gather;
    int code = sharp_coll_init(&spec, &context);
    if (code < 0)
        fail(__FILE__, __LINE__, "no context: %s", sharp_coll_strerror(code));
    return context;
}

static void open_team(struct team *team, struct oob oob)
{
    struct sharp_coll_comm_init_spec spec;

    team->oob = oob;
    team->context = open_context(&team->oob);
    CHECK(sharp_coll_caps_query(team->context, &team->caps) >= 0);
    progress_callback = (unsigned (*)(void *))(void (*)(void))sharp_coll_progress;
    progress_argument = team->context;
    garbage(&spec, sizeof spec);
    spec.rank = oob.rank;
    spec.size = oob.size;
    spec.group_world_ranks = NULL;
    spec.oob_ctx = &team->oob;
    CHECK(sharp_coll_comm_init(team->context, &spec, &team->comm) >= 0);
}

static void close_team(struct team *team)
{
    progress_callback = NULL;
    CHECK(sharp_coll_comm_destroy(team->comm) >= 0);
    CHECK(sharp_coll_finalize(team->context) >= 0);
}

/* The registration cache, which rounds to 16 bytes on both sides. */
static void *cached(struct team *team, const void *start, size_t len)
{
    uintptr_t from = (uintptr_t)start & ~(uintptr_t)15, to = ((uintptr_t)start + len + 15) & ~(uintptr_t)15;
    void *handle;
    sharp_coll_reg_mr(team->context, (void *)from, to - from, &handle);
    CHECK(handle != NULL);
    return handle;
}

static struct sharp_coll_data_desc described(struct team *team, void *start, size_t len)
{
    struct sharp_coll_data_desc desc;
    garbage(&desc, sizeof desc);
    desc.buffer.ptr = start;
    desc.buffer.length = len;
    desc.buffer.mem_handle = cached(team, start, len);
    desc.type = SHARP_DATA_BUFFER;
    desc.mem_type = SHARP_MEM_TYPE_HOST;
    return desc;
}

/* A task of UCC's queue: the request is tested again and again, and the queue is looked at once
   in a thousand times. */
static void await(struct team *team, void *request)
{
    for (int asked = 1; sharp_coll_req_test(request) == 0; asked++)
        if (asked % 1000 == 0)
            sharp_coll_progress(team->context);
    sharp_coll_req_free(request);
}

static void sum(struct team *team, float *from, float *to, size_t count)
{
    struct sharp_coll_reduce_spec spec;
    void *request;

    garbage(&spec, sizeof spec);
    spec.sbuf_desc = described(team, from, count * sizeof *from);
    spec.rbuf_desc = from == to ? spec.sbuf_desc : described(team, to, count * sizeof *to);
    spec.aggr_mode = SHARP_AGGREGATION_NONE;
    spec.length = count;
    spec.dtype = SHARP_DTYPE_FLOAT;
    spec.op = SHARP_OP_SUM;
    CHECK(sharp_coll_do_allreduce_nb(team->comm, &spec, &request) >= 0);
    garbage(&spec, sizeof spec);
    await(team, request);
}

static void allreduces(struct team *team)
{
    static const size_t counts[] = {1, 7, 256, 5000, 100000};
    int n = team->oob.size;

    for (int at = 0; at < LENGTH(counts); at++) {
        float *from = (float *)malloc(counts[at] * sizeof *from), *to = (float *)malloc(counts[at] * sizeof *to);
        CHECK(from && to);
        for (size_t i = 0; i < counts[at]; i++)
            from[i] = (float)(i % 100) + (float)team->oob.rank;
        sum(team, from, to, counts[at]);
        sum(team, from, from, counts[at]);
        for (size_t i = 0; i < counts[at]; i++) {
            float expected = (float)n * (float)(i % 100) + (float)(n * (n - 1) / 2);
            CHECK(to[i] == expected && from[i] == expected);
        }
        free(from);
        free(to);
    }
}

/* MAXLOC of numbers, with the type of the tag as the stack was: whatever that means, the buffers
   end where the numbers do. */
static void largest(struct team *team)
{
    enum { COUNT = 100 };
    float *from = (float *)fenced(COUNT * sizeof *from), *to = (float *)fenced(COUNT * sizeof *to);
    struct sharp_coll_reduce_spec spec;
    void *request;

    for (int left_over = 0; left_over <= SHARP_DTYPE_NULL; left_over++)
        for (int is_in_place = 0; is_in_place < 2; is_in_place++) {
            garbage(&spec, sizeof spec);
            spec.sbuf_desc = described(team, is_in_place ? to : from, COUNT * sizeof *from);
            spec.rbuf_desc = described(team, to, COUNT * sizeof *to);
            spec.length = COUNT;
            spec.dtype = SHARP_DTYPE_FLOAT;
            spec.op = SHARP_OP_MAXLOC;
            spec.tag_dtype = (enum sharp_datatype)left_over;
            CHECK(sharp_coll_do_allreduce_nb(team->comm, &spec, &request) < 0);
        }
}

static void scattered(struct team *team)
{
    enum { BLOCK = 600 };
    size_t n = (size_t)team->oob.size;
    int32_t *from = (int32_t *)malloc(n * BLOCK * 4), *to = (int32_t *)malloc(BLOCK * 4);
    struct sharp_coll_reduce_spec spec;
    void *request;

    CHECK(from && to);
    for (size_t i = 0; i < n * BLOCK; i++)
        from[i] = (int32_t)i + team->oob.rank;
    garbage(&spec, sizeof spec);
    spec.sbuf_desc = described(team, from, n * BLOCK * 4);
    spec.rbuf_desc = described(team, to, BLOCK * 4);
    spec.length = BLOCK;
    spec.offset = 0;
    spec.dtype = SHARP_DTYPE_INT;
    spec.op = SHARP_OP_SUM;
    CHECK(sharp_coll_do_reduce_scatter_nb(team->comm, &spec, &request) >= 0);
    await(team, request);
    for (size_t i = 0; i < BLOCK; i++)
        CHECK(to[i] == (int32_t)(n * (i + (size_t)team->oob.rank * BLOCK) + n * (n - 1) / 2));
    free(from);
    free(to);
}

/* In place: the rank's own block is already where it belongs. Type and lengths count bytes, and
   the size is not set. */
static void gathered(struct team *team)
{
    enum { BLOCK = 999 };
    size_t n = (size_t)team->oob.size;
    unsigned char *to = (unsigned char *)calloc(n, BLOCK), *own = to + BLOCK * (size_t)team->oob.rank;
    struct sharp_coll_gather_spec spec;
    void *request;

    CHECK(to != NULL);
    memset(own, 'a' + team->oob.rank, BLOCK);
    garbage(&spec, sizeof spec);
    spec.sbuf_desc = described(team, own, BLOCK);
    spec.rbuf_desc = described(team, to, n * BLOCK);
    spec.offset = 0;
    spec.dtype = SHARP_DTYPE_INT8;
    CHECK(sharp_coll_do_allgather_nb(team->comm, &spec, &request) >= 0);
    await(team, request);
    for (size_t i = 0; i < n * BLOCK; i++)
        CHECK(to[i] == 'a' + i / BLOCK);
    free(to);
}

static void spread(struct team *team)
{
    unsigned char bytes[1111];
    struct sharp_coll_bcast_spec spec;
    void *request;

    for (int root = 0; root < team->oob.size; root++) {
        memset(bytes, team->oob.rank == root ? 40 + root : 0, sizeof bytes);
        garbage(&spec, sizeof spec);
        spec.root = root;
        spec.size = sizeof bytes;
        spec.buf_desc = described(team, bytes, sizeof bytes);
        CHECK(sharp_coll_do_bcast_nb(team->comm, &spec, &request) >= 0);
        await(team, request);
        for (size_t i = 0; i < sizeof bytes; i++)
            CHECK(bytes[i] == 40 + root);
    }
}

/* A post must not wait: rank 0 answers the others' messages only after it. */
static void barrier_before_message(struct team *team)
{
    void *request;
    char byte = 0;

    if (own_rank == 0)
        CHECK(sharp_coll_do_barrier_nb(team->comm, &request) >= 0);
    for (int r = 1; r < own_size; r++)
        if (own_rank == 0)
            whole(lines[r], &byte, 1, 1);
    if (own_rank != 0) {
        whole(lines[0], &byte, 1, 0);
        CHECK(sharp_coll_do_barrier_nb(team->comm, &request) >= 0);
    }
    await(team, request);
}

static void every_type_of_call(struct team *team)
{
    uint64_t small = team->caps.support_mask.dtypes >> SHARP_DTYPE_BFLOAT16 & 7;

    CHECK(small == 7 && (team->caps.support_mask.feature_mask & SHARP_FEATURE_SAT) != 0);
    allreduces(team);
    largest(team);
    scattered(team);
    gathered(team);
    spread(team);
    barrier_before_message(team);
}

/* There are two teams at once, the second with reversed ranks, and a third after them. The first
   team is the first to end. */
static void ucc(void)
{
    struct team teams[3];
    int reversed[RANKS_MAX];

    for (int r = 0; r < own_size; r++)
        reversed[r] = own_size - 1 - r;
    open_team(&teams[0], world);
    open_team(&teams[1], group_of(reversed, own_size));
    every_type_of_call(&teams[0]);
    every_type_of_call(&teams[1]);
    close_team(&teams[0]);
    allreduces(&teams[1]);
    close_team(&teams[1]);
    open_team(&teams[2], world);
    every_type_of_call(&teams[2]);
    close_team(&teams[2]);
}

static const struct test tests[] = {{"ucc", ucc, 2}};

int main(int argc, char **argv)
{
    return run_tests(tests, LENGTH(tests), argc, argv);
}
