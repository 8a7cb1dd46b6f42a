/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz.c - random misuse of the API among correct collectives. Every call must end with a
 * negative code or with right data. A mistake ends this process, hangs it, or is found by
 * comparing with what the ranks gave.
 *
 *   PROGRAM RANKS [SEED [STEPS]]
 *
 * The same seed makes the same calls.
 */
#include "refusals.h"

static uint64_t seed = 1;
static size_t steps = 400, step;

static struct job *open_job(int at)
{
    struct job *job = &jobs[at];
    struct sharp_coll_init_spec spec = job_spec();
    /* These may be anything. */
    spec.job_id = draw(&alone);
    spec.group_channel_idx = (int)draw(&alone);
    spec.world_local_rank = (int)draw(&alone);
    spec.enable_thread_support = (int)draw(&alone);
    spec.config.flags = (uint32_t)draw(&alone) | SHARP_COLL_HIDE_ERRORS;
    spec.config.coll_timeout = (int)draw(&alone);
    spec.config.user_progress_num_polls = (int)draw(&alone);
    scribble(spec.config.reserved, sizeof spec.config.reserved);
    scribble(spec.reserved, sizeof spec.reserved);
    scribble(&spec.oob_colls.barrier, sizeof spec.oob_colls.barrier);
    CHECK_OK(sharp_coll_init(&spec, &job->context));
    scribble(&spec, sizeof spec);
    return job;
}

static void open_group(struct job *job, int at)
{
    job->oobs[at] = world;
    struct sharp_coll_comm_init_spec spec = group_spec(&job->oobs[at]);
    scribble(&spec.group_world_ranks, sizeof spec.group_world_ranks);
    scribble(spec.reserved, sizeof spec.reserved);
    CHECK_OK(sharp_coll_comm_init(job->context, &spec, &job->comms[at]));
    scribble(&spec, sizeof spec);
}

static void close_group(struct job *job, int at)
{
    struct sharp_coll_comm *comm = job->comms[at];
    job->comms[at] = NULL;
    CHECK_OK(sharp_coll_comm_destroy(comm));
    CHECK(sharp_coll_comm_destroy(comm) < 0);
    forget(COMM, comm);
}

/* Checks the result of an operation that is over, and releases its memory. */
static void judge(struct operation *one)
{
    if (!is_right(one))
        fail(__FILE__, __LINE__, "seed %llu, step %zu: collective %d of %zu elements of type %d with operator %d is wrong",
             (unsigned long long)seed, step, (int)one->collective, one->count, (int)one->dtype, (int)one->op);
    clear(one);
}

static void end_one(struct operation *one)
{
    void *request = one->request;
    if (!request)
        return;
    if (one_in(&alone, 2)) {
        CHECK_OK(sharp_coll_req_wait(request));
    } else {
        int done;
        while ((done = sharp_coll_req_test(request)) == 0)
            ;
        CHECK(done == 1);
        if (one_in(&alone, 2))
            CHECK(sharp_coll_req_test(request) == 1);
        CHECK_OK(sharp_coll_req_free(request));
    }
    one->request = NULL;
    forget(REQUEST, request);
    judge(one);
}

static void end_all(void)
{
    for (int at = 0; at < UNDER_WAY; at++)
        end_one(&under_way[at]);
}

/* A correct collective, except for fields that the library may not read. Each rank chooses for
   itself whether it waits. */
static void right_collective(struct sharp_coll_comm *comm)
{
    struct operation *chosen = &under_way[below(&alone, UNDER_WAY)];
    struct operation one = any_operation();
    struct call call;
    end_one(chosen);
    prepare(&one);
    describe(&one, &call);
    if (one_in(&alone, 3)) {
        CHECK_OK(make(one.collective, comm, &call, NULL));
        judge(&one);
        return;
    }
    CHECK_OK(make(one.collective, comm, &call, &one.request));
    CHECK(one.request != NULL);
    /* Once it is posted, short input without a handle may be changed. */
    int is_reduction = one.collective == ALLREDUCE || one.collective == REDUCE || one.collective == REDUCE_SCATTER;
    if (is_reduction && !one.is_in_place && call.reduce.sbuf_desc.type == SHARP_DATA_BUFFER &&
        !call.reduce.sbuf_desc.buffer.mem_handle && one.in.len <= 16384)
        scribble(one.in.start, one.in.len);
    scribble(&call, sizeof call);
    *chosen = one;
}

static void change_region(struct job *job)
{
    static char memory[64];
    void **chosen = &job->regions[below(&alone, REGIONS)];
    struct sharp_coll_reg_params params;
    if (*chosen) {
        void *handle = *chosen;
        *chosen = NULL;
        CHECK_OK(sharp_coll_dereg_mr(job->context, handle));
        CHECK(sharp_coll_dereg_mr(job->context, handle) < 0);
        forget(REGION, handle);
        return;
    }
    /* Addresses and lengths may be anything: the library does not look at that memory. */
    void *start = one_in(&alone, 2) ? (void *)memory : (void *)(uintptr_t)draw(&alone);
    size_t len = one_in(&alone, 2) ? sizeof memory : (size_t)draw(&alone);
    scribble(&params, sizeof params);
    if (one_in(&alone, 2))
        CHECK_OK(sharp_coll_reg_mr(job->context, start, len, chosen));
    else
        CHECK_OK(sharp_coll_reg_mr_v2(job->context, start, len, one_in(&alone, 2) ? &params : NULL, chosen));
    CHECK(*chosen != NULL);
}

/* Groups that cannot be made: one rank does not know its own rank, or all make the same mistake. */
static void bad_group(struct job *job)
{
    static const int no_size[] = {0, -1, RANKS_MAX + 1, 0x7fffffff, -0x7fffffff - 1};
    struct sharp_coll_comm *comm = NULL;
    struct oob oob = world;
    struct sharp_coll_comm_init_spec spec = group_spec(&oob);
    size_t which = below(&together, 4);
    int guilty = (int)below(&together, (size_t)own_size) == own_rank;
    if (which == 0)
        spec.size = ANY_OF(no_size);
    else if (which == 1 && guilty)
        spec.rank = one_in(&alone, 2) ? own_size : -1 - (int)below(&alone, 1000);
    else if (which == 2)
        oob.fail_gather = 1 - 2 * (int)below(&alone, 2);
    else if (which == 3)
        oob.fail_bcast = 1 - 2 * (int)below(&alone, 2);
    CHECK(sharp_coll_comm_init(job->context, &spec, &comm) < 0);
    CHECK(comm == NULL);
}

/* A job that cannot be. Without callbacks nothing can be exchanged, so all lack them; otherwise one
   rank is enough. */
static void bad_job(void)
{
    struct sharp_coll_context *context = NULL;
    struct sharp_coll_init_spec spec = job_spec();
    int guilty = (int)below(&together, (size_t)own_size) == own_rank || one_in(&alone, 3);
    spec.config.flags = SHARP_COLL_HIDE_ERRORS;
    if (one_in(&together, 3)) {
        if (one_in(&alone, 2))
            spec.oob_colls.gather = NULL;
        else
            spec.oob_colls.bcast = NULL;
    } else if (guilty) {
        switch (below(&alone, 5)) {
        case 0: spec.world_rank = -1 - (int)below(&alone, 1000); break;
        case 1: spec.world_rank = own_size + (int)below(&alone, 1000); break;
        case 2: spec.world_size = -(int)below(&alone, 1000); break;
        case 3: spec.world_size = 0x7fffffff - (int)below(&alone, 1000); break;
        default: CHECK(sharp_coll_init(&spec, NULL) < 0); return;
        }
    }
    CHECK(sharp_coll_init(&spec, &context) < 0 && context == NULL);
}

/* Ranks that disagree about an operation: that is an error for all of them, and the group cannot
 * be used any more. */
static void mismatch(struct job *job)
{
    struct sharp_coll_comm *comm = NULL;
    struct oob oob = world;
    struct sharp_coll_comm_init_spec group = group_spec(&oob);
    struct operation one;
    struct call call;
    void *request = NULL;
    size_t what = below(&together, 4), count = 1 + below(&together, 3000);
    CHECK_OK(sharp_coll_comm_init(job->context, &group, &comm));
    memset(&one, 0, sizeof one);
    one.collective = what == 0 && own_rank == 0 ? ALLREDUCE : REDUCE;
    one.dtype = what == 1 && own_rank == 0 ? SHARP_DTYPE_UNSIGNED : SHARP_DTYPE_INT;
    one.op = what == 2 && own_rank == 0 ? SHARP_OP_MAX : SHARP_OP_SUM;
    one.root = what == 3 && own_rank == 0 ? 1 : 0;
    one.count = count;
    prepare(&one);
    describe(&one, &call);
    int code = make(one.collective, comm, &call, one_in(&alone, 2) ? &request : NULL);
    if (request)
        code = sharp_coll_req_wait(request);
    CHECK(code < 0);
    /* The group stays unusable. */
    CHECK(sharp_coll_do_barrier(comm) < 0);
    CHECK_OK(sharp_coll_comm_destroy(comm));
    forget(COMM, comm);
    clear(&one);
}

/* A group that is destroyed while it has operations under way which not all ranks have posted. */
static void destroyed_under_way(struct job *job)
{
    enum { POSTS = 6 };
    struct operation posted[POSTS];
    int count = 0;
    struct sharp_coll_comm *comm = NULL;
    struct oob oob = world;
    struct sharp_coll_comm_init_spec group = group_spec(&oob);
    int lazy = (int)below(&together, (size_t)own_size) == own_rank && own_size > 1;
    CHECK_OK(sharp_coll_comm_init(job->context, &group, &comm));
    for (int at = 0; at < POSTS; at++) {
        struct call call;
        posted[at] = any_operation();
        prepare(&posted[at]);
        describe(&posted[at], &call);
        /* Once a rank has left, posts are errors. */
        if (!lazy && count == at && make(posted[at].collective, comm, &call, &posted[at].request) == 0)
            count++;
    }
    CHECK_OK(sharp_coll_comm_destroy(comm));
    forget(COMM, comm);
    for (int at = 0; at < count; at++) {
        void *request = posted[at].request;
        if (one_in(&alone, 3)) {
            CHECK_OK(sharp_coll_req_free(request));
        } else if (sharp_coll_req_wait(request) == 0) {
            /* It had ended before, so its data are there. */
            CHECK(is_right(&posted[at]));
        }
        CHECK(sharp_coll_req_wait(request) < 0);
        forget(REQUEST, request);
    }
    for (int at = 0; at < POSTS; at++)
        clear(&posted[at]);
}

static void one_step(void)
{
    struct job *job = &jobs[below(&together, JOBS)];
    int at = (int)below(&together, GROUPS);
    struct sharp_coll_comm *comm = job->comms[at];
    switch (below(&together, 24)) {
    case 0:
        end_all();
        close_group(job, at);
        open_group(job, at);
        return;
    case 1: bad_group(job); return;
    case 2: bad_job(); return;
    case 3:
        if (own_size > 1)
            mismatch(job);
        return;
    case 4: destroyed_under_way(job); return;
    case 5: missing_arguments(job->context, comm); return;
    case 6: CHECK_OK(sharp_coll_progress(job->context)); return;
    case 7: change_region(job); return;
    case 8: bad_handles(job); return;
    case 9: bad_handles(job); return;
    case 10: bad_handles(job); return;
    case 11: end_one(&under_way[below(&alone, UNDER_WAY)]); return;
    case 12: refused_collective(comm); return;
    case 13: refused_collective(comm); return;
    case 14: refused_collective(comm); return;
    case 15: refused_collective(comm); return;
    default: right_collective(comm); return;
    }
}

static void fuzz(void)
{
    alarm(limit_s() + (unsigned)(steps / 10));
    together.state = seed;
    alone.state = seed + 0x100000001u * (uint64_t)(own_rank + 1);
    /* This program is about refusals, so nobody needs to read of each. Errors after posts are
       told by the code. */
    CHECK(setenv("SHARP_COLL_LOG_LEVEL", "0", 1) == 0);
    CHECK(setenv("SHARP_COLL_ON_ERROR", "complete", 1) == 0);
    for (int j = 0; j < JOBS; j++) {
        struct job *job = open_job(j);
        for (int g = 0; g < GROUPS; g++)
            open_group(job, g);
    }
    for (step = 0; step < steps; step++)
        one_step();
    end_all();
    for (int j = 0; j < JOBS; j++) {
        struct sharp_coll_context *context = jobs[j].context;
        CHECK_OK(sharp_coll_do_barrier(jobs[j].comms[0]));
        CHECK_OK(sharp_coll_finalize(context));
        CHECK(sharp_coll_finalize(context) < 0 && sharp_coll_comm_destroy(jobs[j].comms[0]) < 0);
    }
}

static const struct test tests[] = {{"fuzz", fuzz, 1}};

int main(int argc, char **argv)
{
    if (argc > 2)
        seed = strtoull(argv[2], NULL, 10);
    if (argc > 3)
        steps = (size_t)strtoull(argv[3], NULL, 10);
    return run_tests(tests, LENGTH(tests), argc > 2 ? 2 : argc, argv);
}
