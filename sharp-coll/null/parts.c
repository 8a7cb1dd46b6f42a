/* SPDX-License-Identifier: Apache-2.0
 *
 * parts.c - calls of several parts, some of which fail while others are under way. A buffer of
 * the library from which a part still reads must not be used by anything else.
 */
#include "null.h"

enum { RANKS = 3, BLOCK = 500 };

static int32_t vector[RANKS * BLOCK];

/* All but the last element, in place: this needs a part for each rank, and a copy of the input. */
static struct sharp_coll_reduce_spec window(void)
{
    struct sharp_coll_reduce_spec spec = reduce_spec(vector, vector, BLOCK, SHARP_DTYPE_INT, SHARP_OP_SUM);
    spec.sbuf_desc.buffer.length = sizeof vector - 4;
    spec.rbuf_desc.buffer.length = BLOCK * 4;
    spec.offset = 0;
    return spec;
}

static void fill_with(int32_t value)
{
    for (int at = 0; at < RANKS * BLOCK; at++)
        vector[at] = value;
}

static int all_are(const void *bytes, size_t count, int32_t value)
{
    for (size_t at = 0; at < count; at++)
        if (((const int32_t *)bytes)[at] != value)
            return 0;
    return 1;
}

/* Operations that need buffers of the same size as those that they must not get. */
static void others(struct sharp_coll_comm *comm)
{
    struct sharp_coll_reduce_spec spec = window();
    for (int32_t round = 0; round < 100; round++) {
        void *request = NULL;
        fill_with(1000 + round);
        CHECK_OK(sharp_coll_do_reduce_scatter(comm, &spec));
        CHECK_OK(sharp_coll_do_reduce_scatter_nb(comm, &spec, &request));
        CHECK_OK(sharp_coll_req_wait(request));
    }
}

static void kept(struct sharp_coll_comm *comm, size_t part, int32_t value)
{
    const void *input = null_input(part);
    CHECK(input != NULL);
    others(comm);
    CHECK(all_are(input, BLOCK - 1, value));
    null_release();
    others(comm);
}

int main(void)
{
    struct fixture fixture = alone_among(RANKS);
    struct sharp_coll_reduce_spec spec = window();
    void *request = NULL;
    CHECK(setenv("SHARP_COLL_LOG_LEVEL", "0", 1) == 0);
    CHECK_OK(sharp_coll_log_early_init());
    /* A blocking call: the first part fails, the others stay. */
    fill_with(7);
    null_script("fss");
    CHECK(sharp_coll_do_reduce_scatter(fixture.comm, &spec) < 0);
    kept(fixture.comm, 2, 7);
    /* A request that is freed while parts of it stay. */
    fill_with(8);
    null_script("ess");
    CHECK_OK(sharp_coll_do_reduce_scatter_nb(fixture.comm, &spec, &request));
    CHECK(sharp_coll_req_test(request) == 0);
    CHECK_OK(sharp_coll_req_free(request));
    kept(fixture.comm, 1, 8);
    CHECK_OK(sharp_coll_comm_destroy(fixture.comm));
    CHECK_OK(sharp_coll_finalize(fixture.context));
    puts("ok parts");
    return 0;
}
