/* SPDX-License-Identifier: Apache-2.0
 *
 * conformance.h - what every program of the suite consists of: tests that are named after the
 * items of the checklist. They run on several processes of one job, which are forked from this
 * one and joined by socket pairs; the socket pairs also carry the out-of-band collectives.
 *
 *   PROGRAM RANKS [ITEM ...]   runs its tests, or only these, on so many processes; prints one
 *                              line for each, "ok C19" or "FAILED C19"
 *
 * The programs use nothing but the public headers, so that they can be run against any
 * libsharp_coll.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sharp/api/sharp.h"

#define RANKS_MAX 16
#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* This process, in its job. */
static int own_rank, own_size;
/* lines[r]: the end of the socket pair to rank r. */
static int lines[RANKS_MAX];

/* Ends the process with a message if a condition does not hold. */
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            fail(__FILE__, __LINE__, "not so: " #condition);                                                          \
    } while (0)
#define CHECK_CODE(call, expected)                                                                                     \
    do {                                                                                                               \
        int code_ = (call);                                                                                            \
        if (code_ != (expected))                                                                                       \
            fail(__FILE__, __LINE__, "%s gave %d (%s), not %d", #call, code_, sharp_coll_strerror(code_), (expected)); \
    } while (0)
#define CHECK_OK(call) CHECK_CODE(call, 0)

__attribute__((format(printf, 3, 4), noreturn)) static void fail(const char *file, int line, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s:%d: rank %d of %d: %s\n", file, line, own_rank, own_size, text);
    _exit(1);
}

static void whole(int line, void *bytes, size_t len, int writes)
{
    char *at = (char *)bytes;
    while (len > 0) {
        ssize_t done = writes ? send(line, at, len, MSG_NOSIGNAL) : recv(line, at, len, 0);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            fail(__FILE__, __LINE__, "a rank is gone");
        at += done;
        len -= (size_t)done;
    }
}

/* A group of world ranks for out-of-band calls, and what tests want to know about them. */
struct oob {
    int rank, size;
    int members[RANKS_MAX];
    /* Counts of the calls, and what a call returns instead of working. */
    int gathers, bcasts, barriers;
    int fail_gather, fail_bcast;
    long long most_bytes;
    /* Called inside each callback. */
    void (*inside)(void);
    int is_closed; /* whether no call may come any more */
};

static void oob_enter(struct oob *oob, int len)
{
    if (oob->is_closed)
        fail(__FILE__, __LINE__, "an out-of-band call where none may be");
    if (len <= 0)
        fail(__FILE__, __LINE__, "an out-of-band call of %d bytes", len);
    if ((long long)len * oob->size > oob->most_bytes)
        oob->most_bytes = (long long)len * oob->size;
    if (oob->inside)
        oob->inside();
}

__attribute__((unused)) static int oob_bcast(void *context, void *buffer, int len, int root)
{
    struct oob *oob = (struct oob *)context;
    oob_enter(oob, len);
    oob->bcasts++;
    if (oob->rank == root) {
        for (int r = 0; r < oob->size; r++)
            if (r != root)
                whole(lines[oob->members[r]], buffer, (size_t)len, 1);
    } else {
        whole(lines[oob->members[root]], buffer, (size_t)len, 0);
    }
    return oob->fail_bcast;
}

__attribute__((unused)) static int oob_gather(void *context, int root, void *sbuf, void *rbuf, int len)
{
    struct oob *oob = (struct oob *)context;
    oob_enter(oob, len);
    oob->gathers++;
    if (oob->rank == root) {
        for (int r = 0; r < oob->size; r++) {
            char *to = (char *)rbuf + (size_t)r * (size_t)len;
            if (r == root)
                memcpy(to, sbuf, (size_t)len);
            else
                whole(lines[oob->members[r]], to, (size_t)len, 0);
        }
    } else {
        whole(lines[oob->members[root]], sbuf, (size_t)len, 1);
        /* Some clients run an allgather inside and write everywhere. */
        memset(rbuf, 0x5a, (size_t)len * (size_t)oob->size);
    }
    return oob->fail_gather;
}

__attribute__((unused)) static int oob_barrier(void *context)
{
    char byte = 0;
    struct oob *oob = (struct oob *)context;
    char all[RANKS_MAX];
    oob->barriers++;
    if (oob_gather(context, 0, &byte, all, 1))
        return 1;
    return oob_bcast(context, &byte, 1, 0);
}

/* The job's group. */
static struct oob world;

/* A barrier of the test's own. */
__attribute__((unused)) static void meet(void)
{
    char byte = 0;
    for (int r = 1; r < own_size; r++)
        if (own_rank == 0)
            whole(lines[r], &byte, 1, 0);
    if (own_rank != 0)
        whole(lines[0], &byte, 1, 1);
    for (int r = 1; r < own_size; r++)
        if (own_rank == 0)
            whole(lines[r], &byte, 1, 1);
    if (own_rank != 0)
        whole(lines[0], &byte, 1, 0);
}

static struct oob group_of(const int *members, int size)
{
    struct oob oob;
    memset(&oob, 0, sizeof oob);
    oob.size = size;
    oob.rank = -1;
    for (int r = 0; r < size; r++) {
        oob.members[r] = members[r];
        if (members[r] == own_rank)
            oob.rank = r;
    }
    return oob;
}

/* Memory as a stack leaves it. */
static void garbage(void *memory, size_t len)
{
    static __thread uint64_t state = 0x9e3779b97f4a7c15u;
    unsigned char *bytes = (unsigned char *)memory;
    for (size_t at = 0; at < len; at++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes[at] = (unsigned char)(state | 1);
    }
}

/* What a client fills in, in a struct that is otherwise full of garbage. */
static struct sharp_coll_init_spec job_spec(void)
{
    struct sharp_coll_init_spec spec;
    garbage(&spec, sizeof spec);
    spec.job_id = 42;
    spec.world_rank = own_rank;
    spec.world_size = own_size;
    spec.progress_func = NULL;
    spec.group_channel_idx = 0;
    spec.config = sharp_coll_default_config;
    spec.config.ib_dev_list = "";
    spec.oob_colls.bcast = oob_bcast;
    spec.oob_colls.barrier = oob_barrier;
    spec.oob_colls.gather = oob_gather;
    spec.world_local_rank = 0;
    spec.enable_thread_support = 0;
    spec.oob_ctx = &world;
    return spec;
}

static struct sharp_coll_comm_init_spec group_spec(struct oob *oob)
{
    struct sharp_coll_comm_init_spec spec;
    garbage(&spec, sizeof spec);
    spec.rank = oob->rank;
    spec.size = oob->size;
    spec.oob_ctx = oob;
    return spec;
}

static struct sharp_coll_context *join(void)
{
    struct sharp_coll_context *context = NULL;
    struct sharp_coll_init_spec spec = job_spec();
    CHECK_OK(sharp_coll_init(&spec, &context));
    CHECK(context != NULL);
    return context;
}

static struct sharp_coll_comm *make_group(struct sharp_coll_context *context, struct oob *oob)
{
    struct sharp_coll_comm *comm = NULL;
    struct sharp_coll_comm_init_spec spec = group_spec(oob);
    CHECK_OK(sharp_coll_comm_init(context, &spec, &comm));
    CHECK(comm != NULL);
    return comm;
}

/* A job and a group of all its ranks. */
struct fixture {
    struct sharp_coll_context *context;
    struct oob oob;
    struct sharp_coll_comm *comm;
};

__attribute__((unused)) static struct fixture set_up(void)
{
    struct fixture fixture;
    memset(&fixture, 0, sizeof fixture);
    fixture.oob = world;
    fixture.context = join();
    fixture.comm = make_group(fixture.context, &fixture.oob);
    return fixture;
}

__attribute__((unused)) static void take_down(struct fixture *fixture)
{
    CHECK_OK(sharp_coll_comm_destroy(fixture->comm));
    CHECK_OK(sharp_coll_finalize(fixture->context));
}

__attribute__((unused)) static struct sharp_coll_data_desc buffer_of(void *ptr, size_t len, void *handle)
{
    struct sharp_coll_data_desc desc;
    garbage(&desc, sizeof desc);
    desc.type = SHARP_DATA_BUFFER;
    desc.mem_type = SHARP_MEM_TYPE_HOST;
    desc.buffer.ptr = ptr;
    desc.buffer.length = len;
    desc.buffer.mem_handle = handle;
    return desc;
}

static size_t size_of(enum sharp_datatype dtype)
{
    static const size_t sizes[] = {4, 4, 8, 8, 4, 8, 2, 2, 2, 2, 1, 1};
    return sizes[dtype];
}

__attribute__((unused)) static struct sharp_coll_reduce_spec reduce_spec(const void *sbuf, void *rbuf, size_t length,
                                                                         enum sharp_datatype dtype,
                                                                         enum sharp_reduce_op op)
{
    struct sharp_coll_reduce_spec spec;
    garbage(&spec, sizeof spec);
    spec.sbuf_desc = buffer_of((void *)(uintptr_t)sbuf, length * size_of(dtype), NULL);
    spec.rbuf_desc = buffer_of(rbuf, length * size_of(dtype), NULL);
    spec.dtype = dtype;
    spec.length = length;
    spec.op = op;
    return spec;
}

/* Polls until the request is done, then frees it; the time limit of the test ends a hang. */
__attribute__((unused)) static void finish(void *request)
{
    int done;
    while ((done = sharp_coll_req_test(request)) == 0)
        ;
    CHECK(done == 1);
    CHECK_OK(sharp_coll_req_free(request));
}

__attribute__((unused)) static void nap(int ms)
{
    struct timespec time = {ms / 1000, (ms % 1000) * 1000000L};
    nanosleep(&time, NULL);
}

/* Zeroed memory: whole pages with no readable page behind them, so that a byte too far ends the
 * process. */
__attribute__((unused)) static void *fenced(size_t len)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (len + page - 1) / page * page;
    char *start = (char *)mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(start != MAP_FAILED);
    CHECK(mprotect(start + room, page, PROT_NONE) == 0);
    return start + (room - len);
}

/* Programs that load the library themselves define this before they include this file: nothing
   here may name a function of the library then. */
#ifndef LOADS_THE_LIBRARY
/* A tool that translates code when it is first run takes seconds for the first job of a process,
 * longer than a manager may wait. Processes that are forked afterwards inherit what is
 * translated. So one job is made, used and left before any test. */
static void warm_up(void)
{
    static const int counts[] = {1, 100000};
    int self = 0;
    own_rank = 0;
    own_size = 1;
    world = group_of(&self, 1);
    struct fixture fixture = set_up();
    for (int at = 0; at < LENGTH(counts); at++) {
        size_t len = (size_t)counts[at] * sizeof(int32_t);
        int32_t *vector = (int32_t *)calloc(1, len);
        CHECK(vector != NULL);
        struct sharp_coll_reduce_spec spec = reduce_spec(vector, vector, (size_t)counts[at], SHARP_DTYPE_INT, SHARP_OP_SUM);
        CHECK_OK(sharp_coll_do_allreduce(fixture.comm, &spec));
        free(vector);
    }
    take_down(&fixture);
}
#endif

/* One item of the checklist. */
struct test {
    const char *item;
    void (*body)(void);
    int least_ranks;
};

/* The time limit of a test, because a hang is a failure, too. A slow tool gets more time. */
static unsigned limit_s(void)
{
    const char *limit = getenv("CONFORMANCE_LIMIT_S");
    return limit ? (unsigned)atoi(limit) : 180;
}

static int run_on_ranks(const struct test *test, int ranks)
{
    static int pairs[RANKS_MAX][RANKS_MAX];
    pid_t children[RANKS_MAX];
    int failed = 0;
    for (int a = 0; a < ranks; a++)
        for (int b = 0; b < a; b++) {
            int pair[2];
            if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
                return 1;
            pairs[a][b] = pair[0];
            pairs[b][a] = pair[1];
        }
    for (int r = 0; r < ranks; r++) {
        children[r] = fork();
        if (children[r] < 0)
            return 1;
        if (children[r] == 0) {
            int all[RANKS_MAX];
            own_rank = r;
            own_size = ranks;
            for (int other = 0; other < ranks; other++) {
                all[other] = other;
                if (other != r)
                    lines[other] = pairs[r][other];
                for (int third = 0; third < ranks; third++)
                    if (other != r && third != other)
                        close(pairs[other][third]);
            }
            world = group_of(all, ranks);
            alarm(limit_s());
            test->body();
            exit(0);
        }
    }
    for (int a = 0; a < ranks; a++)
        for (int b = 0; b < ranks; b++)
            if (a != b)
                close(pairs[a][b]);
    for (int r = 0; r < ranks; r++) {
        int status = 0;
        if (waitpid(children[r], &status, 0) != children[r] || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            if (WIFSIGNALED(status))
                fprintf(stderr, "%s: rank %d ended by signal %d\n", test->item, r, WTERMSIG(status));
            failed = 1;
        }
    }
    return failed;
}

static int is_wanted(const char *item, int argc, char **argv)
{
    for (int at = 2; at < argc; at++)
        if (strcmp(argv[at], item) == 0)
            return 1;
    return argc <= 2;
}

__attribute__((unused)) static int run_tests(const struct test *tests, int count, int argc, char **argv)
{
    int ranks = argc > 1 ? atoi(argv[1]) : 2, failed = 0;
    if (ranks < 1 || ranks > RANKS_MAX) {
        fprintf(stderr, "usage: %s RANKS [ITEM ...]\n", argv[0]);
        return 2;
    }
    const char *except = getenv("CONFORMANCE_EXCEPT");
#ifndef LOADS_THE_LIBRARY
    if (getenv("CONFORMANCE_WARM_UP"))
        warm_up();
#endif
    for (int at = 0; at < count; at++) {
        if (except && strstr(except, tests[at].item))
            continue;
        if (ranks < tests[at].least_ranks || !is_wanted(tests[at].item, argc, argv))
            continue;
        int bad = run_on_ranks(&tests[at], ranks);
        printf("%s %s\n", bad ? "FAILED" : "ok", tests[at].item);
        fflush(stdout);
        failed |= bad;
    }
    return failed;
}

#endif
