/* SPDX-License-Identifier: Apache-2.0
 *
 * The layer of libsharp_coll, whose out-of-band collectives are the MPI's.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fail.h"
#include "layer.h"

/* A group with what its out-of-band calls need. */
struct group {
    MPI_Comm comm;
    struct sharp_coll_comm *handle;
};

static struct sharp_coll_context *context;
/* The communicator that the library uses for the life of the job. */
static MPI_Comm job_comm;

static int oob_bcast(void *comm, void *buffer, int len, int root)
{
    return MPI_Bcast(buffer, len, MPI_BYTE, root, *(MPI_Comm *)comm);
}

static int oob_barrier(void *comm)
{
    return MPI_Barrier(*(MPI_Comm *)comm);
}

static int oob_gather(void *comm, int root, void *sbuf, void *rbuf, int len)
{
    return MPI_Gather(sbuf, len, MPI_BYTE, rbuf, len, MPI_BYTE, root, *(MPI_Comm *)comm);
}

/* Lets the MPI make progress while the library waits. */
static int progress(void)
{
    int flag;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, job_comm, &flag, MPI_STATUS_IGNORE);
    return flag;
}

static void must(int code, const char *what)
{
    if (code == 0)
        return;
    complain("%s failed: %s (%d); SHARP_COLL_LOG_LEVEL=3 tells more", what, sharp_coll_strerror(code), code);
    end_all(EXIT_WRONG);
}

/* Picks this local rank's device from a list, wrapping around; the list is the caller's. */
static void pick_device(const char *list, int local_rank, char *device, size_t room)
{
    int count = 1;
    for (const char *at = list; *at != '\0'; at++)
        count += *at == ',';
    for (local_rank %= count; local_rank > 0; local_rank--)
        list = strchr(list, ',') + 1;
    size_t len = strcspn(list, ",");
    if (len >= room)
        len = room - 1;
    memcpy(device, list, len);
    device[len] = '\0';
}

/* The job's number: it is the same at all ranks, and as good as unique. */
static uint64_t job_number(const struct options *options)
{
    uint64_t number = options->job_id;
    if (!options->has_job_id)
        number = (uint64_t)getpid() << 32 ^ (uint64_t)(MPI_Wtime() * 1e6);
    MPI_Bcast(&number, 1, MPI_UINT64_T, 0, job_comm);
    return number;
}

static bool join(const struct options *options, MPI_Comm comm, int local_rank)
{
    struct sharp_coll_init_spec spec;
    char device[256];

    job_comm = comm;
    pick_device(options->devices, local_rank, device, sizeof device);
    memset(&spec, 0, sizeof spec);
    spec.job_id = job_number(options);
    MPI_Comm_rank(comm, &spec.world_rank);
    MPI_Comm_size(comm, &spec.world_size);
    spec.progress_func = progress;
    spec.group_channel_idx = options->flat_ppn ? 0 : local_rank;
    spec.config = sharp_coll_default_config;
    spec.config.ib_dev_list = device;
    spec.oob_colls.bcast = oob_bcast;
    spec.oob_colls.barrier = oob_barrier;
    spec.oob_colls.gather = oob_gather;
    spec.world_local_rank = options->flat_ppn ? 0 : local_rank;
    spec.oob_ctx = &job_comm;
    int code = sharp_coll_init(&spec, &context);
    if (code != 0 && spec.world_rank == 0)
        complain("cannot make a job: %s (%d); SHARP_COLL_LOG_LEVEL=3 tells more", sharp_coll_strerror(code), code);
    return code == 0;
}

static void leave(void)
{
    must(sharp_coll_finalize(context), "sharp_coll_finalize");
}

static struct abilities abilities(void)
{
    struct sharp_coll_caps caps;

    must(sharp_coll_caps_query(context, &caps), "sharp_coll_caps_query");
    return (struct abilities){
        .dtypes = caps.support_mask.dtypes,
        /* Before packet version 1, tags had another layout. */
        .tag_dtypes = caps.sharp_pkt_version > 0 ? caps.support_mask.tag_dtypes : 0,
        .reduce_ops = caps.support_mask.reduce_ops,
        .has_blocks = (caps.support_mask.feature_mask & SHARP_FEATURE_SAT) != 0,
        .has_lists = true,
    };
}

static void *make_group(MPI_Comm comm)
{
    struct sharp_coll_comm_init_spec spec;
    struct group *group = malloc(sizeof *group);

    if (group == NULL) {
        complain("no memory for a group");
        end_all(EXIT_ENVIRONMENT);
    }
    group->comm = comm;
    memset(&spec, 0, sizeof spec);
    MPI_Comm_rank(comm, &spec.rank);
    MPI_Comm_size(comm, &spec.size);
    spec.oob_ctx = &group->comm;
    must(sharp_coll_comm_init(context, &spec, &group->handle), "sharp_coll_comm_init");
    return group;
}

static void free_group(void *group)
{
    must(sharp_coll_comm_destroy(((struct group *)group)->handle), "sharp_coll_comm_destroy");
    free(group);
}

static void *name_memory(void *start, size_t len)
{
    void *handle = NULL;
    must(sharp_coll_reg_mr(context, start, len, &handle), "sharp_coll_reg_mr");
    return handle;
}

static void forget_memory(void *handle)
{
    must(sharp_coll_dereg_mr(context, handle), "sharp_coll_dereg_mr");
}

static struct sharp_coll_data_desc desc_of(const struct side *side)
{
    return message_desc(side->message, side->at, side->len);
}

static struct sharp_coll_reduce_spec reduce_spec(const struct operation *operation)
{
    struct sharp_coll_reduce_spec spec;
    memset(&spec, 0, sizeof spec);
    spec.root = operation->root;
    spec.sbuf_desc = desc_of(&operation->send);
    spec.rbuf_desc = desc_of(&operation->receive);
    spec.dtype = operation->element->code;
    spec.length = operation->count;
    spec.op = operation->op;
    spec.tag_dtype = operation->tag ? operation->tag->code : SHARP_DTYPE_NULL;
    spec.offset = operation->offset;
    return spec;
}

static struct sharp_coll_bcast_spec bcast_spec(const struct operation *operation)
{
    struct sharp_coll_bcast_spec spec;
    memset(&spec, 0, sizeof spec);
    spec.root = operation->root;
    spec.buf_desc = desc_of(&operation->receive);
    spec.size = operation->receive.len;
    return spec;
}

static struct sharp_coll_gather_spec gather_spec(const struct operation *operation)
{
    struct sharp_coll_gather_spec spec;
    memset(&spec, 0, sizeof spec);
    spec.sbuf_desc = desc_of(&operation->send);
    spec.rbuf_desc = desc_of(&operation->receive);
    spec.dtype = operation->element->code;
    spec.size = operation->receive.len;
    spec.offset = operation->offset;
    return spec;
}

static void run(void *opaque, const struct operation *operation)
{
    struct sharp_coll_comm *comm = ((struct group *)opaque)->handle;
    struct sharp_coll_reduce_spec reduce;
    struct sharp_coll_bcast_spec bcast;
    struct sharp_coll_gather_spec gather;

    switch (operation->kind) {
    case KIND_ALLREDUCE:
        reduce = reduce_spec(operation);
        must(sharp_coll_do_allreduce(comm, &reduce), "sharp_coll_do_allreduce");
        break;
    case KIND_REDUCE:
        reduce = reduce_spec(operation);
        must(sharp_coll_do_reduce(comm, &reduce), "sharp_coll_do_reduce");
        break;
    case KIND_REDUCE_SCATTER:
        reduce = reduce_spec(operation);
        must(sharp_coll_do_reduce_scatter(comm, &reduce), "sharp_coll_do_reduce_scatter");
        break;
    case KIND_BARRIER:
        must(sharp_coll_do_barrier(comm), "sharp_coll_do_barrier");
        break;
    case KIND_BCAST:
        bcast = bcast_spec(operation);
        must(sharp_coll_do_bcast(comm, &bcast), "sharp_coll_do_bcast");
        break;
    case KIND_ALLGATHER:
        gather = gather_spec(operation);
        must(sharp_coll_do_allgather(comm, &gather), "sharp_coll_do_allgather");
        break;
    }
}

static void *post(void *opaque, const struct operation *operation)
{
    struct sharp_coll_comm *comm = ((struct group *)opaque)->handle;
    struct sharp_coll_reduce_spec reduce;
    struct sharp_coll_bcast_spec bcast;
    struct sharp_coll_gather_spec gather;
    void *request = NULL;

    switch (operation->kind) {
    case KIND_ALLREDUCE:
        reduce = reduce_spec(operation);
        must(sharp_coll_do_allreduce_nb(comm, &reduce, &request), "sharp_coll_do_allreduce_nb");
        break;
    case KIND_REDUCE:
        reduce = reduce_spec(operation);
        must(sharp_coll_do_reduce_nb(comm, &reduce, &request), "sharp_coll_do_reduce_nb");
        break;
    case KIND_REDUCE_SCATTER:
        reduce = reduce_spec(operation);
        must(sharp_coll_do_reduce_scatter_nb(comm, &reduce, &request), "sharp_coll_do_reduce_scatter_nb");
        break;
    case KIND_BARRIER:
        must(sharp_coll_do_barrier_nb(comm, &request), "sharp_coll_do_barrier_nb");
        break;
    case KIND_BCAST:
        bcast = bcast_spec(operation);
        must(sharp_coll_do_bcast_nb(comm, &bcast, &request), "sharp_coll_do_bcast_nb");
        break;
    case KIND_ALLGATHER:
        gather = gather_spec(operation);
        must(sharp_coll_do_allgather_nb(comm, &gather, &request), "sharp_coll_do_allgather_nb");
        break;
    }
    return request;
}

static void finish(void *request, bool polls)
{
    if (!polls) {
        must(sharp_coll_req_wait(request), "sharp_coll_req_wait");
        return;
    }
    /* Ranks that do nothing but test take the processor from nodes on the same host, so they
       rest now and then. */
    for (int asked = 1; sharp_coll_req_test(request) == 0; asked++)
        if (asked % 64 == 0)
            usleep(20);
    must(sharp_coll_req_free(request), "sharp_coll_req_free");
}

const struct layer sharp_layer = {
    .name = "libsharp_coll",
    .join = join,
    .leave = leave,
    .abilities = abilities,
    .make_group = make_group,
    .free_group = free_group,
    .name_memory = name_memory,
    .forget_memory = forget_memory,
    .run = run,
    .post = post,
    .finish = finish,
};
