/* SPDX-License-Identifier: Apache-2.0
 *
 * C12 .. C33: joining jobs and making groups.
 */
#include <pthread.h>

#include "conformance.h"

/* Checks that the sum of a one at every rank is the size of the group. */
static void sums_to_its_size(struct sharp_coll_comm *comm, int size)
{
    int32_t mine = 1, sum = 0;
    struct sharp_coll_reduce_spec spec = reduce_spec(&mine, &sum, 1, SHARP_DTYPE_INT, SHARP_OP_SUM);
    CHECK_OK(sharp_coll_do_allreduce(comm, &spec));
    CHECK(sum == size);
}

static void c12_any_device_list(void)
{
    static const char *const lists[] = {"", NULL, "mlx5_0", "mlx5_0:1", "mlx5_0:0", "mlx5_0::0", "mlx5_0:1,mlx5_1:1", "nonsense"};
    for (int at = 0; at < LENGTH(lists); at++) {
        struct sharp_coll_context *context = NULL;
        struct sharp_coll_init_spec spec = job_spec();
        spec.config.ib_dev_list = lists[at];
        CHECK_OK(sharp_coll_init(&spec, &context));
        CHECK_OK(sharp_coll_finalize(context));
    }
}

static void c13_spec_may_go_after_init(void)
{
    struct sharp_coll_context *context = NULL;
    struct sharp_coll_init_spec *spec = (struct sharp_coll_init_spec *)malloc(sizeof *spec);
    char *devices = (char *)malloc(32);
    CHECK(spec && devices);
    *spec = job_spec();
    strcpy(devices, "mlx5_0:1");
    spec->config.ib_dev_list = devices;
    CHECK_OK(sharp_coll_init(spec, &context));
    garbage(devices, 32);
    garbage(spec, sizeof *spec);
    free(devices);
    free(spec);
    struct oob oob = world;
    struct sharp_coll_comm *comm = make_group(context, &oob);
    sums_to_its_size(comm, own_size);
    CHECK_OK(sharp_coll_finalize(context));
}

/* Even and odd ranks are two jobs of the same number at the same time. */
static void c14_same_job_id_twice(void)
{
    int members[RANKS_MAX], size = 0;
    for (int r = own_rank % 2; r < own_size; r += 2)
        members[size++] = r;
    struct oob half = group_of(members, size), group = half;
    struct sharp_coll_context *context = NULL;
    struct sharp_coll_init_spec spec = job_spec();
    spec.world_rank = half.rank;
    spec.world_size = size;
    spec.oob_ctx = &half;
    CHECK_OK(sharp_coll_init(&spec, &context));
    meet(); /* both exist from now on until both are done */
    struct sharp_coll_comm *comm = make_group(context, &group);
    for (int round = 0; round < 20; round++)
        sums_to_its_size(comm, size);
    meet();
    CHECK_OK(sharp_coll_finalize(context));
}

static void c15_job_id_zero(void)
{
    struct sharp_coll_context *context = NULL;
    struct sharp_coll_init_spec spec = job_spec();
    struct oob oob = world;
    spec.job_id = 0;
    CHECK_OK(sharp_coll_init(&spec, &context));
    sums_to_its_size(make_group(context, &oob), own_size);
    CHECK_OK(sharp_coll_finalize(context));
}

static void c16_all_local_ranks_zero(void)
{
    struct fixture fixture = set_up(); /* this says 0 everywhere */
    sums_to_its_size(fixture.comm, own_size);
    take_down(&fixture);
}

struct side {
    struct fixture fixture;
    int rounds;
};

static void *use_one(void *argument)
{
    struct side *side = (struct side *)argument;
    for (int round = 0; round < side->rounds; round++)
        sums_to_its_size(side->fixture.comm, own_size);
    return NULL;
}

static void c17_two_contexts_two_threads(void)
{
    struct side sides[2];
    pthread_t threads[2];
    for (int at = 0; at < 2; at++) {
        sides[at].fixture = set_up();
        sides[at].rounds = 200;
    }
    for (int at = 0; at < 2; at++)
        CHECK(pthread_create(&threads[at], NULL, use_one, &sides[at]) == 0);
    for (int at = 0; at < 2; at++)
        CHECK(pthread_join(threads[at], NULL) == 0);
    for (int at = 0; at < 2; at++)
        take_down(&sides[at].fixture);
}

static void c18_again_after_finalize(void)
{
    for (int round = 0; round < 3; round++) {
        struct fixture fixture = set_up();
        sums_to_its_size(fixture.comm, own_size);
        take_down(&fixture);
    }
}

/* Every process is a job by itself. */
static void c19_alone(void)
{
    int self[1] = {own_rank};
    struct oob alone = group_of(self, 1), group = alone;
    struct sharp_coll_context *context = NULL;
    struct sharp_coll_init_spec spec = job_spec();
    spec.world_rank = 0;
    spec.world_size = 1;
    spec.oob_ctx = &alone;
    CHECK_OK(sharp_coll_init(&spec, &context));
    struct sharp_coll_comm *comm = make_group(context, &group);
    CHECK_OK(sharp_coll_do_barrier(comm));
    sums_to_its_size(comm, 1);
    CHECK_OK(sharp_coll_comm_destroy(comm));
    CHECK_OK(sharp_coll_finalize(context));
}

static void c20_world_ranks_of_any_kind(void)
{
    uint32_t ranks[RANKS_MAX];
    struct sharp_coll_context *context = join();
    for (int r = 0; r < own_size; r++)
        ranks[r] = (uint32_t)r;
    const uint32_t *const pointers[] = {NULL, ranks, (const uint32_t *)(uintptr_t)0x10, (const uint32_t *)(uintptr_t)0xdead00000001};
    for (int at = 0; at < LENGTH(pointers); at++) {
        struct oob oob = world;
        struct sharp_coll_comm *comm = NULL;
        struct sharp_coll_comm_init_spec spec = group_spec(&oob);
        spec.group_world_ranks = pointers[at];
        CHECK_OK(sharp_coll_comm_init(context, &spec, &comm));
        sums_to_its_size(comm, own_size);
        CHECK_OK(sharp_coll_comm_destroy(comm));
    }
    CHECK_OK(sharp_coll_finalize(context));
}

/* The root's value tells which rank the members take for the root. */
static void roots_are_group_ranks(struct sharp_coll_comm *comm, const struct oob *oob)
{
    for (int root = 0; root < oob->size; root++) {
        int32_t value = own_rank;
        struct sharp_coll_bcast_spec spec;
        garbage(&spec, sizeof spec);
        spec.root = root;
        spec.buf_desc = buffer_of(&value, sizeof value, NULL);
        spec.size = sizeof value;
        CHECK_OK(sharp_coll_do_bcast(comm, &spec));
        CHECK(value == oob->members[root]);
    }
}

static void c21_reversed_and_subsets(void)
{
    struct sharp_coll_context *context = join();
    int members[RANKS_MAX], size = 0;
    for (int r = own_size; r-- > 0;)
        members[size++] = r;
    struct oob reversed = group_of(members, size);
    struct sharp_coll_comm *comm = make_group(context, &reversed);
    roots_are_group_ranks(comm, &reversed);
    size = 0;
    for (int r = own_size; r-- > 0;)
        if (r % 2 == own_rank % 2)
            members[size++] = r;
    struct oob half = group_of(members, size);
    comm = make_group(context, &half);
    roots_are_group_ranks(comm, &half);
    sums_to_its_size(comm, size);
    CHECK_OK(sharp_coll_finalize(context));
}

static void c22_only_some_make_a_group(void)
{
    struct sharp_coll_context *context = join();
    int members[RANKS_MAX], size = 0;
    for (int r = 0; r < own_size; r++)
        if (r != 1)
            members[size++] = r;
    if (own_rank != 1) {
        struct oob others = group_of(members, size);
        sums_to_its_size(make_group(context, &others), size);
    }
    CHECK_OK(sharp_coll_finalize(context));
}

static void c23_groups_in_any_order(void)
{
    struct sharp_coll_context *context = join();
    struct sharp_coll_comm *comms[6];
    struct oob oobs[6];
    for (int at = 0; at < 6; at++) {
        oobs[at] = world;
        comms[at] = make_group(context, &oobs[at]);
    }
    static const int order[] = {3, 0, 5, 1, 4};
    for (int at = 0; at < LENGTH(order); at++) {
        CHECK_OK(sharp_coll_comm_destroy(comms[order[at]]));
        sums_to_its_size(comms[2], own_size);
    }
    oobs[0] = world;
    comms[0] = make_group(context, &oobs[0]);
    sums_to_its_size(comms[0], own_size);
    CHECK_OK(sharp_coll_finalize(context));
}

static void c24_failing_callbacks(void)
{
    static const int codes[] = {-1, 1, 77, -2147483647};
    for (int at = 0; at < LENGTH(codes); at++)
        for (int which = 0; which < 2; which++) {
            struct oob oob = world;
            struct sharp_coll_context *context = NULL;
            struct sharp_coll_init_spec spec = job_spec();
            spec.config.flags = SHARP_COLL_HIDE_ERRORS;
            spec.oob_ctx = &oob;
            if (which == 0)
                oob.fail_gather = codes[at];
            else
                oob.fail_bcast = codes[at];
            CHECK_CODE(sharp_coll_init(&spec, &context), SHARP_COLL_EOOB);
            CHECK(context == NULL);
        }
}

static void c25_one_verdict(void)
{
    struct sharp_coll_context *context = NULL;
    struct sharp_coll_init_spec spec = job_spec();
    spec.config.flags = SHARP_COLL_HIDE_ERRORS;
    /* One rank cannot say where it is: its host has a name that no host can have. How this is
       done depends on the library under test. */
    char name[400];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    if (own_rank == own_size - 1)
        CHECK(setenv("TRIB_HOST", name, 1) == 0);
    CHECK(sharp_coll_init(&spec, &context) < 0);
    CHECK(context == NULL);
    CHECK(unsetenv("TRIB_HOST") == 0);
    /* And one rank does not know its rank in a group. */
    context = join();
    struct sharp_coll_comm *comm = NULL;
    struct oob oob = world;
    struct sharp_coll_comm_init_spec group = group_spec(&oob);
    if (own_rank == own_size - 1)
        group.rank = own_size;
    CHECK(sharp_coll_comm_init(context, &group, &comm) < 0);
    CHECK(comm == NULL);
    oob = world;
    sums_to_its_size(make_group(context, &oob), own_size);
    CHECK_OK(sharp_coll_finalize(context));
}

static void c26_out_of_band_calls_are_modest(void)
{
    struct fixture fixture = set_up(); /* its gather writes to rbuf at all ranks */
    CHECK(world.gathers > 0 && world.gathers + world.bcasts <= 8);
    CHECK(fixture.oob.gathers > 0 && fixture.oob.gathers + fixture.oob.bcasts <= 8);
    CHECK(world.most_bytes < 1 << 20 && fixture.oob.most_bytes < 1 << 20);
    take_down(&fixture);
}

static void c27_groups_use_their_own_context(void)
{
    struct sharp_coll_context *context = join();
    struct oob oob = world;
    world.is_closed = 1;
    make_group(context, &oob);
    world.is_closed = 0;
    CHECK(oob.gathers > 0);
    CHECK_OK(sharp_coll_finalize(context));
}

static void c28_none_at_the_end(void)
{
    struct fixture fixture = set_up();
    world.is_closed = fixture.oob.is_closed = 1;
    sums_to_its_size(fixture.comm, own_size);
    take_down(&fixture);
}

static struct sharp_coll_context *under_test;

static void poll_it(void)
{
    CHECK_OK(sharp_coll_progress(under_test));
}

static void c29_progress_inside_callbacks(void)
{
    struct oob oob = world;
    under_test = join();
    oob.inside = poll_it;
    sums_to_its_size(make_group(under_test, &oob), own_size);
    CHECK_OK(sharp_coll_finalize(under_test));
}

static void c30_no_progress_and_no_polls(void)
{
    struct sharp_coll_context *context = NULL;
    struct sharp_coll_init_spec spec = job_spec();
    struct oob oob = world;
    spec.progress_func = NULL;
    spec.config.user_progress_num_polls = 0;
    CHECK_OK(sharp_coll_init(&spec, &context));
    struct sharp_coll_comm *comm = make_group(context, &oob);
    if (own_rank == 0)
        nap(300);
    CHECK_OK(sharp_coll_do_barrier(comm));
    CHECK_OK(sharp_coll_finalize(context));
}

static int progress_calls;

static int count_progress(void)
{
    return ++progress_calls;
}

static void c31_progress_is_called(void)
{
    struct sharp_coll_context *context = NULL;
    struct sharp_coll_init_spec spec = job_spec();
    struct oob oob = world;
    spec.progress_func = count_progress;
    CHECK_OK(sharp_coll_init(&spec, &context));
    struct sharp_coll_comm *comm = make_group(context, &oob);
    progress_calls = 0;
    if (own_rank == 0)
        nap(500);
    CHECK_OK(sharp_coll_do_barrier(comm));
    CHECK(own_rank == 0 || progress_calls > 10);
    CHECK_OK(sharp_coll_finalize(context));
}

static void c32_capabilities(void)
{
    struct sharp_coll_context *context = join();
    struct sharp_coll_caps caps, again;
    garbage(&caps, sizeof caps);
    memset(&again, 0, sizeof again);
    CHECK_OK(sharp_coll_caps_query(context, &caps));
    CHECK_OK(sharp_coll_caps_query(context, &again));
    CHECK(memcmp(&caps, &again, sizeof caps) == 0);
    CHECK((caps.support_mask.dtypes & 0xe00) == 0xe00);
    CHECK(caps.support_mask.reduce_ops & (1 << SHARP_OP_SUM));
    CHECK(caps.support_mask.feature_mask & SHARP_FEATURE_SAT);
    CHECK(caps.sharp_pkt_version >= 1);
    CHECK(caps.resources.max_osts > 0 && caps.resources.user_data_per_ost > 0 && caps.resources.max_groups > 0);
    CHECK(caps.resources.max_group_channels > 0 && caps.resources.osts_per_group > 0);
    CHECK(caps.reserved[0] == 0 && caps.support_mask.reserved[3] == 0);
    CHECK_OK(sharp_coll_finalize(context));
}

/* Every spec of this suite is full of garbage where that is allowed; here the reserved words of
   the configuration are, too. */
static void c33_reserved_words(void)
{
    for (int round = 0; round < 4; round++) {
        struct sharp_coll_context *context = NULL;
        struct sharp_coll_init_spec spec = job_spec();
        struct oob oob = world;
        garbage(spec.config.reserved, sizeof spec.config.reserved);
        garbage(spec.reserved, sizeof spec.reserved);
        spec.config.flags |= 0x7fff0000u;
        spec.config.coll_timeout = 100;
        CHECK_OK(sharp_coll_init(&spec, &context));
        sums_to_its_size(make_group(context, &oob), own_size);
        CHECK_OK(sharp_coll_finalize(context));
    }
}

static const struct test tests[] = {
    {"C12", c12_any_device_list, 1},
    {"C13", c13_spec_may_go_after_init, 1},
    {"C14", c14_same_job_id_twice, 2},
    {"C15", c15_job_id_zero, 1},
    {"C16", c16_all_local_ranks_zero, 1},
    {"C17", c17_two_contexts_two_threads, 1},
    {"C18", c18_again_after_finalize, 1},
    {"C19", c19_alone, 1},
    {"C20", c20_world_ranks_of_any_kind, 1},
    {"C21", c21_reversed_and_subsets, 2},
    {"C22", c22_only_some_make_a_group, 2},
    {"C23", c23_groups_in_any_order, 1},
    {"C24", c24_failing_callbacks, 1},
    {"C25", c25_one_verdict, 1},
    {"C26", c26_out_of_band_calls_are_modest, 1},
    {"C27", c27_groups_use_their_own_context, 1},
    {"C28", c28_none_at_the_end, 1},
    {"C29", c29_progress_inside_callbacks, 1},
    {"C30", c30_no_progress_and_no_polls, 1},
    {"C31", c31_progress_is_called, 2},
    {"C32", c32_capabilities, 1},
    {"C33", c33_reserved_words, 1},
};

int main(int argc, char **argv)
{
    return run_tests(tests, LENGTH(tests), argc, argv);
}
