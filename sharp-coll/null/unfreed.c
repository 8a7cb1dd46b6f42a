/* SPDX-License-Identifier: Apache-2.0
 *
 * unfreed.c - requests that are tested until they are over and never freed, as some clients leave
 * them: they keep no copy of what was given.
 */
#include <malloc.h>

#include "null.h"

enum { REQUESTS = 2000, COUNT = 10000 };

static int32_t vector[COUNT], sums[COUNT];

static size_t taken(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

int main(void)
{
    struct fixture fixture = alone_among(2);
    struct sharp_coll_reduce_spec spec = reduce_spec(vector, sums, COUNT, SHARP_DTYPE_INT, SHARP_OP_SUM);
    struct sharp_data_iov list[2] = {{vector, 8, NULL}, {vector + 2, sizeof vector - 8, NULL}};
    size_t before = taken();
    /* The bytes of a list are copied, because the operation needs them in one piece. */
    spec.sbuf_desc.type = SHARP_DATA_IOV;
    spec.sbuf_desc.iov.count = 2;
    spec.sbuf_desc.iov.vector = list;
    for (int at = 0; at < REQUESTS; at++) {
        void *request = NULL;
        CHECK_OK(sharp_coll_do_allreduce_nb(fixture.comm, &spec, &request));
        CHECK(sharp_coll_req_test(request) == 1);
        CHECK(sharp_coll_req_test(request) == 1);
    }
    size_t kept = taken() - before;
    if (kept > REQUESTS * sizeof vector / 10)
        fail(__FILE__, __LINE__, "%d requests that are over keep %zu bytes", REQUESTS, kept);
    CHECK_OK(sharp_coll_finalize(fixture.context));
    puts("ok unfreed");
    return 0;
}
