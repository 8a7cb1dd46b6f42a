/* SPDX-License-Identifier: Apache-2.0
 *
 * This program uses the interface as MVAPICH does. It loads the library with dlopen and looks
 * each function up by name. It has a default configuration of its own under the library's name.
 * Half of a spec from malloc is never set. It uses barriers and sums, and makes everything else
 * of sums. Its private copy of the input is freed as soon as a post returns, and the library is
 * unloaded at the end. In MVAPICH one process of each host makes groups, and even then the
 * callbacks work over all processes; so this is its mode with one process per host.
 */
#include <dlfcn.h>

#define LOADS_THE_LIBRARY
#include "../conformance/conformance.h"

/* The program's own object, which has the name of the library's. */
const struct sharp_coll_config sharp_coll_default_config = {"mlx5_0", 128, 100, 0, {0}};

static struct {
    int (*init)(struct sharp_coll_init_spec *, struct sharp_coll_context **);
    int (*finalize)(struct sharp_coll_context *);
    int (*progress)(struct sharp_coll_context *);
    int (*comm_init)(struct sharp_coll_context *, struct sharp_coll_comm_init_spec *, struct sharp_coll_comm **);
    int (*comm_destroy)(struct sharp_coll_comm *);
    int (*caps_query)(struct sharp_coll_context *, struct sharp_coll_caps *);
    int (*barrier)(struct sharp_coll_comm *);
    int (*barrier_nb)(struct sharp_coll_comm *, void **);
    int (*allreduce)(struct sharp_coll_comm *, struct sharp_coll_reduce_spec *);
    int (*allreduce_nb)(struct sharp_coll_comm *, struct sharp_coll_reduce_spec *, void **);
    int (*reduce)(struct sharp_coll_comm *, struct sharp_coll_reduce_spec *);
    int (*reduce_nb)(struct sharp_coll_comm *, struct sharp_coll_reduce_spec *, void **);
    int (*bcast)(struct sharp_coll_comm *, struct sharp_coll_bcast_spec *);
    int (*bcast_nb)(struct sharp_coll_comm *, struct sharp_coll_bcast_spec *, void **);
    int (*req_test)(void *);
    int (*req_wait)(void *);
    int (*req_free)(void *);
    int (*reg_mr)(struct sharp_coll_context *, void *, size_t, void **);
    int (*dereg_mr)(struct sharp_coll_context *, void *);
    int (*print_config)(FILE *, enum config_print_flags);
    const char *(*strerror)(int);
    int (*log_early_init)(void);
    int (*dump_stats)(struct sharp_coll_context *);
} sharp;

static const struct {
    const char *name;
    void *pointer;
} symbols[] = {
    {"sharp_coll_init", &sharp.init},
    {"sharp_coll_finalize", &sharp.finalize},
    {"sharp_coll_progress", &sharp.progress},
    {"sharp_coll_comm_init", &sharp.comm_init},
    {"sharp_coll_comm_destroy", &sharp.comm_destroy},
    {"sharp_coll_caps_query", &sharp.caps_query},
    {"sharp_coll_do_barrier", &sharp.barrier},
    {"sharp_coll_do_barrier_nb", &sharp.barrier_nb},
    {"sharp_coll_do_allreduce", &sharp.allreduce},
    {"sharp_coll_do_allreduce_nb", &sharp.allreduce_nb},
    {"sharp_coll_do_reduce", &sharp.reduce},
    {"sharp_coll_do_reduce_nb", &sharp.reduce_nb},
    {"sharp_coll_do_bcast", &sharp.bcast},
    {"sharp_coll_do_bcast_nb", &sharp.bcast_nb},
    {"sharp_coll_req_test", &sharp.req_test},
    {"sharp_coll_req_wait", &sharp.req_wait},
    {"sharp_coll_req_free", &sharp.req_free},
    {"sharp_coll_reg_mr", &sharp.reg_mr},
    {"sharp_coll_dereg_mr", &sharp.dereg_mr},
    {"sharp_coll_print_config", &sharp.print_config},
    {"sharp_coll_strerror", &sharp.strerror},
    {"sharp_coll_log_early_init", &sharp.log_early_init},
    {"sharp_coll_dump_stats", &sharp.dump_stats},
};

static void *load(void)
{
    void *library = dlopen("libsharp_coll.so", RTLD_NOW);

    if (library == NULL)
        fail(__FILE__, __LINE__, "%s", dlerror());
    for (int at = 0; at < LENGTH(symbols); at++) {
        void *symbol = dlsym(library, symbols[at].name);
        if (symbol == NULL)
            fail(__FILE__, __LINE__, "%s is missing", symbols[at].name);
        memcpy(symbols[at].pointer, &symbol, sizeof symbol);
    }
    return library;
}

/* While the job is joined, callbacks know the world without being given it. */
static int all_bcast(void *context, void *buffer, int len, int root)
{
    (void)context;
    return oob_bcast(&world, buffer, len, root);
}

static int all_barrier(void *context)
{
    (void)context;
    return oob_barrier(&world);
}

static int all_gather(void *context, int root, void *sbuf, void *rbuf, int len)
{
    (void)context;
    return oob_gather(&world, root, sbuf, rbuf, len);
}

static void *scrap(size_t len)
{
    void *memory = malloc(len);
    CHECK(memory != NULL);
    garbage(memory, len);
    return memory;
}

static struct sharp_coll_context *start(void)
{
    struct sharp_coll_init_spec *spec = (struct sharp_coll_init_spec *)scrap(sizeof *spec);
    struct sharp_coll_caps *caps = (struct sharp_coll_caps *)scrap(sizeof *caps);
    struct sharp_coll_context *context = NULL;
    char *device = strdup("mlx5_0:0");

    setenv("SHARP_COLL_ENABLE_GROUP_TRIM", "0", 0);
    setenv("SHARP_COLL_SHARP_ENABLE_MCAST_TARGET", "0", 0);
    sharp.log_early_init();
    spec->progress_func = NULL;
    spec->job_id = strtoull("1234", NULL, 10);
    spec->world_rank = own_rank;
    spec->world_local_rank = own_rank;
    spec->world_size = own_size;
    spec->enable_thread_support = 0;
    spec->group_channel_idx = 0;
    spec->oob_colls.barrier = all_barrier;
    spec->oob_colls.bcast = all_bcast;
    spec->oob_colls.gather = all_gather;
    spec->config = sharp_coll_default_config;
    spec->config.ib_dev_list = device;
    CHECK(sharp.init(spec, &context) == 0);
    free(spec);
    CHECK(sharp.caps_query(context, caps) == 0);
    free(caps);
    free(device);
    return context;
}

static struct sharp_coll_comm *group(struct sharp_coll_context *context)
{
    struct sharp_coll_comm_init_spec *spec = (struct sharp_coll_comm_init_spec *)scrap(sizeof *spec);
    struct sharp_coll_comm *comm = NULL;

    /* The list of members is left as malloc had it. */
    spec->rank = own_rank;
    spec->size = own_size;
    spec->oob_ctx = &world;
    CHECK(sharp.comm_init(context, spec, &comm) == 0);
    free(spec);
    return comm;
}

static void describe(struct sharp_coll_reduce_spec *spec, void *from, void *to, size_t count)
{
    spec->sbuf_desc.type = spec->rbuf_desc.type = SHARP_DATA_BUFFER;
    spec->sbuf_desc.mem_type = spec->rbuf_desc.mem_type = SHARP_MEM_TYPE_HOST;
    spec->sbuf_desc.buffer.ptr = from;
    spec->rbuf_desc.buffer.ptr = to;
    spec->sbuf_desc.buffer.length = spec->rbuf_desc.buffer.length = count * 8;
    spec->sbuf_desc.buffer.mem_handle = spec->rbuf_desc.buffer.mem_handle = NULL;
    spec->dtype = SHARP_DTYPE_LONG;
    spec->op = SHARP_OP_SUM;
    spec->length = count;
}

static void sum(struct sharp_coll_comm *comm, int64_t *from, int64_t *to, size_t count)
{
    struct sharp_coll_reduce_spec *spec = (struct sharp_coll_reduce_spec *)scrap(sizeof *spec);
    describe(spec, from, to, count);
    spec->aggr_mode = SHARP_AGGREGATION_NONE;
    CHECK(sharp.allreduce(comm, spec) == 0);
    free(spec);
}

static void sums(struct sharp_coll_comm *comm)
{
    int64_t from[64], to[64];

    for (size_t count = 1; count <= LENGTH(from); count *= 2) {
        for (size_t i = 0; i < count; i++)
            from[i] = (int64_t)i << own_rank;
        sum(comm, from, to, count);
        for (size_t i = 0; i < count; i++)
            CHECK(to[i] == (int64_t)i * ((1 << own_size) - 1));
    }
}

/* A broadcast is a sum with zeros, and a reduction is a sum whose result all ranks but the root
 * forget. */
static void emulated(struct sharp_coll_comm *comm)
{
    int64_t bytes[32], result[32];

    for (int root = 0; root < own_size; root++) {
        for (int i = 0; i < LENGTH(bytes); i++)
            bytes[i] = own_rank == root ? (int64_t)(0x8123456789abcdefu + (uint64_t)i) : 0;
        sum(comm, bytes, result, LENGTH(bytes));
        for (int i = 0; i < LENGTH(bytes); i++)
            CHECK(result[i] == (int64_t)(0x8123456789abcdefu + (uint64_t)i));
    }
}

/* In place: the input is a copy that lives as long as the call that posts. Memory types and mode
   are not set. */
static void in_place_by_request(struct sharp_coll_comm *comm)
{
    int64_t vectors[8][512];
    void *requests[8];

    for (int at = 0; at < LENGTH(requests); at++) {
        struct sharp_coll_reduce_spec *spec = (struct sharp_coll_reduce_spec *)scrap(sizeof *spec);
        int64_t *copy = (int64_t *)malloc(sizeof vectors[at]);
        CHECK(copy != NULL);
        for (int i = 0; i < LENGTH(vectors[at]); i++)
            vectors[at][i] = copy[i] = i + at;
        describe(spec, copy, vectors[at], LENGTH(vectors[at]));
        garbage(&spec->sbuf_desc.mem_type, sizeof spec->sbuf_desc.mem_type);
        CHECK(sharp.allreduce_nb(comm, spec, &requests[at]) == 0);
        memset(copy, 0xee, sizeof vectors[at]);
        free(copy);
        free(spec);
    }
    for (int at = 0; at < LENGTH(requests); at++)
        CHECK(sharp.req_wait(requests[at]) == 0);
    for (int at = 0; at < LENGTH(requests); at++)
        for (int i = 0; i < LENGTH(vectors[at]); i++)
            CHECK(vectors[at][i] == (int64_t)own_size * (i + at));
}

static void mvapich(void)
{
    void *library = load();
    struct sharp_coll_context *context = start();
    struct sharp_coll_comm *comm = group(context);
    void *request = NULL;

    CHECK(sharp.barrier(comm) == 0);
    sums(comm);
    emulated(comm);
    in_place_by_request(comm);
    CHECK(sharp.barrier_nb(comm, &request) == 0 && sharp.req_wait(request) == 0);
    /* This takes longer than the limit of 100 ms between one call and the next. */
    if (own_rank == 0)
        nap(300);
    CHECK(sharp.barrier(comm) == 0);
    CHECK(sharp.comm_destroy(comm) == 0);
    CHECK(sharp.finalize(context) == 0);
    CHECK(dlclose(library) == 0);
}

static const struct test tests[] = {{"mvapich", mvapich, 2}};

int main(int argc, char **argv)
{
    return run_tests(tests, LENGTH(tests), argc, argv);
}
