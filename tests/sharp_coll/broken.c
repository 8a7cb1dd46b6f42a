/* SPDX-License-Identifier: Apache-2.0
 *
 * A library that is preloaded before libsharp_coll and spoils its results, to show that a test
 * can fail: the third result of every collective has one changed byte at all ranks that get one,
 * and barriers let every rank pass.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "sharp/api/sharp.h"

static void spoil(const struct sharp_coll_data_desc *desc, int *calls)
{
    if (++*calls == 3)
        ((unsigned char *)desc->buffer.ptr)[0] ^= 1;
}

#define BROKEN(name, spec_type, result)                                                                 \
    int name(struct sharp_coll_comm *comm, struct spec_type *spec)                                      \
    {                                                                                                   \
        static int calls;                                                                               \
        int (*real)(struct sharp_coll_comm *, struct spec_type *) =                                     \
            (int (*)(struct sharp_coll_comm *, struct spec_type *))dlsym(RTLD_NEXT, #name);             \
        int code = real(comm, spec);                                                                    \
        spoil(&spec->result, &calls);                                                                   \
        return code;                                                                                    \
    }

BROKEN(sharp_coll_do_allreduce, sharp_coll_reduce_spec, rbuf_desc)
BROKEN(sharp_coll_do_reduce, sharp_coll_reduce_spec, rbuf_desc)
BROKEN(sharp_coll_do_reduce_scatter, sharp_coll_reduce_spec, rbuf_desc)
BROKEN(sharp_coll_do_bcast, sharp_coll_bcast_spec, buf_desc)
BROKEN(sharp_coll_do_allgather, sharp_coll_gather_spec, rbuf_desc)

int sharp_coll_do_barrier(struct sharp_coll_comm *comm)
{
    (void)comm;
    return 0;
}
