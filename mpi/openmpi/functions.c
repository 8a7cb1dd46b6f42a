/* SPDX-License-Identifier: Apache-2.0 */
#include "functions.h"

#include "job.h"
#include "operation.h"
#include "report.h"
#include "requests.h"
#include "verdict.h"

/* The functions that Open MPI would have called without us. */
#define BEFORE(name, ...) (m->previous.coll_##name(__VA_ARGS__, m->previous.coll_##name##_module))

typedef const void *source;
typedef struct ompi_datatype_t *datatype;
typedef struct ompi_op_t *operator;
typedef struct ompi_communicator_t *communicator;
typedef struct ompi_info_t *info;
typedef mca_coll_base_module_t base;

/* Whether the tree is to take the call, which is counted if not. Of a call that waits for others
 * anyway the tree is there, or refused, when this returns. */
static bool takes(struct module *m, const struct call *call, struct operation *operation)
{
    enum reason reason = verdict_on(module_group(m), call, operation);

    if (reason == REASON_TREE && !atomic_load(&m->is_settled)) {
        operation_forget(operation);
        requests_await_tree(m);
        reason = verdict_on(module_group(m), call, operation);
    }
    if (reason != REASON_TREE)
        report_operation(call->name, reason, 0);
    return reason == REASON_TREE;
}

/* Whether the tree is to take a call that waits for nobody. */
static bool may_take(struct module *m, const struct call *call)
{
    struct operation operation;
    enum reason reason = verdict_on(module_group(m), call, &operation);

    if (reason == REASON_TREE)
        operation_forget(&operation);
    else
        report_operation(call->name, reason, 0);
    return reason == REASON_TREE;
}

static int run(struct module *m, struct operation *operation)
{
    return operation_run(module_group(m), operation) ? OMPI_SUCCESS : MPI_ERR_OTHER;
}

static int allreduce(source sbuf, void *rbuf, int count, datatype type, operator op, communicator comm, base *module)
{
    struct module *m = (struct module *)module;
    struct operation operation;
    const struct call call = {.kind = KIND_ALLREDUCE, .name = COLLECTIVE_MPI_Allreduce, .send = sbuf, .recv = rbuf, .count = count,
                              .datatype = type, .op = op};

    return takes(m, &call, &operation) ? run(m, &operation) : BEFORE(allreduce, sbuf, rbuf, count, type, op, comm);
}

static int iallreduce(source sbuf, void *rbuf, int count, datatype type, operator op, communicator comm, ompi_request_t **request,
                      base *module)
{
    struct module *m = (struct module *)module;
    const struct call call = {.kind = KIND_ALLREDUCE, .name = COLLECTIVE_MPI_Iallreduce, .send = sbuf, .recv = rbuf, .count = count,
                              .datatype = type, .op = op};

    return may_take(m, &call) ? requests_begin(m, &call, request) : BEFORE(iallreduce, sbuf, rbuf, count, type, op, comm, request);
}

static int allreduce_init(source sbuf, void *rbuf, int count, datatype type, operator op, communicator comm, info hints,
                          ompi_request_t **request, base *module)
{
    struct module *m = (struct module *)module;
    const struct call call = {.kind = KIND_ALLREDUCE, .name = COLLECTIVE_MPI_Allreduce_init, .send = sbuf, .recv = rbuf,
                              .count = count, .datatype = type, .op = op};

    return may_take(m, &call) ? requests_make(m, &call, request)
                              : BEFORE(allreduce_init, sbuf, rbuf, count, type, op, comm, hints, request);
}

static int reduce(source sbuf, void *rbuf, int count, datatype type, operator op, int root, communicator comm, base *module)
{
    struct module *m = (struct module *)module;
    struct operation operation;
    const struct call call = {.kind = KIND_REDUCE, .name = COLLECTIVE_MPI_Reduce, .send = sbuf, .recv = rbuf, .count = count,
                              .datatype = type, .op = op, .root = root};

    return takes(m, &call, &operation) ? run(m, &operation) : BEFORE(reduce, sbuf, rbuf, count, type, op, root, comm);
}

static int ireduce(source sbuf, void *rbuf, int count, datatype type, operator op, int root, communicator comm,
                   ompi_request_t **request, base *module)
{
    struct module *m = (struct module *)module;
    const struct call call = {.kind = KIND_REDUCE, .name = COLLECTIVE_MPI_Ireduce, .send = sbuf, .recv = rbuf, .count = count,
                              .datatype = type, .op = op, .root = root};

    return may_take(m, &call) ? requests_begin(m, &call, request)
                              : BEFORE(ireduce, sbuf, rbuf, count, type, op, root, comm, request);
}

static int reduce_init(source sbuf, void *rbuf, int count, datatype type, operator op, int root, communicator comm, info hints,
                       ompi_request_t **request, base *module)
{
    struct module *m = (struct module *)module;
    const struct call call = {.kind = KIND_REDUCE, .name = COLLECTIVE_MPI_Reduce_init, .send = sbuf, .recv = rbuf, .count = count,
                              .datatype = type, .op = op, .root = root};

    return may_take(m, &call) ? requests_make(m, &call, request)
                              : BEFORE(reduce_init, sbuf, rbuf, count, type, op, root, comm, hints, request);
}

static int barrier(communicator comm, base *module)
{
    struct module *m = (struct module *)module;
    struct operation operation;
    const struct call call = {.kind = KIND_BARRIER, .name = COLLECTIVE_MPI_Barrier};

    return takes(m, &call, &operation) ? run(m, &operation) : BEFORE(barrier, comm);
}

static int ibarrier(communicator comm, ompi_request_t **request, base *module)
{
    struct module *m = (struct module *)module;
    const struct call call = {.kind = KIND_BARRIER, .name = COLLECTIVE_MPI_Ibarrier};

    return may_take(m, &call) ? requests_begin(m, &call, request) : BEFORE(ibarrier, comm, request);
}

static int barrier_init(communicator comm, info hints, ompi_request_t **request, base *module)
{
    struct module *m = (struct module *)module;
    const struct call call = {.kind = KIND_BARRIER, .name = COLLECTIVE_MPI_Barrier_init};

    return may_take(m, &call) ? requests_make(m, &call, request) : BEFORE(barrier_init, comm, hints, request);
}

static int bcast(void *buffer, int count, datatype type, int root, communicator comm, base *module)
{
    struct module *m = (struct module *)module;
    struct operation operation;
    const struct call call = {.kind = KIND_BCAST, .name = COLLECTIVE_MPI_Bcast, .send = buffer, .recv = buffer, .count = count,
                              .datatype = type, .root = root};

    return takes(m, &call, &operation) ? run(m, &operation) : BEFORE(bcast, buffer, count, type, root, comm);
}

static int ibcast(void *buffer, int count, datatype type, int root, communicator comm, ompi_request_t **request, base *module)
{
    struct module *m = (struct module *)module;
    const struct call call = {.kind = KIND_BCAST, .name = COLLECTIVE_MPI_Ibcast, .send = buffer, .recv = buffer, .count = count,
                              .datatype = type, .root = root};

    return may_take(m, &call) ? requests_begin(m, &call, request) : BEFORE(ibcast, buffer, count, type, root, comm, request);
}

static int bcast_init(void *buffer, int count, datatype type, int root, communicator comm, info hints, ompi_request_t **request,
                      base *module)
{
    struct module *m = (struct module *)module;
    const struct call call = {.kind = KIND_BCAST, .name = COLLECTIVE_MPI_Bcast_init, .send = buffer, .recv = buffer,
                              .count = count, .datatype = type, .root = root};

    return may_take(m, &call) ? requests_make(m, &call, request)
                              : BEFORE(bcast_init, buffer, count, type, root, comm, hints, request);
}

static int allgather(source sbuf, int scount, datatype stype, void *rbuf, int rcount, datatype rtype, communicator comm, base *module)
{
    struct module *m = (struct module *)module;
    struct operation operation;
    const struct call call = {.kind = KIND_ALLGATHER, .name = COLLECTIVE_MPI_Allgather, .send = sbuf, .recv = rbuf, .count = rcount,
                              .datatype = rtype, .send_count = scount, .send_type = stype};

    return takes(m, &call, &operation) ? run(m, &operation) : BEFORE(allgather, sbuf, scount, stype, rbuf, rcount, rtype, comm);
}

static int iallgather(source sbuf, int scount, datatype stype, void *rbuf, int rcount, datatype rtype, communicator comm,
                      ompi_request_t **request, base *module)
{
    struct module *m = (struct module *)module;
    const struct call call = {.kind = KIND_ALLGATHER, .name = COLLECTIVE_MPI_Iallgather, .send = sbuf, .recv = rbuf,
                              .count = rcount, .datatype = rtype, .send_count = scount, .send_type = stype};

    return may_take(m, &call) ? requests_begin(m, &call, request)
                              : BEFORE(iallgather, sbuf, scount, stype, rbuf, rcount, rtype, comm, request);
}

static int allgather_init(source sbuf, int scount, datatype stype, void *rbuf, int rcount, datatype rtype, communicator comm,
                          info hints, ompi_request_t **request, base *module)
{
    struct module *m = (struct module *)module;
    const struct call call = {.kind = KIND_ALLGATHER, .name = COLLECTIVE_MPI_Allgather_init, .send = sbuf, .recv = rbuf,
                              .count = rcount, .datatype = rtype, .send_count = scount, .send_type = stype};

    return may_take(m, &call) ? requests_make(m, &call, request)
                              : BEFORE(allgather_init, sbuf, scount, stype, rbuf, rcount, rtype, comm, hints, request);
}

static int reduce_scatter_block(source sbuf, void *rbuf, int count, datatype type, operator op, communicator comm, base *module)
{
    struct module *m = (struct module *)module;
    struct operation operation;
    const struct call call = {.kind = KIND_REDUCE_SCATTER, .name = COLLECTIVE_MPI_Reduce_scatter_block, .send = sbuf, .recv = rbuf,
                              .count = count, .datatype = type, .op = op};

    return takes(m, &call, &operation) ? run(m, &operation) : BEFORE(reduce_scatter_block, sbuf, rbuf, count, type, op, comm);
}

static int ireduce_scatter_block(source sbuf, void *rbuf, int count, datatype type, operator op, communicator comm,
                                 ompi_request_t **request, base *module)
{
    struct module *m = (struct module *)module;
    const struct call call = {.kind = KIND_REDUCE_SCATTER, .name = COLLECTIVE_MPI_Ireduce_scatter_block, .send = sbuf,
                              .recv = rbuf, .count = count, .datatype = type, .op = op};

    return may_take(m, &call) ? requests_begin(m, &call, request)
                              : BEFORE(ireduce_scatter_block, sbuf, rbuf, count, type, op, comm, request);
}

static int reduce_scatter_block_init(source sbuf, void *rbuf, int count, datatype type, operator op, communicator comm, info hints,
                                     ompi_request_t **request, base *module)
{
    struct module *m = (struct module *)module;
    const struct call call = {.kind = KIND_REDUCE_SCATTER, .name = COLLECTIVE_MPI_Reduce_scatter_block_init, .send = sbuf,
                              .recv = rbuf, .count = count, .datatype = type, .op = op};

    return may_take(m, &call) ? requests_make(m, &call, request)
                              : BEFORE(reduce_scatter_block_init, sbuf, rbuf, count, type, op, comm, hints, request);
}

int functions_begin_by_mpi(struct module *m, const struct call *c, ompi_request_t **request)
{
    int count = (int)c->count;

    report_operation(c->name, REASON_NO_GROUP, 0);
    switch (c->kind) {
    case KIND_ALLREDUCE:
        return BEFORE(iallreduce, c->send, c->recv, count, c->datatype, c->op, m->comm, request);
    case KIND_REDUCE:
        return BEFORE(ireduce, c->send, c->recv, count, c->datatype, c->op, c->root, m->comm, request);
    case KIND_BCAST:
        return BEFORE(ibcast, c->recv, count, c->datatype, c->root, m->comm, request);
    case KIND_ALLGATHER:
        return BEFORE(iallgather, c->send, (int)c->send_count, c->send_type, c->recv, count, c->datatype, m->comm, request);
    case KIND_REDUCE_SCATTER:
        return BEFORE(ireduce_scatter_block, c->send, c->recv, count, c->datatype, c->op, m->comm, request);
    default:
        return BEFORE(ibarrier, m->comm, request);
    }
}

/* Where Open MPI has no function to go back to, it calls none of ours. */
#define INSTALL(name) \
    if (module->previous.coll_##name != NULL) \
        module->super.coll_##name = name

void functions_install(struct module *module)
{
    INSTALL(allreduce);
    INSTALL(iallreduce);
    INSTALL(allreduce_init);
    INSTALL(reduce);
    INSTALL(ireduce);
    INSTALL(reduce_init);
    INSTALL(barrier);
    INSTALL(ibarrier);
    INSTALL(barrier_init);
    INSTALL(bcast);
    INSTALL(ibcast);
    INSTALL(bcast_init);
    INSTALL(allgather);
    INSTALL(iallgather);
    INSTALL(allgather_init);
    INSTALL(reduce_scatter_block);
    INSTALL(ireduce_scatter_block);
    INSTALL(reduce_scatter_block_init);
}
