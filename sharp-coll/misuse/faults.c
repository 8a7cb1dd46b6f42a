/* SPDX-License-Identifier: Apache-2.0
 *
 * faults.c - collectives while the manager, a node or a rank goes away. The program that runs
 * this one ends manager and node.
 *
 *   PROGRAM RANKS manager      says "ready" once the job is made, waits for a byte on stdin, and
 *                              goes on to the end
 *   PROGRAM RANKS node         says "ready", goes on at once, waits for a byte, and goes on to the
 *                              end
 *   PROGRAM RANKS killed SEED  the last rank ends by a signal while all ranks have operations
 *                              under way; SHARP_COLL_ON_ERROR decides whether the others end, too,
 *                              or get errors
 *   PROGRAM RANKS ignored      the last rank ends by a signal while nothing is under way, and the
 *                              others look at no code of a post, as NCCL's plugin does not
 */
#include "collectives.h"

static void begin(struct operation *one, struct sharp_coll_comm *comm, int is_posted)
{
    struct call call;
    *one = any_operation();
    prepare(one);
    describe(one, &call);
    if (is_posted && make(one->collective, comm, &call, &one->request) < 0)
        one->request = NULL;
}

static void seed(uint64_t number)
{
    together.state = number;
    alone.state = number + 0x100000001u * (uint64_t)(own_rank + 1);
}

/* Collectives of all kinds, posted in batches. */
static void go_on(struct sharp_coll_comm *comm, int batches)
{
    enum { BATCH = 10 };
    struct operation all[BATCH];
    for (int batch = 0; batch < batches; batch++) {
        for (int at = 0; at < BATCH; at++) {
            begin(&all[at], comm, 1);
            CHECK(all[at].request != NULL);
        }
        for (int at = 0; at < BATCH; at++) {
            CHECK_OK(sharp_coll_req_wait(all[at].request));
            CHECK(is_right(&all[at]));
            clear(&all[at]);
        }
    }
}

/* Something goes away after "ready", and is gone when the byte comes. */
static void goes_away(int batches_meanwhile)
{
    struct fixture fixture = set_up();
    char byte;
    seed(1);
    go_on(fixture.comm, 2);
    if (own_rank == 0)
        CHECK(write(1, "ready\n", 6) == 6);
    go_on(fixture.comm, batches_meanwhile);
    if (own_rank == 0)
        CHECK(read(0, &byte, 1) == 1);
    meet();
    go_on(fixture.comm, 20);
    /* Groups are made without the manager. */
    for (int round = 0; round < 5; round++) {
        struct oob oob = world;
        struct sharp_coll_comm *other = make_group(fixture.context, &oob);
        go_on(other, 2);
        CHECK_OK(sharp_coll_comm_destroy(other));
    }
    take_down(&fixture);
}

static void manager(void)
{
    goes_away(0);
}

static void node(void)
{
    goes_away(100);
}

static const char *chosen_seed = "1";

static void killed(void)
{
    enum { POSTS = 40 };
    struct fixture fixture = set_up();
    struct operation all[POSTS];
    int is_victim = own_rank == own_size - 1, refused = 0;
    alarm(30);
    seed(strtoull(chosen_seed, NULL, 10));
    size_t last = below(&together, POSTS);
    for (size_t at = 0; at < POSTS; at++) {
        if (is_victim && at == last) {
            nap((int)below(&alone, 20));
            kill(getpid(), SIGKILL);
        }
        begin(&all[at], fixture.comm, !refused);
        refused |= all[at].request == NULL;
    }
    for (size_t at = 0; at < POSTS; at++) {
        void *request = all[at].request;
        if (!request)
            continue;
        if (one_in(&alone, 2))
            while (sharp_coll_req_test(request) == 0)
                ;
        if (sharp_coll_req_wait(request) == 0)
            CHECK(is_right(&all[at]));
    }
    /* An operation that the victim did not reach is an error for every other rank. */
    CHECK(sharp_coll_do_barrier(fixture.comm) < 0);
    for (int at = 0; at < POSTS; at++)
        clear(&all[at]);
    take_down(&fixture);
}

static void ignored(void)
{
    int32_t in = 1, out = 0;
    struct fixture fixture = set_up();
    struct sharp_coll_reduce_spec spec = reduce_spec(&in, &out, 1, SHARP_DTYPE_INT, SHARP_OP_SUM);
    void *request = NULL;
    alarm(30);
    CHECK_OK(sharp_coll_do_allreduce(fixture.comm, &spec));
    meet();
    if (own_rank == own_size - 1)
        kill(getpid(), SIGKILL);
    /* When this has failed, the group is broken, and no post begins anything. */
    CHECK(sharp_coll_do_barrier(fixture.comm) < 0);
    CHECK(sharp_coll_do_allreduce_nb(fixture.comm, &spec, &request) < 0);
    CHECK(request == NULL && sharp_coll_req_test(request) == 1);
    take_down(&fixture);
}

static const struct test tests[] = {
    {"manager", manager, 1}, {"node", node, 1}, {"killed", killed, 2}, {"ignored", ignored, 2}};

int main(int argc, char **argv)
{
    if (argc > 3)
        chosen_seed = argv[3];
    return run_tests(tests, LENGTH(tests), argc, argv);
}
