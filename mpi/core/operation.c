/* SPDX-License-Identifier: Apache-2.0 */
#include "operation.h"

#include "job.h"
#include "notice.h"
#include "prepare.h"
#include "report.h"
#include "runtime.h"

#include <stdatomic.h>
#include <stddef.h>

/* So many calls make the MPI's progress once, which takes it a tenth of a microsecond or two. */
#define PROGRESS_EVERY 8

/* Waits without a limit, because a late rank is no failure. If a node dies, the library goes on
 * with another one; if that cannot be, or a rank dies, it learns of it on every other member. */
static int through_tree(trib_group *tree, const struct operation *o)
{
    switch (o->kind) {
    case KIND_ALLREDUCE:
        return trib_allreduce(tree, o->input, o->output, o->count, o->type.dtype, o->type.op);
    case KIND_REDUCE:
        return trib_reduce(tree, o->input, o->output, o->count, o->type.dtype, o->type.op, (uint32_t)o->call.root);
    case KIND_BCAST:
        return trib_bcast(tree, o->output, o->count, (uint32_t)o->call.root);
    case KIND_ALLGATHER:
        return trib_allgather(tree, o->input, o->output, o->count);
    case KIND_REDUCE_SCATTER:
        return trib_reduce_scatter(tree, o->input, o->output, o->count, o->type.dtype, o->type.op);
    default:
        return trib_barrier(tree);
    }
}

static int post(trib_group *tree, const struct operation *o, trib_request **request)
{
    switch (o->kind) {
    case KIND_ALLREDUCE:
        return trib_allreduce_nb(tree, o->input, o->output, o->count, o->type.dtype, o->type.op, request);
    case KIND_REDUCE:
        return trib_reduce_nb(tree, o->input, o->output, o->count, o->type.dtype, o->type.op, (uint32_t)o->call.root, request);
    case KIND_BCAST:
        return trib_bcast_nb(tree, o->output, o->count, (uint32_t)o->call.root, request);
    case KIND_ALLGATHER:
        return trib_allgather_nb(tree, o->input, o->output, o->count, request);
    case KIND_REDUCE_SCATTER:
        return trib_reduce_scatter_nb(tree, o->input, o->output, o->count, o->type.dtype, o->type.op, request);
    default:
        return trib_barrier_nb(tree, request);
    }
}

static const char *remedy(int status)
{
    if (status == TRIB_ERR_NODE)
        return "A job goes on when a node dies if backups or deputies (TRIB_QUOTA=backups=N,deputies=N) may take its place and the "
               "ranks reach one of them within TRIB_TIMEOUT_MS";
    if (status == TRIB_ERR_PEER)
        return "Find out why that rank ended or could not be reached";
    return "Start the program again";
}

/* The root of a broadcast has given its vector, perhaps out of memory that cannot be written. */
static bool has_given(const struct operation *operation)
{
    return operation->call.kind == KIND_BCAST && (uint32_t)operation->call.root == operation->group->rank;
}

bool operation_end(struct operation *operation, int status)
{
    const char *call = collective_name(operation->call.name);

    if (status != TRIB_OK && status != TRIB_ERR_MISMATCH)
        job_end("%s cannot go on through the tree: %s. %s; TRIB_MPI=off leaves collectives to the MPI", call,
                trib_last_error(), remedy(status));
    if (status == TRIB_OK) {
        if (operation->out.memory != NULL && !has_given(operation))
            packing_give_back(&operation->out);
        if (exchange_is_one(operation->call.kind))
            exchange_take(&operation->exchange, operation->group, &operation->call);
        report_operation(operation->call.name, REASON_TREE, operation->bytes);
    } else {
        notice("rank %d: ranks disagree about %s, which is an error in the program: %s", job.rank, call, trib_last_error());
    }
    operation_forget(operation);
    return status == TRIB_OK;
}

/* Whether the MPI is to make progress after this call. It does in each collective of its own, so
 * that a program whose only calls are short ones answers its peers; a wait in the tree that is over
 * soon makes none. Threads that count at the same time may lose one. */
static bool is_mpis_turn(void)
{
    static atomic_uint calls;
    unsigned before = atomic_load_explicit(&calls, memory_order_relaxed);

    atomic_store_explicit(&calls, before + 1, memory_order_relaxed);
    return before % PROGRESS_EVERY == 0;
}

bool operation_run(const struct group *group, struct operation *operation)
{
    prepare(group, operation);
    bool agreed = operation_end(operation, through_tree(group->tree, operation));
    /* An MPI that waits in a barrier of its own takes in what comes meanwhile. Programs rely on it:
     * what another rank has sent before a barrier they look for once after it. */
    if (operation->kind == KIND_BARRIER || is_mpis_turn())
        runtime_progress_in_passing();
    return agreed;
}

int operation_post(const struct group *group, struct operation *operation, trib_request **request)
{
    *request = NULL;
    prepare(group, operation);
    return post(group->tree, operation, request);
}

void operation_forget(struct operation *operation)
{
    packing_close(&operation->in);
    packing_close(&operation->out);
    exchange_close(&operation->exchange);
}
