/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu.c - collectives over memory of a GPU, with the driver that stands in for CUDA's.
 *
 *   PROGRAM RANKS busy      work is queued on the default stream that does not end while the
 *                           program lives: no operation waits for it
 *   PROGRAM RANKS windows   allgathers by windows, whose descriptors say anything about the memory
 *                           that they name, as NCCL's plugin leaves them
 *   PROGRAM RANKS copy      a copy fails at the last rank, which therefore does not post what the
 *                           others do; SHARP_COLL_ON_ERROR decides whether all end or get errors
 */
#include <dlfcn.h>

#include "../coll_test/cuda.h"
#include "../conformance/conformance.h"

/* A function of the stand-in's own. */
static void *stand_in(const char *name)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    CHECK(driver != NULL);
    void *function = dlsym(driver, name);
    CHECK(function != NULL);
    return function;
}

static long count(const char *call)
{
    return ((long (*)(const char *))stand_in("standInCount"))(call);
}

static struct fixture set_up_with_gpu(void)
{
    const char *why = cuda_open(own_rank);
    if (why)
        fail(__FILE__, __LINE__, "%s", why);
    struct fixture fixture = set_up();
    /* Settings count as they were when the job was joined. */
    CHECK(setenv("SHARP_COLL_ENABLE_CUDA", "0", 1) == 0);
    return fixture;
}

static char *gpu_memory(size_t len)
{
    char *start = (char *)cuda_take(len);
    CHECK(start != NULL);
    return start;
}

/* A sum of integers, of memory of these types. */
static struct sharp_coll_reduce_spec sum(const void *from, int from_gpu, void *to, int to_gpu, size_t count)
{
    struct sharp_coll_reduce_spec spec = reduce_spec(from, to, count, SHARP_DTYPE_INT, SHARP_OP_SUM);
    spec.sbuf_desc.mem_type = from_gpu ? SHARP_MEM_TYPE_CUDA : SHARP_MEM_TYPE_HOST;
    spec.rbuf_desc.mem_type = to_gpu ? SHARP_MEM_TYPE_CUDA : SHARP_MEM_TYPE_HOST;
    return spec;
}

static void do_nb(struct fixture *fixture, struct sharp_coll_reduce_spec spec)
{
    void *request = NULL;
    CHECK_OK(sharp_coll_do_allreduce_nb(fixture->comm, &spec, &request));
    finish(request);
}

static void busy(void)
{
    enum { COUNT = 5000 };
    static int32_t in[COUNT], out[COUNT];
    struct fixture fixture = set_up_with_gpu();
    int (*sleep_for)(void *, unsigned) = (int (*)(void *, unsigned))stand_in("standInSleep");
    char *registered = gpu_memory(sizeof in), *other = gpu_memory(sizeof in), *result = gpu_memory(sizeof in);
    void *handle = NULL;
    for (int i = 0; i < COUNT; i++)
        in[i] = i + own_rank;
    CHECK_OK(sharp_coll_reg_mr(fixture.context, registered, sizeof in, &handle));
    CHECK(count("cuPointerSetAttribute") == 1);
    /* What these bring may still be on its way when they return. */
    CHECK(cuda_write(registered, in, sizeof in) == 0 && cuda_write(other, in, sizeof in) == 0);
    CHECK(sleep_for(NULL, 4000000000u) == 0);
    const char *given[] = {registered, other};
    for (int at = 0; at < LENGTH(given); at++) {
        memset(out, 0, sizeof out);
        do_nb(&fixture, sum(given[at], 1, out, 0, COUNT));
        for (int i = 0; i < COUNT; i++)
            CHECK(out[i] == own_size * i + own_size * (own_size - 1) / 2);
    }
    /* Back to the GPU, and out again. */
    do_nb(&fixture, sum(in, 0, result, 1, COUNT));
    do_nb(&fixture, sum(result, 1, out, 0, COUNT));
    for (int i = 0; i < COUNT; i++)
        CHECK(out[i] == own_size * (own_size * i + own_size * (own_size - 1) / 2));
    take_down(&fixture);
}

static void windows(void)
{
    enum { BLOCK = 4 * 500, STEP = 4 * 300 };
    static const uint32_t types[] = {0x51525355, SHARP_MEM_TYPE_HOST, SHARP_MEM_TYPE_CUDA};
    struct fixture fixture = set_up_with_gpu();
    size_t all = (size_t)BLOCK * (size_t)own_size, first = (size_t)BLOCK * (size_t)own_rank;
    char *own = gpu_memory(BLOCK), *whole = gpu_memory(all);
    int32_t *host = (int32_t *)calloc(1, all);
    CHECK(host != NULL);
    for (size_t i = 0; i < BLOCK / 4; i++)
        host[i] = (int32_t)(first / 4 + i);
    CHECK(cuda_write(own, host, BLOCK) == 0);
    for (int round = 0; round < LENGTH(types); round++) {
        memset(host, 0, all);
        CHECK(cuda_write(whole, host, all) == 0);
        for (size_t at = 0; at < all; at += STEP) {
            struct sharp_coll_gather_spec gather;
            void *request = NULL;
            size_t len = at + STEP < all ? STEP : all - at, within = at > first && at < first + BLOCK ? at - first : 0;
            garbage(&gather, sizeof gather);
            gather.sbuf_desc = buffer_of(own + within, BLOCK, NULL);
            gather.rbuf_desc = buffer_of(whole + at, len, NULL);
            gather.sbuf_desc.mem_type = gather.rbuf_desc.mem_type = (enum sharp_data_memory_type)types[round];
            gather.offset = at;
            CHECK_OK(sharp_coll_do_allgather_nb(fixture.comm, &gather, &request));
            finish(request);
        }
        CHECK(cuda_read(host, whole, all) == 0);
        for (size_t i = 0; i < all / 4; i++)
            CHECK(host[i] == (int32_t)i);
    }
    free(host);
    take_down(&fixture);
}

static void copy(void)
{
    enum { COUNT = 100 };
    static int32_t in[COUNT], out[COUNT];
    struct fixture fixture = set_up_with_gpu();
    void (*set)(const char *, const char *) = (void (*)(const char *, const char *))stand_in("standInSet");
    int is_victim = own_rank == own_size - 1;
    char *given = gpu_memory(sizeof in), failing[64];
    void *request = NULL;
    CHECK(cuda_write(given, in, sizeof in) == 0);
    if (is_victim) {
        snprintf(failing, sizeof failing, "cuMemcpyAsync:%ld:2", count("cuMemcpyAsync") + 1);
        set("STAND_IN_FAIL", failing);
    }
    struct sharp_coll_reduce_spec spec = sum(given, 1, out, 0, COUNT);
    int code = sharp_coll_do_allreduce_nb(fixture.comm, &spec, &request);
    CHECK(!is_victim || code == SHARP_COLL_ENOMEM);
    /* The victim's next operation must not pass for the one that it has not begun. */
    spec = sum(in, 0, out, 0, COUNT);
    CHECK(!is_victim || sharp_coll_do_allreduce(fixture.comm, &spec) < 0);
    CHECK(code < 0 || sharp_coll_req_wait(request) < 0);
    CHECK(sharp_coll_do_allreduce(fixture.comm, &spec) < 0);
    take_down(&fixture);
}

static const struct test tests[] = {{"busy", busy, 2}, {"windows", windows, 2}, {"copy", copy, 2}};

int main(int argc, char **argv)
{
    return run_tests(tests, LENGTH(tests), argc, argv);
}
