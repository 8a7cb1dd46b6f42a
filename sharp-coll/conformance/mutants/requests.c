/* SPDX-License-Identifier: Apache-2.0
 *
 * Posts and requests, and how each can be broken.
 */
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "posting.h"

/* A post that is made only when its request is tested for the first time. */
struct late {
    enum collective collective;
    struct sharp_coll_comm *comm;
    struct call call, *spec;
    void *request;
};

static atomic_int under_way, inside, polls;
static struct sharp_coll_comm *busy;
static void *newest;

int make(enum collective collective, struct sharp_coll_comm *comm, struct call *call, void **request)
{
    struct sharp_coll_reduce_spec *reduce = call ? &call->reduce : NULL;
    struct sharp_coll_gather_spec *gather = call ? &call->gather : NULL;
    struct sharp_coll_bcast_spec *bcast = call ? &call->bcast : NULL;
    switch (collective) {
    case ALLREDUCE:
        return request ? REAL(sharp_coll_do_allreduce_nb)(comm, reduce, request) : REAL(sharp_coll_do_allreduce)(comm, reduce);
    case REDUCE: return request ? REAL(sharp_coll_do_reduce_nb)(comm, reduce, request) : REAL(sharp_coll_do_reduce)(comm, reduce);
    case REDUCE_SCATTER:
        return request ? REAL(sharp_coll_do_reduce_scatter_nb)(comm, reduce, request)
                       : REAL(sharp_coll_do_reduce_scatter)(comm, reduce);
    case ALLGATHER:
        return request ? REAL(sharp_coll_do_allgather_nb)(comm, gather, request) : REAL(sharp_coll_do_allgather)(comm, gather);
    case BCAST: return request ? REAL(sharp_coll_do_bcast_nb)(comm, bcast, request) : REAL(sharp_coll_do_bcast)(comm, bcast);
    default: return request ? REAL(sharp_coll_do_barrier_nb)(comm, request) : REAL(sharp_coll_do_barrier)(comm);
    }
}

static int is_late(void)
{
    return is("posts at the first test") || is("keeps specs") || (is("lets barriers overtake posts") && at_first_rank());
}

/* The request behind a handle of this library's. */
static void *behind(void *handle)
{
    struct late *late = (struct late *)handle;
    if (!handle || !is_late())
        return handle;
    if (!late->request)
        make(late->collective, late->comm, late->spec, &late->request);
    return late->request;
}

static int post(enum collective collective, struct sharp_coll_comm *comm, void *spec, size_t len, void **request)
{
    static struct call none;
    struct call call = none;
    if (!request)
        return SHARP_COLL_EINVAL; /* without a request it would be the blocking call */
    if (!comm || (!spec && len > 0))
        return make(collective, comm, (struct call *)spec, request);
    memcpy(&call, len > 0 ? spec : &none, len);
    int code = refused(collective, &call);
    if (code)
        return code;
    change(collective, &call);
    if (is("has 128 requests") && under_way >= 128)
        return SHARP_COLL_ENO_RESOURCE;
    if (is("has one busy group") && under_way > 0 && busy != comm)
        return SHARP_COLL_ENO_RESOURCE;
    if (is("is for one thread") && inside++ > 0)
        return SHARP_COLL_ERROR;
    if (is_late()) {
        struct late *late = calloc(1, sizeof *late);
        *late = (struct late){collective, comm, call, (struct call *)spec, NULL};
        if (!is("keeps specs"))
            late->spec = &late->call;
        *request = late;
        return 0;
    }
    code = make(collective, comm, &call, request);
    if (is("is for one thread")) {
        usleep(200);
        inside--;
    }
    if (code < 0 && is("writes handles of failed posts"))
        *request = NULL;
    if (code < 0)
        return code;
    under_way++;
    busy = comm;
    newest = *request;
    polls = 0;
    while (is("waits in posts") && REAL(sharp_coll_req_test)(*request) == 0)
        usleep(100);
    return code;
}

int sharp_coll_do_barrier_nb(struct sharp_coll_comm *comm, void **request)
{
    return post(BARRIER, comm, NULL, 0, request);
}

int sharp_coll_do_allreduce_nb(struct sharp_coll_comm *comm, struct sharp_coll_reduce_spec *spec, void **request)
{
    return post(ALLREDUCE, comm, spec, sizeof *spec, request);
}

int sharp_coll_do_reduce_nb(struct sharp_coll_comm *comm, struct sharp_coll_reduce_spec *spec, void **request)
{
    return post(REDUCE, comm, spec, sizeof *spec, request);
}

int sharp_coll_do_reduce_scatter_nb(struct sharp_coll_comm *comm, struct sharp_coll_reduce_spec *spec, void **request)
{
    return post(REDUCE_SCATTER, comm, spec, sizeof *spec, request);
}

int sharp_coll_do_allgather_nb(struct sharp_coll_comm *comm, struct sharp_coll_gather_spec *spec, void **request)
{
    return post(ALLGATHER, comm, spec, sizeof *spec, request);
}

int sharp_coll_do_bcast_nb(struct sharp_coll_comm *comm, struct sharp_coll_bcast_spec *spec, void **request)
{
    return post(BCAST, comm, spec, sizeof *spec, request);
}

int sharp_coll_progress(struct sharp_coll_context *context)
{
    polls++;
    if (is("is not polled inside callbacks") && under_way == 0)
        return SHARP_COLL_ERROR;
    return REAL(sharp_coll_progress)(context);
}

int sharp_coll_req_test(void *request)
{
    if (is("tests NULL as not done") && !request)
        return 0;
    if (is("needs sharp_coll_progress") && polls == 0)
        return 0;
    if (is("ends the newest only") && request != newest)
        return 0;
    int done = REAL(sharp_coll_req_test)(behind(request));
    return done && is("says 2 when done") ? 2 : done;
}

int sharp_coll_req_wait(void *request)
{
    if (is("keeps requests that were waited for")) {
        while (REAL(sharp_coll_req_test)(request) == 0)
            usleep(10);
        return 0;
    }
    if (is("believes the time limit") && wait_limit() > 0) {
        for (int ms = 0; REAL(sharp_coll_req_test)(request) == 0; ms++) {
            if (ms > wait_limit())
                return SHARP_COLL_ERROR;
            usleep(1000);
        }
    }
    under_way--;
    return REAL(sharp_coll_req_wait)(behind(request));
}

int sharp_coll_req_free(void *request)
{
    if (request)
        under_way--;
    int code = REAL(sharp_coll_req_free)(behind(request));
    if (is_late())
        free(request);
    return code;
}
