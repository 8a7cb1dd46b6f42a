/* SPDX-License-Identifier: Apache-2.0
 *
 * Every collective, blocking and as a request, short (datagrams) and long (streams), in place and
 * not, on the group of all ranks and on smaller ones; 512 requests outstanding; crossing orders;
 * several waiting threads; progress while the application does other work, and of the application
 * while a call of ours blocks; a rank that leaves a group; wrong arguments; a child after fork.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>

#include "ranks.h"

#define LONG_COUNT 100003u

static trib_context *context;
static trib_group *world;

static int32_t value(uint32_t rank, size_t at)
{
    return (int32_t)((at * 2654435761u) ^ (rank * 40503u)) >> 8;
}

static int32_t sum(const uint32_t *ranks, uint32_t size, size_t at)
{
    uint32_t total = 0;
    for (uint32_t i = 0; i < size; i++)
        total += (uint32_t)value(ranks[i], at);
    return (int32_t)total;
}

/* Waits for a request that was just started. */
static void finish(int started, trib_request **request)
{
    CHECK(started == TRIB_OK);
    CHECK(trib_wait(*request, 60000) == TRIB_OK);
    int done = 0;
    CHECK(trib_test(*request, &done) == TRIB_OK && done == 1);
    CHECK(trib_request_free(*request) == TRIB_OK);
}

static void check_collectives(trib_group *g, const uint32_t *ranks, uint32_t size, size_t count)
{
    uint32_t me = trib_group_rank(g);
    CHECK(trib_group_size(g) == size && ranks[me] == own_rank);
    size_t whole = count * size;
    int32_t *in = (int32_t *)malloc((whole + 1) * sizeof *in), *out = (int32_t *)malloc((whole + 1) * sizeof *out);
    CHECK(in && out);
    for (int way = 0; way < 4; way++) {
        int nb = way & 1, in_place = way & 2;
        trib_request *request = NULL;
        uint32_t root = (size - 1) * (uint32_t)nb;
        const void *src = in_place ? TRIB_IN_PLACE : in;
        int32_t *mine = in_place ? out : in;

        for (size_t i = 0; i < count; i++)
            mine[i] = value(own_rank, i);
        if (nb)
            finish(trib_allreduce_nb(g, src, out, count, TRIB_INT32, TRIB_SUM, &request), &request);
        else
            CHECK(trib_allreduce(g, src, out, count, TRIB_INT32, TRIB_SUM) == TRIB_OK);
        for (size_t i = 0; i < count; i++)
            CHECK(out[i] == sum(ranks, size, i));

        for (size_t i = 0; i < count; i++)
            in[i] = out[i] = value(own_rank, i);
        const void *at_root = in_place && me == root ? TRIB_IN_PLACE : in;
        void *result = me == root ? out : NULL;
        if (nb)
            finish(trib_reduce_nb(g, at_root, result, count, TRIB_INT32, TRIB_SUM, root, &request), &request);
        else
            CHECK(trib_reduce(g, at_root, result, count, TRIB_INT32, TRIB_SUM, root) == TRIB_OK);
        for (size_t i = 0; i < count; i++)
            CHECK(out[i] == (me == root ? sum(ranks, size, i) : value(own_rank, i)));

        for (size_t i = 0; i < count; i++)
            out[i] = me == root ? value(77, i) : -1;
        if (nb)
            finish(trib_bcast_nb(g, out, count * sizeof *out, root, &request), &request);
        else
            CHECK(trib_bcast(g, out, count * sizeof *out, root) == TRIB_OK);
        for (size_t i = 0; i < count; i++)
            CHECK(out[i] == value(77, i));

        if (nb)
            finish(trib_barrier_nb(g, &request), &request);
        else
            CHECK(trib_barrier(g) == TRIB_OK);

        for (size_t i = 0; i < whole; i++)
            mine[i] = value(own_rank, i);
        if (nb)
            finish(trib_reduce_scatter_nb(g, src, out, count, TRIB_INT32, TRIB_SUM, &request), &request);
        else
            CHECK(trib_reduce_scatter(g, src, out, count, TRIB_INT32, TRIB_SUM) == TRIB_OK);
        for (size_t i = 0; i < count; i++)
            CHECK(out[i] == sum(ranks, size, me * count + i));

        for (size_t i = 0; i < count; i++)
            (in_place ? out + me * count : in)[i] = value(own_rank, i);
        if (nb)
            finish(trib_allgather_nb(g, src, out, count * sizeof *out, &request), &request);
        else
            CHECK(trib_allgather(g, src, out, count * sizeof *out) == TRIB_OK);
        for (uint32_t r = 0; r < size; r++)
            for (size_t i = 0; i < count; i++)
                CHECK(out[r * count + i] == value(ranks[r], i));
    }
    free(in);
    free(out);
}

static void check_types(void)
{
    double x = 1.0 / (own_rank + 1), most = 0;
    CHECK(trib_allreduce(world, &x, &most, 1, TRIB_FLOAT64, TRIB_MAX) == TRIB_OK && most == 1.0);
    uint64_t bit = (uint64_t)1 << own_rank, bits = 0;
    CHECK(trib_allreduce(world, &bit, &bits, 1, TRIB_UINT64, TRIB_BOR) == TRIB_OK);
    CHECK(bits == ((uint64_t)1 << own_size) - 1);
    int16_t truth[2] = {(int16_t)(256 + own_rank), (int16_t)own_rank}, truths[2];
    CHECK(trib_allreduce(world, truth, truths, 2, TRIB_INT16, TRIB_LAND) == TRIB_OK);
    CHECK(truths[0] == (own_size > 1 ? 1 : truth[0]) && truths[1] == 0);
    struct __attribute__((packed)) {
        double value;
        int32_t index;
    } pair = {own_rank / 2 * 0.5, (int32_t)(100 - own_rank)}, best;
    uint32_t last = own_size - 1;
    CHECK(sizeof pair == 12);
    CHECK(trib_allreduce(world, &pair, &best, 1, TRIB_PAIR(TRIB_FLOAT64, TRIB_INT32), TRIB_MAXLOC) == TRIB_OK);
    CHECK(best.value == last / 2 * 0.5 && best.index == (int32_t)(100 - last));
    CHECK(trib_supports(TRIB_PAIR(TRIB_INT8, TRIB_UINT64), TRIB_MINLOC) == 1);
    CHECK(trib_supports(TRIB_PAIR(TRIB_INT8, TRIB_FLOAT64), TRIB_MINLOC) == 0 && trib_supports(TRIB_INT8, TRIB_MINLOC) == 0);
    CHECK(trib_supports(TRIB_PAIR(TRIB_INT8, TRIB_INT8), TRIB_SUM) == 0);
    CHECK(trib_supports(TRIB_BFLOAT16, TRIB_SUM) == 1 && trib_supports(TRIB_FLOAT32, TRIB_BXOR) == 0);
    CHECK(trib_supports(TRIB_UINT8, TRIB_LXOR) == 1 && trib_supports(TRIB_FLOAT16, TRIB_LAND) == 0);
    CHECK(trib_supports((enum trib_dtype)99, TRIB_SUM) == 0);
}

/* How many threads this process has. */
static int threads(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks);
    for (struct dirent *entry = readdir(tasks); entry; entry = readdir(tasks))
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

/* Whether this thread is the last one. One that has been joined is listed until the kernel has
 * taken it down, which may be a moment later. */
static int is_the_only_thread(void)
{
    for (int pauses = 0; threads() != 1; pauses++) {
        if (pauses == 10000)
            return 0;
        usleep(1000);
    }
    return 1;
}

static void check_outstanding(void)
{
    enum { MANY = 512 };
    static trib_request *requests[MANY];
    static int64_t in[MANY], out[MANY];
    for (int i = 0; i < MANY; i++) {
        in[i] = i * 1000 + (int64_t)own_rank;
        CHECK(trib_allreduce_nb(world, &in[i], &out[i], 1, TRIB_INT64, TRIB_SUM, &requests[i]) == TRIB_OK);
    }
    CHECK(threads() <= 3); /* a helper, and one that hosts nodes of the job if nobody else can */
    int64_t ranks = own_size;
    for (int i = MANY - 1; i >= 0; i--) {
        CHECK(trib_wait(requests[i], 60000) == TRIB_OK);
        CHECK(out[i] == ranks * i * 1000 + ranks * (ranks - 1) / 2);
        CHECK(trib_request_free(requests[i]) == TRIB_OK);
    }
    /* One call waits and frees. */
    for (int i = 0; i < MANY; i++)
        CHECK(trib_allreduce_nb(world, &in[i], &out[i], 1, TRIB_INT64, TRIB_SUM, &requests[i]) == TRIB_OK);
    for (int i = MANY - 1; i >= 0; i--)
        CHECK(trib_finish(&requests[i], 60000) == TRIB_OK && requests[i] == NULL);
    /* A request may be freed while its operation runs; testing alone drives progress. */
    trib_request *request = NULL;
    CHECK(trib_barrier_nb(world, &request) == TRIB_OK && trib_request_free(request) == TRIB_OK);
    CHECK(trib_barrier_nb(world, &request) == TRIB_OK);
    int done = 0;
    while (!done)
        CHECK(trib_test(request, &done) == TRIB_OK);
    CHECK(trib_request_free(request) == TRIB_OK);
}

static void check_groups(void)
{
    uint32_t ranks[RANKS_MAX], size = 0;
    trib_group *g = NULL, *later = NULL;
    trib_request *ready = NULL, *early = NULL;
    /* Ranks of the same parity, highest first. */
    for (uint32_t r = own_size; r-- > 0;)
        if (r % 2 == own_rank % 2)
            ranks[size++] = r;
    CHECK(trib_group_create(context, ranks, size, 7, &g) == TRIB_OK);
    check_collectives(g, ranks, size, 3);
    check_collectives(g, ranks, size, LONG_COUNT);
    CHECK(trib_group_status(g) == TRIB_OK && trib_group_free(g) == TRIB_OK);

    /* This is posted before the group is ready. */
    CHECK(trib_group_create_nb(context, ranks, size, 8, &later, &ready) == TRIB_OK);
    CHECK(trib_barrier_nb(later, &early) == TRIB_OK);
    finish(TRIB_OK, &early);
    finish(TRIB_OK, &ready);
    CHECK(trib_group_free(later) == TRIB_OK);

    ranks[0] = own_rank;
    CHECK(trib_group_create(context, ranks, 1, 0, &g) == TRIB_OK);
    check_collectives(g, ranks, 1, 5);
    CHECK(trib_group_free(g) == TRIB_OK);
}

/* Two groups have long vectors, which even ranks post in one order and odd ranks in the other. */
static void check_crossing(const uint32_t *ranks)
{
    static int32_t in[2][LONG_COUNT], out[2][LONG_COUNT];
    trib_group *g[2];
    trib_request *requests[2];
    for (uint64_t i = 0; i < 2; i++)
        CHECK(trib_group_create(context, ranks, own_size, 20 + i, &g[i]) == TRIB_OK);
    for (int round = 0; round < 20; round++) {
        for (int k = 0; k < 2; k++) {
            int i = (k + (int)own_rank) % 2;
            for (size_t at = 0; at < LONG_COUNT; at++)
                in[i][at] = value(own_rank, at + (size_t)i);
            CHECK(trib_allreduce_nb(g[i], in[i], out[i], LONG_COUNT, TRIB_INT32, TRIB_SUM, &requests[i]) == TRIB_OK);
        }
        for (int i = 0; i < 2; i++) {
            finish(TRIB_OK, &requests[i]);
            for (size_t at = 0; at < LONG_COUNT; at++)
                CHECK(out[i][at] == sum(ranks, own_size, at + (size_t)i));
        }
    }
    for (int i = 0; i < 2; i++)
        CHECK(trib_group_free(g[i]) == TRIB_OK);
}

/* Operations that fail half-way give their memory back at once: the test unmaps it, and the
   connection works on. */
static void check_severed(const uint32_t *ranks)
{
    const size_t len = (size_t)8 << 20;
    for (uint64_t round = 0; round < 6; round++) {
        trib_group *g = NULL;
        trib_request *request = NULL;
        CHECK(trib_group_create(context, ranks, own_size, 40, &g) == TRIB_OK);
        void *memory = mmap(NULL, 2 * len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(memory != MAP_FAILED);
        memset(memory, 1, 2 * len);
        /* If the last rank was quick, the group has failed before the others post. */
        int status = trib_allreduce_nb(g, memory, (char *)memory + len, len / 4, TRIB_INT32, TRIB_SUM, &request);
        CHECK(status == TRIB_OK || status == TRIB_ERR_PEER);
        /* The last rank leaves in the middle, a little later each time. */
        if (own_rank + 1 == own_size) {
            usleep((useconds_t)(round * 1000));
            CHECK(trib_group_free(g) == TRIB_OK);
            g = NULL;
        }
        if (status == TRIB_OK)
            status = trib_wait(request, 60000);
        CHECK(status == TRIB_OK || status == TRIB_ERR_PEER);
        CHECK(munmap(memory, 2 * len) == 0);
        CHECK(trib_request_free(request) == TRIB_OK && trib_group_free(g) == TRIB_OK);
        check_collectives(world, ranks, own_size, 20000);
    }
}

/* The last rank leaves a group as soon as it has it. All the others get the group, too, and hear of
   that from its operations, however early one of them has called the first. */
static void check_left_early(const uint32_t *ranks)
{
    int32_t in = 1, out = 0;
    for (int round = 0; round < 200; round++) {
        trib_group *g = NULL;
        CHECK(trib_group_create(context, ranks, own_size, 41, &g) == TRIB_OK);
        if (own_rank + 1 < own_size)
            CHECK(trib_allreduce(g, &in, &out, 1, TRIB_INT32, TRIB_SUM) == TRIB_ERR_PEER);
        CHECK(trib_group_free(g) == TRIB_OK);
        CHECK(trib_barrier(world) == TRIB_OK);
    }
}

static void *reduce_often(void *group)
{
    for (int64_t i = 0; i < 200; i++) {
        int64_t x = i, total = 0;
        CHECK(trib_allreduce((trib_group *)group, &x, &total, 1, TRIB_INT64, TRIB_SUM) == TRIB_OK);
        CHECK(total == i * own_size);
    }
    return NULL;
}

/* Several threads wait at once, each on a group of its own. */
static void check_threads(const uint32_t *ranks)
{
    enum { THREADS = 4 };
    trib_group *g[THREADS];
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK(trib_group_create(context, ranks, own_size, 30, &g[i]) == TRIB_OK);
        CHECK(pthread_create(&thread[i], NULL, reduce_often, g[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(thread[i], NULL) == 0 && trib_group_free(g[i]) == TRIB_OK);
}

/* Rank 0 blocks in a collective that the others have only posted: they wait for rank 0 outside the
   library. */
static void check_neglect(void)
{
    static int32_t in[LONG_COUNT], out[LONG_COUNT];
    trib_request *request = NULL;
    char byte = 1;
    if (own_rank == 0) {
        CHECK(trib_allreduce(world, in, out, LONG_COUNT, TRIB_INT32, TRIB_SUM) == TRIB_OK);
        CHECK(trib_allreduce(world, in, out, 1, TRIB_INT32, TRIB_SUM) == TRIB_OK);
        for (uint32_t r = 1; r < own_size; r++)
            CHECK(whole(lines[r], &byte, 1, 1) == 0);
    } else {
        trib_request *second = NULL;
        CHECK(trib_allreduce_nb(world, in, out, LONG_COUNT, TRIB_INT32, TRIB_SUM, &request) == TRIB_OK);
        CHECK(trib_allreduce_nb(world, in, out, 1, TRIB_INT32, TRIB_SUM, &second) == TRIB_OK);
        CHECK(whole(lines[0], &byte, 1, 0) == 0);
        finish(TRIB_OK, &request);
        finish(TRIB_OK, &second);
    }
}

static int call_others;

/* The group that the application's own progress function leaves, once. */
static trib_group *to_leave;

/* The application's own progress function tells the other ranks that they may come, or leaves a
 * group. */
static void progress(void *ctx)
{
    char byte = 1;
    CHECK(ctx == &world);
    if (to_leave) {
        CHECK(trib_group_leave(to_leave) == TRIB_OK);
        to_leave = NULL;
    }
    if (call_others) {
        call_others = 0;
        for (uint32_t r = 1; r < own_size; r++)
            CHECK(whole(lines[r], &byte, 1, 1) == 0);
    }
}

/* Rank 0 blocks until the others come, and they come only after rank 0's progress function has
   run. */
static void check_progress(void)
{
    char byte = 0;
    if (own_rank == 0)
        call_others = 1;
    else
        CHECK(whole(lines[0], &byte, 1, 0) == 0);
    CHECK(trib_barrier(world) == TRIB_OK);
    call_others = 0;
}

/* The last rank leaves a group while an operation of it is outstanding, because rank 0 comes to it
 * only later; it leaves between two calls or, where it waits in the operation, in its progress
 * function. The operation fails at the last rank. The others may still get its result, if that
 * rank's part has come; the next operation fails at all of them. */
static void check_leaving(const uint32_t *ranks, int within)
{
    trib_group *g = NULL;
    trib_request *request = NULL;
    int32_t in = 1, out = 0;
    char byte = 1, text[512];

    CHECK(trib_group_create(context, ranks, own_size, 50, &g) == TRIB_OK && trib_group_status(g) == TRIB_OK);
    if (own_rank + 1 == own_size) {
        if (within) {
            to_leave = g;
            CHECK(trib_allreduce(g, &in, &out, 1, TRIB_INT32, TRIB_SUM) == TRIB_ERR_PEER && to_leave == NULL);
        } else {
            CHECK(trib_allreduce_nb(g, &in, &out, 1, TRIB_INT32, TRIB_SUM, &request) == TRIB_OK);
            CHECK(trib_group_leave(g) == TRIB_OK);
            CHECK(trib_wait(request, 60000) == TRIB_ERR_PEER);
            /* What has failed can be asked again. */
            CHECK(trib_finish(&request, 60000) == TRIB_ERR_PEER && request != NULL);
            CHECK(trib_finish(&request, 0) == TRIB_ERR_PEER && trib_request_free(request) == TRIB_OK);
        }
        CHECK(strstr(trib_last_error(), "this rank has left the group") && out == 0);
        CHECK(trib_group_leave(g) == TRIB_OK); /* again */
        CHECK(whole(lines[0], &byte, 1, 1) == 0);
    } else {
        CHECK(own_rank > 0 || whole(lines[own_size - 1], &byte, 1, 0) == 0);
        int status = trib_allreduce(g, &in, &out, 1, TRIB_INT32, TRIB_SUM);
        CHECK(status == TRIB_ERR_PEER || (status == TRIB_OK && out == (int32_t)own_size));
    }
    /* The handle is valid until it is freed. */
    CHECK(trib_barrier(g) == TRIB_ERR_PEER && strstr(trib_last_error(), "left the group"));
    CHECK(trib_group_rank(g) == own_rank && trib_group_size(g) == own_size && trib_group_status(g) == TRIB_ERR_PEER);
    CHECK(trib_group_error(g, text, sizeof text) == TRIB_ERR_PEER && strstr(text, "left the group"));
    CHECK(trib_group_free(g) == TRIB_OK && trib_group_leave(NULL) == TRIB_ERR_INVALID);
    check_collectives(world, ranks, own_size, 10);
}

static void check_errors(void)
{
    int32_t x = 1, y = 0;
    trib_request *request = NULL;
    uint32_t ranks[2] = {own_rank, own_rank};
    trib_group *g = NULL;
    CHECK(trib_allreduce(NULL, &x, &y, 1, TRIB_INT32, TRIB_SUM) == TRIB_ERR_INVALID);
    CHECK(strstr(trib_last_error(), "`g` is NULL"));
    CHECK(trib_allreduce(world, NULL, &y, 1, TRIB_INT32, TRIB_SUM) == TRIB_ERR_INVALID);
    CHECK(trib_allreduce(world, &x, NULL, 1, TRIB_INT32, TRIB_SUM) == TRIB_ERR_INVALID);
    CHECK(trib_allreduce(world, &x, &y, SIZE_MAX, TRIB_INT32, TRIB_SUM) == TRIB_ERR_INVALID);
    CHECK(trib_allreduce(world, &x, &y, 1, (enum trib_dtype)99, TRIB_SUM) == TRIB_ERR_UNSUPPORTED);
    CHECK(trib_allreduce(world, &x, &y, 1, TRIB_INT32, (enum trib_op)12) == TRIB_ERR_UNSUPPORTED);
    CHECK(trib_allreduce(world, &x, &y, 1, TRIB_FLOAT32, TRIB_BAND) == TRIB_ERR_UNSUPPORTED);
    CHECK(trib_allreduce_nb(world, &x, &y, 1, TRIB_INT32, TRIB_SUM, NULL) == TRIB_ERR_INVALID);
    CHECK(trib_bcast(world, &x, sizeof x, own_size) == TRIB_ERR_INVALID);
    CHECK(strstr(trib_last_error(), "root"));
    uint32_t other = (own_rank + 1) % own_size;
    if (other != own_rank)
        CHECK(trib_reduce(world, TRIB_IN_PLACE, &y, 1, TRIB_INT32, TRIB_SUM, other) == TRIB_ERR_INVALID);
    CHECK(trib_test(NULL, &y) == TRIB_ERR_INVALID && trib_wait(NULL, 0) == TRIB_ERR_INVALID);
    CHECK(trib_finish(NULL, 0) == TRIB_ERR_INVALID && trib_finish(&request, 0) == TRIB_ERR_INVALID);
    CHECK(trib_group_create(context, ranks, 2, 0, &g) == TRIB_ERR_INVALID);
    ranks[0] = other;
    if (other != own_rank)
        CHECK(trib_group_create(context, ranks, 1, 0, &g) == TRIB_ERR_INVALID);
    ranks[0] = own_size;
    CHECK(trib_group_create(context, ranks, 1, 0, &g) == TRIB_ERR_INVALID);
    CHECK(trib_group_create(context, NULL, 1, 0, &g) == TRIB_ERR_INVALID);
    CHECK(trib_group_create_nb(context, ranks, 0, 0, &g, &request) == TRIB_ERR_INVALID);
    CHECK(g == NULL && request == NULL);
    CHECK(trib_group_free(NULL) == TRIB_OK && trib_request_free(NULL) == TRIB_OK && trib_finalize(NULL) == TRIB_OK);
    /* None of these errors has touched the group. */
    char text[64] = "x";
    CHECK(trib_group_error(world, text, sizeof text) == TRIB_OK && text[0] == 0);
    CHECK(trib_allreduce(world, &x, &y, 1, TRIB_INT32, TRIB_SUM) == TRIB_OK && y == (int32_t)own_size);
}

/* All ranks of the test are on one host, for which nothing is predicted. A caller with an earlier
   header gets the fields that it has. */
static void check_prediction(void)
{
    const uint32_t ranks[] = {0, own_size - 1};
    trib_prediction prediction;
    memset(&prediction, 0xff, sizeof prediction);
    prediction.struct_size = offsetof(trib_prediction, allreduces);

    CHECK(trib_predict(context, ranks, own_size > 1 ? 2 : 1, &prediction) == TRIB_OK);
    CHECK(prediction.known == 0 && prediction.barrier == 0 && prediction.allreduces == UINT32_MAX);
    prediction.struct_size = sizeof prediction;
    CHECK(trib_predict(context, ranks, 1, &prediction) == TRIB_OK && prediction.allreduces == 0);
    CHECK(trib_predict(context, NULL, 1, &prediction) == TRIB_ERR_INVALID);
    CHECK(trib_predict(NULL, ranks, 1, &prediction) == TRIB_ERR_INVALID);
    CHECK(trib_predict(context, ranks, 1, NULL) == TRIB_ERR_INVALID);
    prediction.struct_size = 0;
    CHECK(trib_predict(context, ranks, 1, &prediction) == TRIB_ERR_INVALID);
}

static void check_fork(void)
{
    int32_t x = 1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        int refused = trib_barrier(world) == TRIB_ERR_FORKED && trib_progress(context) == TRIB_ERR_FORKED;
        refused = refused && trib_group_free(world) == TRIB_ERR_FORKED && trib_finalize(context) == TRIB_ERR_FORKED;
        _exit(refused ? 0 : 1);
    }
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(trib_bcast(world, &x, sizeof x, 0) == TRIB_OK);
}

static void check_mismatch(void)
{
    uint32_t ranks[RANKS_MAX];
    trib_group *g = NULL;
    int32_t in[4] = {0}, out[4];
    char text[512];
    for (uint32_t r = 0; r < own_size; r++)
        ranks[r] = r;
    CHECK(trib_group_create(context, ranks, own_size, 9, &g) == TRIB_OK);
    size_t count = own_rank + 1 == own_size ? 3 : 4;
    CHECK(trib_allreduce(g, in, out, count, TRIB_INT32, TRIB_SUM) == TRIB_ERR_MISMATCH);
    CHECK(trib_group_status(g) == TRIB_ERR_MISMATCH);
    CHECK(trib_group_error(g, text, sizeof text) == TRIB_ERR_MISMATCH);
    char last[16];
    snprintf(last, sizeof last, "rank %u", own_size - 1);
    CHECK(strstr(text, last) && strstr(text, "called MPI_Allreduce of 4 int32 (sum)") && strstr(text, "MPI_Allreduce of 3 int32 (sum)"));
    CHECK(trib_group_free(g) == TRIB_OK);
}

static void body(void)
{
    uint32_t ranks[RANKS_MAX];
    trib_params params = rank_params();
    params.progress = progress;
    params.progress_ctx = &world;
    params.calls = "barrier=MPI_Barrier, allreduce=MPI_Allreduce";
    CHECK(trib_init(&params, &context) == TRIB_OK);
    for (uint32_t r = 0; r < own_size; r++)
        ranks[r] = r;
    CHECK(trib_group_create(context, ranks, own_size, 0, &world) == TRIB_OK);
    check_collectives(world, ranks, own_size, 0);
    check_collectives(world, ranks, own_size, 1);
    check_collectives(world, ranks, own_size, 1000);
    check_collectives(world, ranks, own_size, LONG_COUNT);
    check_types();
    check_outstanding();
    check_groups();
    check_crossing(ranks);
    check_threads(ranks);
    check_severed(ranks);
    check_left_early(ranks);
    check_neglect();
    check_progress();
    check_errors();
    check_fork();
    for (int within = 0; within < 2 && own_size > 1; within++)
        check_leaving(ranks, within);
    if (own_size > 1)
        check_mismatch();

    CHECK(trib_fall_back(context, "for the test") == TRIB_OK && trib_fall_back(context, "again") == TRIB_OK);
    CHECK(trib_fall_back(context, NULL) == TRIB_ERR_INVALID && trib_fall_back(NULL, "") == TRIB_ERR_INVALID);
    CHECK(trib_barrier(world) == TRIB_OK);

    check_prediction();

    trib_counters counters;
    counters.struct_size = sizeof counters;
    CHECK(trib_get_counters(context, &counters) == TRIB_OK);
    CHECK(counters.operations_llt > 512 && counters.operations_sat > 0 && counters.groups_created >= 4);
    CHECK(counters.stream_bytes_sent > LONG_COUNT && counters.datagrams_sent > 512);
    /* Handles may outlive the context. */
    trib_request *request = NULL;
    int done = 0;
    CHECK(trib_barrier_nb(world, &request) == TRIB_OK && trib_wait(request, -1) == TRIB_OK);
    CHECK(trib_finalize(context) == TRIB_OK && is_the_only_thread());
    CHECK(trib_test(request, &done) == TRIB_OK && done == 1);
    CHECK(trib_barrier(world) == TRIB_ERR_INVALID && strstr(trib_last_error(), "finalized"));
    CHECK(trib_request_free(request) == TRIB_OK && trib_group_free(world) == TRIB_OK);
}

int main(int argc, char **argv)
{
    uint32_t size = argc > 1 ? (uint32_t)atoi(argv[1]) : 4;
    return size < 1 || size > RANKS_MAX || on_ranks(size, body);
}
