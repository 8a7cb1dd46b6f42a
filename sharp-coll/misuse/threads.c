/* SPDX-License-Identifier: Apache-2.0
 *
 * threads.c - several threads use one request, and ranks leave during a call. Whatever is
 * returned, a buffer of the library is used by one operation at a time, and what is reported as
 * done is done.
 *
 * All data go through lists of pieces or overlap with their result, so that the library needs
 * buffers of its own.
 */
#include <pthread.h>

#include "vectors.h"

enum { COUNT = 3000, PIECES = 3 };

/* A sum in flight, from and to lists of pieces. */
struct sum {
    int32_t in[COUNT], out[COUNT];
    uint64_t key;
    void *request;
    pthread_t thread;
    int code;
};

static struct sharp_coll_data_desc cut(int32_t *vector, struct sharp_data_iov *list)
{
    struct sharp_coll_data_desc desc = buffer_of(NULL, 0, NULL);
    size_t piece = COUNT * sizeof *vector / PIECES;
    desc.type = SHARP_DATA_IOV;
    desc.iov.count = PIECES;
    desc.iov.vector = list;
    for (size_t p = 0; p < PIECES; p++) {
        list[p].ptr = (char *)vector + p * piece;
        list[p].length = piece;
        list[p].mem_handle = NULL;
    }
    return desc;
}

static void post(struct sum *sum, struct sharp_coll_comm *comm, uint64_t key)
{
    struct sharp_data_iov from[PIECES], to[PIECES];
    struct sharp_coll_reduce_spec spec = reduce_spec(sum->in, sum->out, COUNT, SHARP_DTYPE_INT, SHARP_OP_SUM);
    sum->key = key;
    fill(sum->in, 0, COUNT, key, own_rank, SHARP_DTYPE_INT);
    memset(sum->out, 0, sizeof sum->out);
    spec.sbuf_desc = cut(sum->in, from);
    spec.rbuf_desc = cut(sum->out, to);
    CHECK_OK(sharp_coll_do_allreduce_nb(comm, &spec, &sum->request));
}

static int is_summed(const struct sum *sum)
{
    return is_reduced(sum->out, 0, COUNT, sum->key, own_size, SHARP_DTYPE_INT, SHARP_OP_SUM);
}

static void *wait_for(void *argument)
{
    struct sum *sum = (struct sum *)argument;
    sum->code = sharp_coll_req_wait(sum->request);
    return NULL;
}

static void wait_beside(struct sum *sum)
{
    CHECK(pthread_create(&sum->thread, NULL, wait_for, sum) == 0);
    nap(100);
}

static struct fixture set_up_with_threads(void)
{
    struct fixture fixture;
    struct sharp_coll_init_spec spec = job_spec();
    spec.enable_thread_support = 1;
    /* This program is about refusals, so nobody needs to read of each. */
    CHECK(setenv("SHARP_COLL_LOG_LEVEL", "0", 1) == 0);
    memset(&fixture, 0, sizeof fixture);
    fixture.oob = world;
    CHECK_OK(sharp_coll_init(&spec, &fixture.context));
    fixture.comm = make_group(fixture.context, &fixture.oob);
    return fixture;
}

/* Two waits for one request while the last rank is late: the second one is refused, and changes
   nothing for the first. */
static void second_wait(void)
{
    struct fixture fixture = set_up_with_threads();
    static struct sum sum;
    if (own_rank == own_size - 1) {
        meet();
        post(&sum, fixture.comm, 1);
        CHECK_OK(sharp_coll_req_wait(sum.request));
    } else {
        post(&sum, fixture.comm, 1);
        wait_beside(&sum);
        CHECK_CODE(sharp_coll_req_wait(sum.request), SHARP_COLL_EINVAL);
        CHECK(sharp_coll_req_test(sum.request) == 0);
        meet();
        CHECK(pthread_join(sum.thread, NULL) == 0);
        CHECK(sum.code == 0);
        CHECK(sharp_coll_req_wait(sum.request) < 0);
    }
    CHECK(is_summed(&sum));
    take_down(&fixture);
}

/* A request is freed while a thread waits for it: the wait ends well, and until then no other
   operation gets its buffers. */
static void freed_under_a_wait(void)
{
    enum { OTHERS = 8 };
    struct fixture fixture = set_up_with_threads();
    static struct sum sum, others[OTHERS];
    int is_late = own_rank == own_size - 1;
    if (is_late)
        meet();
    post(&sum, fixture.comm, 2);
    if (!is_late) {
        wait_beside(&sum);
        CHECK_OK(sharp_coll_req_free(sum.request));
        CHECK(sharp_coll_req_test(sum.request) == 1);
    }
    for (int at = 0; at < OTHERS; at++)
        post(&others[at], fixture.comm, 10 + (uint64_t)at);
    if (is_late) {
        CHECK_OK(sharp_coll_req_wait(sum.request));
    } else {
        meet();
        CHECK(pthread_join(sum.thread, NULL) == 0);
        CHECK(sum.code == 0);
    }
    CHECK(is_summed(&sum));
    for (int at = 0; at < OTHERS; at++) {
        CHECK_OK(sharp_coll_req_wait(others[at].request));
        CHECK(is_summed(&others[at]));
    }
    take_down(&fixture);
}

static void *test_until_done(void *argument)
{
    struct sum *sum = (struct sum *)argument;
    while (sharp_coll_req_test(sum->request) == 0)
        ;
    CHECK(is_summed(sum));
    return NULL;
}

/* Tests and two waits at once: the request ends once, and its result is right for every thread
   that learns of it. Its object, when it is used again, is like a new one. */
static void tests_and_waits_together(void)
{
    enum { ROUNDS = 3000 };
    struct fixture fixture = set_up_with_threads();
    static struct sum sum;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        pthread_t tester;
        if (round < 50 && round % (uint64_t)own_size == (uint64_t)own_rank)
            nap(2);
        post(&sum, fixture.comm, 100 + round);
        CHECK(pthread_create(&tester, NULL, test_until_done, &sum) == 0);
        CHECK(pthread_create(&sum.thread, NULL, wait_for, &sum) == 0);
        if (sharp_coll_req_wait(sum.request) == 0)
            CHECK(is_summed(&sum));
        CHECK(pthread_join(sum.thread, NULL) == 0 && pthread_join(tester, NULL) == 0);
        CHECK(is_summed(&sum));
        CHECK(sharp_coll_req_wait(sum.request) < 0);
    }
    take_down(&fixture);
}

/* The last rank leaves the group during a blocking call of several parts whose input is a copy.
 * The call fails at the other ranks, and other groups go on with right sums. */
static void left_under_a_call_of_parts(void)
{
    enum { BLOCK = COUNT };
    struct fixture fixture = set_up_with_threads();
    static struct sum sum;
    for (uint64_t round = 0; round < 5; round++) {
        struct oob oob = world;
        struct sharp_coll_comm *comm = make_group(fixture.context, &oob);
        size_t from = 1, len = (size_t)own_size * BLOCK - 2;
        int32_t *vector = (int32_t *)malloc(len * 4);
        CHECK(vector != NULL);
        memset(vector, 1, len * 4);
        struct sharp_coll_reduce_spec spec = reduce_spec(vector, vector, BLOCK, SHARP_DTYPE_INT, SHARP_OP_SUM);
        spec.sbuf_desc.buffer.length = len * 4;
        spec.rbuf_desc.buffer.length = BLOCK * 4;
        spec.offset = from * 4;
        if (own_rank == own_size - 1) {
            nap(30);
            CHECK_OK(sharp_coll_comm_destroy(comm));
        } else {
            CHECK(sharp_coll_do_reduce_scatter(comm, &spec) < 0);
            CHECK_OK(sharp_coll_comm_destroy(comm));
        }
        free(vector);
        post(&sum, fixture.comm, 200 + round);
        CHECK_OK(sharp_coll_req_wait(sum.request));
        CHECK(is_summed(&sum));
    }
    take_down(&fixture);
}

static const struct test tests[] = {
    {"second_wait", second_wait, 2},
    {"freed_under_a_wait", freed_under_a_wait, 2},
    {"tests_and_waits_together", tests_and_waits_together, 1},
    {"left_under_a_call_of_parts", left_under_a_call_of_parts, 2},
};

int main(int argc, char **argv)
{
    return run_tests(tests, LENGTH(tests), argc, argv);
}
