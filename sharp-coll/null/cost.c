/* SPDX-License-Identifier: Apache-2.0
 *
 * cost.c - what this library adds to an operation: nanoseconds, allocations and system calls,
 * over a client library that does nothing.
 *
 *   PROGRAM [LIMIT]   prints a line for each way to make an operation; fails if one allocates,
 *                     enters the kernel, or takes more than LIMIT ns where that is given
 */
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "null.h"

enum { BATCH = 1000, BATCHES = 200, COUNT = 64 };

static unsigned long allocations;

void *__libc_malloc(size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_calloc(size_t count, size_t size);

void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}

void *realloc(void *memory, size_t size)
{
    allocations++;
    return __libc_realloc(memory, size);
}

void *calloc(size_t count, size_t size)
{
    allocations++;
    return __libc_calloc(count, size);
}

static struct fixture fixture;
static void *handle;
static int32_t in[COUNT], out[COUNT];
static struct sharp_data_iov from, to;
/* These are filled once, because what a program does to its specs does not count as the
 * library's work. */
static struct sharp_coll_reduce_spec with_handles, without_handles, of_pieces, scattered;
static struct sharp_coll_bcast_spec broadcast;
static struct sharp_coll_gather_spec gathered;

static void end(void *request)
{
    CHECK(sharp_coll_req_test(request) == 1);
    CHECK_OK(sharp_coll_req_free(request));
}

/* A sum of all numbers. */
static struct sharp_coll_reduce_spec sum(void *mr)
{
    struct sharp_coll_reduce_spec spec;
    memset(&spec, 0, sizeof spec);
    spec.sbuf_desc.buffer.ptr = in;
    spec.rbuf_desc.buffer.ptr = out;
    spec.sbuf_desc.buffer.length = spec.rbuf_desc.buffer.length = sizeof in;
    spec.sbuf_desc.buffer.mem_handle = spec.rbuf_desc.buffer.mem_handle = mr;
    spec.dtype = SHARP_DTYPE_INT;
    spec.op = SHARP_OP_SUM;
    spec.length = COUNT;
    return spec;
}

static void describe_all(void)
{
    size_t block = sizeof in / (size_t)own_size;
    with_handles = of_pieces = scattered = sum(handle);
    without_handles = sum(NULL);
    from.ptr = in;
    to.ptr = out;
    from.length = to.length = sizeof in;
    of_pieces.sbuf_desc.type = of_pieces.rbuf_desc.type = SHARP_DATA_IOV;
    of_pieces.sbuf_desc.iov.count = of_pieces.rbuf_desc.iov.count = 1;
    of_pieces.sbuf_desc.iov.vector = &from;
    of_pieces.rbuf_desc.iov.vector = &to;
    scattered.rbuf_desc.buffer.length = block;
    broadcast.buf_desc.buffer.ptr = in;
    broadcast.buf_desc.buffer.length = broadcast.size = sizeof in;
    broadcast.buf_desc.buffer.mem_handle = handle;
    gathered.sbuf_desc.buffer.ptr = in;
    gathered.rbuf_desc.buffer.ptr = out;
    gathered.sbuf_desc.buffer.length = block;
    gathered.rbuf_desc.buffer.length = sizeof out;
    gathered.sbuf_desc.buffer.mem_handle = handle;
}

static void blocking_barrier(void)
{
    CHECK_OK(sharp_coll_do_barrier(fixture.comm));
}

static void blocking_allreduce(void)
{
    CHECK_OK(sharp_coll_do_allreduce(fixture.comm, &with_handles));
}

static void posted_barrier(void)
{
    void *request = NULL;
    CHECK_OK(sharp_coll_do_barrier_nb(fixture.comm, &request));
    end(request);
}

static void posted_allreduce(void)
{
    void *request = NULL;
    CHECK_OK(sharp_coll_do_allreduce_nb(fixture.comm, &with_handles, &request));
    end(request);
}

static void posted_allreduce_without_handles(void)
{
    void *request = NULL;
    CHECK_OK(sharp_coll_do_allreduce_nb(fixture.comm, &without_handles, &request));
    end(request);
}

static void posted_allreduce_of_pieces(void)
{
    void *request = NULL;
    CHECK_OK(sharp_coll_do_allreduce_nb(fixture.comm, &of_pieces, &request));
    end(request);
}

static void posted_bcast(void)
{
    void *request = NULL;
    CHECK_OK(sharp_coll_do_bcast_nb(fixture.comm, &broadcast, &request));
    end(request);
}

static void posted_reduce_scatter(void)
{
    void *request = NULL;
    CHECK_OK(sharp_coll_do_reduce_scatter_nb(fixture.comm, &scattered, &request));
    end(request);
}

static void posted_allgather(void)
{
    void *request = NULL;
    CHECK_OK(sharp_coll_do_allgather_nb(fixture.comm, &gathered, &request));
    end(request);
}

static const struct way {
    const char *name;
    void (*operation)(void);
} ways[] = {
    {"barrier", blocking_barrier},
    {"allreduce", blocking_allreduce},
    {"barrier_nb, test, free", posted_barrier},
    {"allreduce_nb, test, free", posted_allreduce},
    {"allreduce_nb without handles (a copy), test, free", posted_allreduce_without_handles},
    {"allreduce_nb of a list of pieces, test, free", posted_allreduce_of_pieces},
    {"bcast_nb, test, free", posted_bcast},
    {"reduce_scatter_nb, test, free", posted_reduce_scatter},
    {"allgather_nb, test, free", posted_allgather},
};

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* The time of the quickest batch, because other load on the machine only makes batches slower. */
static double quickest(void (*operation)(void))
{
    double least = 1e18;
    for (int batch = 0; batch < BATCHES; batch++) {
        double began = now_ns();
        for (int at = 0; at < BATCH; at++)
            operation();
        double taken = (now_ns() - began) / BATCH;
        if (taken < least)
            least = taken;
    }
    return least;
}

/* Runs the operation in a child that the kernel ends at the first system call other than one to
 * leave. */
static int enters_the_kernel(void (*operation)(void))
{
    int status = 0;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
        for (int at = 0; at < BATCH; at++)
            operation();
        syscall(SYS_exit, 0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    return !WIFEXITED(status);
}

int main(int argc, char **argv)
{
    double limit = argc > 1 ? atof(argv[1]) : 0;
    int failed = 0;
    fixture = alone_among(4);
    CHECK_OK(sharp_coll_reg_mr(fixture.context, in, sizeof in, &handle));
    describe_all();
    printf("%-50s %6s %12s %13s\n", "", "ns", "allocations", "system calls");
    for (int at = 0; at < LENGTH(ways); at++) {
        for (int warm = 0; warm < BATCH; warm++)
            ways[at].operation();
        unsigned long before = allocations;
        for (int count = 0; count < BATCH; count++)
            ways[at].operation();
        unsigned long allocated = allocations - before;
        int enters = enters_the_kernel(ways[at].operation);
        double taken = quickest(ways[at].operation);
        printf("%-50s %6.0f %12.3f %13s\n", ways[at].name, taken, (double)allocated / BATCH, enters ? "some" : "none");
        failed |= allocated > 0 || enters || (limit > 0 && taken > limit);
    }
    CHECK_OK(sharp_coll_finalize(fixture.context));
    return failed;
}
