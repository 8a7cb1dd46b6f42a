/* SPDX-License-Identifier: Apache-2.0
 *
 * null.h - a job of the library without a network, and what its script understands.
 */
#ifndef NULL_H
#define NULL_H

#include "conformance.h"

/* The fates of the next operations: `e` ends, `f` fails, `s` stays under way until
   null_release(). */
void null_script(const char *fates);
const void *null_input(size_t at);
void null_release(void);

/* The exchange of a rank that plays all others. Their records are copies of this rank's with
 * another rank number. What they give is a copy, too, in which each has its rank in the job
 * where it gives anything. A record begins with rank, size and code (4 bytes each) and a length
 * (2 bytes). */
static int alone_gather(void *context, int root, void *sbuf, void *rbuf, int len)
{
    (void)context;
    (void)root;
    for (int r = 0; r < own_size; r++) {
        char *record = (char *)rbuf + (size_t)r * (size_t)len;
        uint32_t rank = (uint32_t)r;
        memcpy(record, sbuf, (size_t)len);
        memcpy(record, &rank, sizeof rank);
        if (record[12] == sizeof rank)
            memcpy(record + 14, &rank, sizeof rank);
    }
    return 0;
}

static int alone_bcast(void *context, void *buffer, int len, int root)
{
    (void)context;
    (void)buffer;
    (void)len;
    (void)root;
    return 0;
}

/* A job of so many ranks, of which this is the first. */
static struct fixture alone_among(int ranks)
{
    struct fixture fixture;
    memset(&fixture, 0, sizeof fixture);
    own_size = ranks;
    world.rank = 0;
    world.size = ranks;
    struct sharp_coll_init_spec spec = job_spec();
    spec.oob_colls.gather = alone_gather;
    spec.oob_colls.bcast = alone_bcast;
    spec.oob_ctx = NULL;
    CHECK_OK(sharp_coll_init(&spec, &fixture.context));
    struct sharp_coll_comm_init_spec group = group_spec(&world);
    group.oob_ctx = NULL;
    CHECK_OK(sharp_coll_comm_init(fixture.context, &group, &fixture.comm));
    return fixture;
}

#endif
