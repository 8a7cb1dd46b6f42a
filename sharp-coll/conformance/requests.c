/* SPDX-License-Identifier: Apache-2.0
 *
 * C58 .. C70: operations in flight.
 */
#include <pthread.h>

#include "conformance.h"

/* A request for the sum of one integer; `in` and `out` stay until it is done. */
static void *post_sum(struct sharp_coll_comm *comm, int32_t *in, int32_t *out)
{
    void *request = NULL;
    struct sharp_coll_reduce_spec spec = reduce_spec(in, out, 1, SHARP_DTYPE_INT, SHARP_OP_SUM);
    CHECK_OK(sharp_coll_do_allreduce_nb(comm, &spec, &request));
    CHECK(request != NULL);
    return request;
}

static int sum_of_ranks(int times)
{
    return own_size * (own_size - 1) / 2 * times;
}

/* Rank 0 comes last: it must learn that all others have posted before it posts. */
static void c58_posts_do_not_wait(void)
{
    struct fixture fixture = set_up();
    enum { KINDS = 6, COUNT = 50000 };
    static int32_t in[COUNT * RANKS_MAX], out[COUNT * RANKS_MAX];
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t count = 1; count <= COUNT; count *= 50) {
            void *request = NULL;
            struct sharp_coll_reduce_spec reduce = reduce_spec(in, out, count, SHARP_DTYPE_INT, SHARP_OP_SUM);
            struct sharp_coll_bcast_spec bcast;
            struct sharp_coll_gather_spec gather;
            garbage(&bcast, sizeof bcast);
            garbage(&gather, sizeof gather);
            if (own_rank == 0)
                meet();
            switch (kind) {
            case 0: CHECK_OK(sharp_coll_do_barrier_nb(fixture.comm, &request)); break;
            case 1: CHECK_OK(sharp_coll_do_allreduce_nb(fixture.comm, &reduce, &request)); break;
            case 2:
                reduce.root = 0;
                CHECK_OK(sharp_coll_do_reduce_nb(fixture.comm, &reduce, &request));
                break;
            case 3:
                bcast.root = 0;
                bcast.buf_desc = buffer_of(in, count * 4, NULL);
                bcast.size = count * 4;
                CHECK_OK(sharp_coll_do_bcast_nb(fixture.comm, &bcast, &request));
                break;
            case 4:
                reduce.sbuf_desc.buffer.length *= (size_t)own_size;
                reduce.offset = 0;
                CHECK_OK(sharp_coll_do_reduce_scatter_nb(fixture.comm, &reduce, &request));
                break;
            default:
                gather.sbuf_desc = buffer_of(in, count * 4, NULL);
                gather.rbuf_desc = buffer_of(out, count * 4 * (size_t)own_size, NULL);
                gather.offset = 0;
                CHECK_OK(sharp_coll_do_allgather_nb(fixture.comm, &gather, &request));
                break;
            }
            if (own_rank != 0)
                meet();
            finish(request);
        }
    take_down(&fixture);
}

static void c59_testing_is_enough(void)
{
    struct fixture fixture = set_up();
    enum { COUNT = 200000 };
    static int32_t in[COUNT], out[COUNT];
    for (int i = 0; i < COUNT; i++)
        in[i] = own_rank;
    struct sharp_coll_reduce_spec spec = reduce_spec(in, out, COUNT, SHARP_DTYPE_INT, SHARP_OP_SUM);
    void *request = NULL;
    CHECK_OK(sharp_coll_do_allreduce_nb(fixture.comm, &spec, &request));
    finish(request); /* this tests and does nothing else */
    for (int i = 0; i < COUNT; i++)
        CHECK(out[i] == sum_of_ranks(1));
    take_down(&fixture);
}

static void c60_test_says_zero_or_one(void)
{
    struct fixture fixture = set_up();
    int32_t in = own_rank, out = -1;
    if (own_rank == 0)
        nap(50);
    void *request = post_sum(fixture.comm, &in, &out);
    int answer;
    while ((answer = sharp_coll_req_test(request)) != 1)
        CHECK(answer == 0);
    for (int again = 0; again < 1000; again++)
        CHECK(sharp_coll_req_test(request) == 1);
    CHECK(out == sum_of_ranks(1));
    CHECK_OK(sharp_coll_req_free(request));
    take_down(&fixture);
}

static void c61_null_requests(void)
{
    struct fixture fixture = set_up();
    void *request = (void *)&fixture;
    struct sharp_coll_reduce_spec spec = reduce_spec(NULL, NULL, 4, SHARP_DTYPE_INT, SHARP_OP_SUM);
    CHECK_OK(sharp_coll_req_free(NULL));
    CHECK(sharp_coll_req_test(NULL) == 1);
    CHECK(sharp_coll_do_allreduce_nb(fixture.comm, &spec, &request) < 0);
    CHECK(request == (void *)&fixture);
    take_down(&fixture);
}

static void c62_many_outstanding(void)
{
    struct fixture fixture = set_up();
    enum { POSTS = 512 };
    static int32_t in[POSTS], out[POSTS];
    static void *requests[POSTS];
    for (int round = 0; round < 3; round++) {
        for (int at = 0; at < POSTS; at++) {
            in[at] = own_rank * at;
            requests[at] = post_sum(fixture.comm, &in[at], &out[at]);
        }
        for (int at = 0; at < POSTS; at++) {
            finish(requests[at]);
            CHECK(out[at] == sum_of_ranks(at));
        }
    }
    take_down(&fixture);
}

static void c63_testing_the_oldest_only(void)
{
    struct fixture fixture = set_up();
    enum { POSTS = 100 };
    static int32_t in[POSTS], out[POSTS];
    void *requests[POSTS];
    for (int at = 0; at < POSTS; at++) {
        in[at] = own_rank + at;
        requests[at] = post_sum(fixture.comm, &in[at], &out[at]);
    }
    finish(requests[0]);
    for (int at = 1; at < POSTS; at++)
        finish(requests[at]);
    /* And an older request ends while nothing tests the newer one. */
    int32_t older = 1, newer = 1, sums[2];
    void *first = post_sum(fixture.comm, &older, &sums[0]);
    void *second = post_sum(fixture.comm, &newer, &sums[1]);
    finish(first);
    CHECK(sums[0] == own_size);
    CHECK_OK(sharp_coll_req_wait(second));
    take_down(&fixture);
}

static void c64_wait_frees(void)
{
    struct fixture fixture = set_up();
    for (int round = 0; round < 100; round++) {
        int32_t in = own_rank, out = -1;
        void *request = post_sum(fixture.comm, &in, &out);
        CHECK_OK(sharp_coll_req_wait(request));
        CHECK(out == sum_of_ranks(1));
        /* What a client does after a failed wait is safe after any wait. */
        CHECK_OK(sharp_coll_req_free(request));
        CHECK(sharp_coll_req_wait(request) < 0);
    }
    take_down(&fixture);
}

static void c65_unfreed_requests(void)
{
    struct fixture fixture = set_up();
    static int32_t in[300], out[300];
    for (int at = 0; at < 300; at++) {
        in[at] = own_rank;
        void *request = post_sum(fixture.comm, &in[at], &out[at]);
        while (sharp_coll_req_test(request) == 0)
            ;
        CHECK(out[at] == sum_of_ranks(1));
    }
    take_down(&fixture);
}

static void c66_two_groups_in_different_orders(void)
{
    struct fixture fixture = set_up();
    struct oob oob = world;
    struct sharp_coll_comm *other = make_group(fixture.context, &oob);
    for (int round = 0; round < 100; round++) {
        int32_t in[2] = {own_rank, 2 * own_rank}, out[2];
        void *requests[2];
        for (int at = 0; at < 2; at++) {
            int which = (at + own_rank + round) % 2;
            requests[which] = post_sum(which ? other : fixture.comm, &in[which], &out[which]);
        }
        finish(requests[round % 2]);
        finish(requests[1 - round % 2]);
        CHECK(out[0] == sum_of_ranks(1) && out[1] == sum_of_ranks(2));
    }
    CHECK_OK(sharp_coll_comm_destroy(other));
    take_down(&fixture);
}

static void c67_barrier_among_posts(void)
{
    struct fixture fixture = set_up();
    for (int round = 0; round < 100; round++) {
        int32_t in[2] = {own_rank, 3 * own_rank}, out[2];
        void *first = post_sum(fixture.comm, &in[0], &out[0]);
        CHECK_OK(sharp_coll_do_barrier(fixture.comm));
        void *second = post_sum(fixture.comm, &in[1], &out[1]);
        CHECK_OK(sharp_coll_do_barrier(fixture.comm));
        finish(first);
        finish(second);
        CHECK(out[0] == sum_of_ranks(1) && out[1] == sum_of_ranks(3));
    }
    take_down(&fixture);
}

static void c68_late_ranks(void)
{
    struct sharp_coll_context *context = NULL;
    struct sharp_coll_init_spec spec = job_spec();
    struct oob oob = world;
    spec.config.coll_timeout = 100;
    CHECK_OK(sharp_coll_init(&spec, &context));
    struct sharp_coll_comm *comm = make_group(context, &oob);
    int32_t in = own_rank, out = -1;
    if (own_rank == 0)
        nap(2500);
    void *request = post_sum(comm, &in, &out);
    CHECK_OK(sharp_coll_req_wait(request));
    CHECK(out == sum_of_ranks(1));
    CHECK_OK(sharp_coll_finalize(context));
}

struct worker {
    struct sharp_coll_context *context;
    struct sharp_coll_comm *comm;
    int *stop;
};

static void *use_group(void *argument)
{
    struct worker *worker = (struct worker *)argument;
    for (int round = 0; round < 100; round++) {
        int32_t in = own_rank + round, out = -1;
        void *request = post_sum(worker->comm, &in, &out), *handle = NULL;
        CHECK_OK(sharp_coll_reg_mr(worker->context, &in, sizeof in, &handle));
        finish(request);
        CHECK(out == sum_of_ranks(1) + own_size * round);
        CHECK_OK(sharp_coll_dereg_mr(worker->context, handle));
    }
    return NULL;
}

static void *drive(void *argument)
{
    struct worker *worker = (struct worker *)argument;
    while (!__atomic_load_n(worker->stop, __ATOMIC_RELAXED)) {
        CHECK_OK(sharp_coll_progress(worker->context));
        nap(1);
    }
    return NULL;
}

static void c69_threads(void)
{
    struct sharp_coll_context *context = NULL;
    struct sharp_coll_init_spec spec = job_spec();
    enum { THREADS = 3 };
    struct worker workers[THREADS + 1];
    struct oob oobs[THREADS];
    pthread_t threads[THREADS + 1];
    int stop = 0;
    spec.enable_thread_support = 1;
    CHECK_OK(sharp_coll_init(&spec, &context));
    for (int at = 0; at <= THREADS; at++) {
        workers[at].context = context;
        workers[at].stop = &stop;
        workers[at].comm = NULL;
        if (at < THREADS) {
            oobs[at] = world;
            workers[at].comm = make_group(context, &oobs[at]);
        }
        CHECK(at < THREADS || pthread_create(&threads[at], NULL, drive, &workers[at]) == 0);
    }
    for (int at = 0; at < THREADS; at++)
        CHECK(pthread_create(&threads[at], NULL, use_group, &workers[at]) == 0);
    for (int at = 0; at < THREADS; at++)
        CHECK(pthread_join(threads[at], NULL) == 0);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    CHECK(pthread_join(threads[THREADS], NULL) == 0);
    CHECK_OK(sharp_coll_finalize(context));
}

static void c70_locked_memory(void)
{
    /* If there is a limit on locked memory, it is not what is tested. */
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        fprintf(stderr, "mlockall: %s; tested without\n", strerror(errno));
    struct fixture fixture = set_up();
    enum { COUNT = 100000 };
    static int32_t in[COUNT], out[COUNT];
    for (int i = 0; i < COUNT; i++)
        in[i] = own_rank;
    struct sharp_coll_reduce_spec spec = reduce_spec(in, out, COUNT, SHARP_DTYPE_INT, SHARP_OP_SUM);
    CHECK_OK(sharp_coll_do_allreduce(fixture.comm, &spec));
    CHECK(out[COUNT - 1] == sum_of_ranks(1));
    take_down(&fixture);
}

static const struct test tests[] = {
    {"C58", c58_posts_do_not_wait, 2},
    {"C59", c59_testing_is_enough, 1},
    {"C60", c60_test_says_zero_or_one, 1},
    {"C61", c61_null_requests, 1},
    {"C62", c62_many_outstanding, 1},
    {"C63", c63_testing_the_oldest_only, 1},
    {"C64", c64_wait_frees, 1},
    {"C65", c65_unfreed_requests, 1},
    {"C66", c66_two_groups_in_different_orders, 1},
    {"C67", c67_barrier_among_posts, 1},
    {"C68", c68_late_ranks, 1},
    {"C69", c69_threads, 1},
    {"C70", c70_locked_memory, 1},
};

int main(int argc, char **argv)
{
    return run_tests(tests, LENGTH(tests), argc, argv);
}
