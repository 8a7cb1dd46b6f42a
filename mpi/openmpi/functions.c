/* SPDX-License-Identifier: Apache-2.0 */
#include "functions.h"

#include "caller.h"
#include "job.h"
#include "operation.h"
#include "report.h"
#include "requests.h"
#include "verdict.h"
#include "worth.h"

/* The functions that Open MPI would have called without us. */
#define BEFORE(name, ...) (m->previous.coll_##name(__VA_ARGS__, m->previous.coll_##name##_module))
/* The same of the waiting call `call`, which is timed since `called`. */
#define TIMED_BEFORE(function, ...) \
    ({ \
        int result = BEFORE(function, __VA_ARGS__); \
        module_time(m, call.name, DOER_MPI, called); \
        result; \
    })

typedef const void *source;
typedef struct ompi_datatype_t *datatype;
typedef struct ompi_op_t *operator;
typedef struct ompi_communicator_t *communicator;
typedef struct ompi_info_t *info;
typedef mca_coll_base_module_t base;

/* The verdict, which may be that the communicator's tree is made for this call. */
static enum reason judge(struct module *m, const struct call *call, struct operation *operation)
{
    enum reason reason = verdict_on(module_group(m), call, operation);

    if (reason == REASON_FEW_CALLS && module_note_call(m, worth_in_calls(operation)))
        reason = verdict_on(module_group(m), call, operation);
    return reason;
}

/* Whether a verdict stays what it is. Of a tree in the making another thread may have learned since
 * the verdict that it is refused, which it says in is_settled after it has changed the group. */
static bool stands(struct module *m, enum reason reason, const struct operation *operation)
{
    if (reason == REASON_TREE)
        return atomic_load(&m->is_settled) && operation->group == module_group(m);
    return !requests_are_ahead(m);
}

/* The verdict on a call that may wait for others, once the tree is there or refused where it had
 * this verdict before, or where those ahead of it may yet be left to the MPI. */
static enum reason settled(struct module *m, const struct call *call, enum reason reason, struct operation *operation)
{
    if (stands(m, reason, operation))
        return reason;
    uint64_t begun = report_clock();
    requests_await_tree(m);
    report_tree_time(begun);
    return verdict_on(module_group(m), call, operation);
}

/* Whether the tree, which is there, is to take a blocking call. It is counted if not. */
static bool takes(struct module *m, const struct call *call, struct operation *operation)
{
    enum reason reason = settled(m, call, judge(m, call, operation), operation);

    if (reason != REASON_TREE)
        report_operation(call->name, reason, operation->bytes);
    return reason == REASON_TREE;
}

/* Makes a persistent request, unless the MPI is to make it, which is counted. The request has come
 * to stay, so that a tree pays for it whatever the communicator's calls so far. */
static bool makes(struct module *m, const struct call *call, ompi_request_t **request)
{
    struct operation operation;
    enum reason reason = settled(m, call, verdict_on(module_group(m), call, &operation), &operation);

    if (reason == REASON_TREE || reason == REASON_FEW_CALLS) {
        uint64_t begun = report_clock();
        bool is_made = requests_make(m, call, request);
        report_tree_time(begun);
        if (is_made)
            return true;
        reason = REASON_NO_GROUP;
    }
    report_operation(call->name, reason, operation.bytes);
    return false;
}

/* Whether a call that waits for nobody is to be a request of ours: if it goes through the tree, or
 * comes after one that may yet be left to the MPI, which has to begin them in their order. */
static bool is_ours(struct module *m, const struct call *call)
{
    struct operation operation;
    enum reason reason = judge(m, call, &operation);

    if (reason == REASON_TREE || (reason != REASON_ARGUMENT && requests_are_ahead(m)))
        return true;
    if (!call->is_mpis_own)
        report_operation(call->name, reason, operation.bytes);
    return false;
}

/* Lets what the MPI is about to do for itself begin after what may yet be left to it. */
static void go_behind(struct module *m)
{
    if (requests_are_ahead(m))
        requests_await_tree(m);
}

static int run(struct module *m, struct operation *operation, uint64_t begun)
{
    bool agreed = operation_run(module_group(m), operation);

    module_time(m, operation->call.name, DOER_TREE, begun);
    return agreed ? OMPI_SUCCESS : MPI_ERR_OTHER;
}

#define LIST(...) __VA_ARGS__

/* The three functions of a collective: blocking, non-blocking, persistent. `parameters` and
 * `arguments` end with a comma; the rest says what the call is. */
#define TAKEN(lower, Upper, parameters, arguments, ...) \
    static int lower(parameters communicator comm, base *module) \
    { \
        struct module *m = (struct module *)module; \
        struct operation operation; \
        const struct call call = {.name = COLLECTIVE_MPI_##Upper, __VA_ARGS__}; \
        static struct entry entry = {.function = (const void *)PMPI_##Upper}; \
\
        if (caller_is_mpi(&entry, __builtin_return_address(0))) { \
            go_behind(m); \
            return BEFORE(lower, arguments comm); \
        } \
        uint64_t called = report_clock(); \
        return takes(m, &call, &operation) ? run(m, &operation, called) : TIMED_BEFORE(lower, arguments comm); \
    } \
\
    static int i##lower(parameters communicator comm, ompi_request_t **request, base *module) \
    { \
        struct module *m = (struct module *)module; \
        static struct entry entry = {.function = (const void *)PMPI_I##lower}; \
        const struct call call = {.name = COLLECTIVE_MPI_I##lower, .is_mpis_own = caller_is_mpi(&entry, __builtin_return_address(0)), \
                                  __VA_ARGS__}; \
\
        return is_ours(m, &call) ? requests_begin(m, &call, request) : BEFORE(i##lower, arguments comm, request); \
    } \
\
    static int lower##_init(parameters communicator comm, info hints, ompi_request_t **request, base *module) \
    { \
        struct module *m = (struct module *)module; \
        const struct call call = {.name = COLLECTIVE_MPI_##Upper##_init, __VA_ARGS__}; \
\
        return makes(m, &call, request) ? OMPI_SUCCESS : BEFORE(lower##_init, arguments comm, hints, request); \
    }

TAKEN(allreduce, Allreduce, LIST(source sbuf, void *rbuf, int count, datatype type, operator op,),
      LIST(sbuf, rbuf, count, type, op,),
      .kind = KIND_ALLREDUCE, .send = sbuf, .recv = rbuf, .count = count, .datatype = type, .op = op)
TAKEN(reduce, Reduce, LIST(source sbuf, void *rbuf, int count, datatype type, operator op, int root,),
      LIST(sbuf, rbuf, count, type, op, root,),
      .kind = KIND_REDUCE, .send = sbuf, .recv = rbuf, .count = count, .datatype = type, .op = op, .root = root)
TAKEN(barrier, Barrier, LIST(), LIST(), .kind = KIND_BARRIER)
TAKEN(bcast, Bcast, LIST(void *buffer, int count, datatype type, int root,), LIST(buffer, count, type, root,),
      .kind = KIND_BCAST, .send = buffer, .recv = buffer, .count = count, .datatype = type, .root = root)
TAKEN(allgather, Allgather, LIST(source sbuf, int scount, datatype stype, void *rbuf, int rcount, datatype rtype,),
      LIST(sbuf, scount, stype, rbuf, rcount, rtype,),
      .kind = KIND_ALLGATHER, .send = sbuf, .send_count = scount, .send_type = stype, .recv = rbuf, .count = rcount, .datatype = rtype)
TAKEN(reduce_scatter_block, Reduce_scatter_block, LIST(source sbuf, void *rbuf, int count, datatype type, operator op,),
      LIST(sbuf, rbuf, count, type, op,),
      .kind = KIND_REDUCE_SCATTER, .send = sbuf, .recv = rbuf, .count = count, .datatype = type, .op = op)
TAKEN(gather, Gather, LIST(source sbuf, int scount, datatype stype, void *rbuf, int rcount, datatype rtype, int root,),
      LIST(sbuf, scount, stype, rbuf, rcount, rtype, root,),
      .kind = KIND_GATHER, .send = sbuf, .send_count = scount, .send_type = stype, .recv = rbuf, .count = rcount, .datatype = rtype,
      .root = root)
TAKEN(scatter, Scatter, LIST(source sbuf, int scount, datatype stype, void *rbuf, int rcount, datatype rtype, int root,),
      LIST(sbuf, scount, stype, rbuf, rcount, rtype, root,),
      .kind = KIND_SCATTER, .send = sbuf, .send_count = scount, .send_type = stype, .recv = rbuf, .count = rcount, .datatype = rtype,
      .root = root)
TAKEN(alltoall, Alltoall, LIST(source sbuf, int scount, datatype stype, void *rbuf, int rcount, datatype rtype,),
      LIST(sbuf, scount, stype, rbuf, rcount, rtype,),
      .kind = KIND_ALLTOALL, .send = sbuf, .send_count = scount, .send_type = stype, .recv = rbuf, .count = rcount, .datatype = rtype)
TAKEN(allgatherv, Allgatherv,
      LIST(source sbuf, int scount, datatype stype, void *rbuf, const int *rcounts, const int *displacements, datatype rtype,),
      LIST(sbuf, scount, stype, rbuf, rcounts, displacements, rtype,),
      .kind = KIND_ALLGATHERV, .send = sbuf, .send_count = scount, .send_type = stype, .recv = rbuf, .counts = rcounts,
      .offsets = displacements, .datatype = rtype)
TAKEN(reduce_scatter, Reduce_scatter, LIST(source sbuf, void *rbuf, const int *rcounts, datatype type, operator op,),
      LIST(sbuf, rbuf, rcounts, type, op,),
      .kind = KIND_REDUCE_SCATTERV, .send = sbuf, .recv = rbuf, .counts = rcounts, .datatype = type, .op = op)
TAKEN(scan, Scan, LIST(source sbuf, void *rbuf, int count, datatype type, operator op,), LIST(sbuf, rbuf, count, type, op,),
      .kind = KIND_SCAN, .send = sbuf, .recv = rbuf, .count = count, .datatype = type, .op = op)
TAKEN(exscan, Exscan, LIST(source sbuf, void *rbuf, int count, datatype type, operator op,), LIST(sbuf, rbuf, count, type, op,),
      .kind = KIND_EXSCAN, .send = sbuf, .recv = rbuf, .count = count, .datatype = type, .op = op)

int functions_begin_by_mpi(struct module *m, const struct call *c, ompi_request_t **request)
{
    int count = (int)c->count, send_count = (int)c->send_count;

    switch (c->kind) {
    case KIND_ALLREDUCE:
        return BEFORE(iallreduce, c->send, c->recv, count, c->datatype, c->op, m->comm, request);
    case KIND_REDUCE:
        return BEFORE(ireduce, c->send, c->recv, count, c->datatype, c->op, c->root, m->comm, request);
    case KIND_BCAST:
        return BEFORE(ibcast, c->recv, count, c->datatype, c->root, m->comm, request);
    case KIND_ALLGATHER:
        return BEFORE(iallgather, c->send, send_count, c->send_type, c->recv, count, c->datatype, m->comm, request);
    case KIND_REDUCE_SCATTER:
        return BEFORE(ireduce_scatter_block, c->send, c->recv, count, c->datatype, c->op, m->comm, request);
    case KIND_GATHER:
        return BEFORE(igather, c->send, send_count, c->send_type, c->recv, count, c->datatype, c->root, m->comm, request);
    case KIND_SCATTER:
        return BEFORE(iscatter, c->send, send_count, c->send_type, c->recv, count, c->datatype, c->root, m->comm, request);
    case KIND_ALLTOALL:
        return BEFORE(ialltoall, c->send, send_count, c->send_type, c->recv, count, c->datatype, m->comm, request);
    case KIND_ALLGATHERV:
        return BEFORE(iallgatherv, c->send, send_count, c->send_type, c->recv, c->counts, c->offsets, c->datatype, m->comm, request);
    case KIND_REDUCE_SCATTERV:
        return BEFORE(ireduce_scatter, c->send, c->recv, c->counts, c->datatype, c->op, m->comm, request);
    case KIND_SCAN:
        return BEFORE(iscan, c->send, c->recv, count, c->datatype, c->op, m->comm, request);
    case KIND_EXSCAN:
        return BEFORE(iexscan, c->send, c->recv, count, c->datatype, c->op, m->comm, request);
    case KIND_BARRIER:
        break;
    }
    return BEFORE(ibarrier, m->comm, request);
}

/* Where Open MPI has no function to go back to, it calls none of ours. */
#define INSTALL_ONE(name) \
    if (module->previous.coll_##name != NULL) \
        module->super.coll_##name = name;
#define INSTALL(name) INSTALL_ONE(name) INSTALL_ONE(i##name) INSTALL_ONE(name##_init)

void functions_install(struct module *module)
{
    INSTALL(allreduce)
    INSTALL(reduce)
    INSTALL(barrier)
    INSTALL(bcast)
    INSTALL(allgather)
    INSTALL(reduce_scatter_block)
    INSTALL(gather)
    INSTALL(scatter)
    INSTALL(alltoall)
    INSTALL(allgatherv)
    INSTALL(reduce_scatter)
    INSTALL(scan)
    INSTALL(exscan)
}
