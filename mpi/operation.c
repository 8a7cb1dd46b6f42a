/* SPDX-License-Identifier: Apache-2.0 */
#include "operation.h"

#include "job.h"
#include "notice.h"

size_t operation_bytes(const struct operation *operation)
{
    return operation->count * operation->type.width;
}

/* Waits without a limit, because a late rank is no failure. If a node dies, the library goes on
 * with another one; if that cannot be, or a rank dies, it learns of it on every other member. */
static int through_tree(trib_group *tree, const struct operation *o)
{
    switch (o->collective) {
    case COLLECTIVE_ALLREDUCE:
        return trib_allreduce(tree, o->input, o->output, o->count, o->type.dtype, o->type.op);
    case COLLECTIVE_REDUCE:
        return trib_reduce(tree, o->input, o->output, o->count, o->type.dtype, o->type.op, o->root);
    default:
        return trib_barrier(tree);
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

bool operation_run(const struct group *group, const struct operation *operation)
{
    int status = through_tree(group->tree, operation);
    const char *call = collective_name(operation->collective);

    if (status == TRIB_OK)
        return true;
    if (status != TRIB_ERR_MISMATCH)
        job_end("%s cannot go on through the tree: %s. %s; TRIB_MPI=off leaves collectives to the MPI", call,
                trib_last_error(), remedy(status));
    notice("rank %d: ranks disagree about %s, which is an error in the program: %s", job.rank, call, trib_last_error());
    return false;
}
