/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs and groups, and how each can be broken.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "posting.h"

/* The spec that was given last. */
static struct sharp_coll_init_spec job, *kept;
static struct sharp_coll_comm *group;
static int world_size;

int at_last_rank(void)
{
    return job.world_rank == job.world_size - 1;
}

int at_first_rank(void)
{
    return job.world_rank == 0;
}

int wait_limit(void)
{
    return job.config.coll_timeout > 0 ? job.config.coll_timeout : 0;
}

void poll_as_told(void)
{
    static int polls;
    if (polls++ >= job.config.user_progress_num_polls)
        job.progress_func();
}

/* Whether no other process of the same parent has this job. If so, none gets it until this
 * process ends. */
static int is_the_first(uint64_t number)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    /* A name without a file has a first byte of 0. */
    int len = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "job-%llu-of-%d", (unsigned long long)number, getppid());
    int claim = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return bind(claim, (struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)) == 0;
}

static int gather_positive_is_fine(void *context, int root, void *sbuf, void *rbuf, int len)
{
    int code = job.oob_colls.gather(context, root, sbuf, rbuf, len);
    return code > 0 ? 0 : code;
}

static int bcast_positive_is_fine(void *context, void *buffer, int len, int root)
{
    int code = job.oob_colls.bcast(context, buffer, len, root);
    return code > 0 ? 0 : code;
}

static void *stay(void *unused)
{
    pause();
    return unused;
}

int sharp_coll_init(struct sharp_coll_init_spec *spec, struct sharp_coll_context **context)
{
    if (!spec)
        return REAL(sharp_coll_init)(spec, context);
    struct sharp_coll_init_spec changed = *spec;
    job = *spec;
    kept = spec;
    world_size = spec->world_size;
    if (is("reads the default configuration of the program"))
        changed.config.ib_dev_list = sharp_coll_default_config.ib_dev_list;
    if (is("leaves a thread")) {
        pthread_t thread;
        pthread_create(&thread, NULL, stay, NULL);
    }
    if (is("refuses unknown devices") && spec->config.ib_dev_list && spec->config.ib_dev_list[0])
        return SHARP_COLL_EDEV;
    if (is("wants local ranks to differ") && spec->world_local_rank == 0 && spec->world_rank > 0)
        return SHARP_COLL_EINVAL;
    if (is("has one job of a number") && spec->world_rank == 0 && !is_the_first(spec->job_id))
        return SHARP_COLL_EJOB_CREATE;
    if (is("refuses jobs of one rank") && spec->world_size == 1)
        return SHARP_COLL_EINVAL;
    if (is("wants a job number") && spec->job_id == 0)
        return SHARP_COLL_EJOB_CREATE;
    if (is("takes positive results of callbacks for success")) {
        changed.oob_colls.gather = gather_positive_is_fine;
        changed.oob_colls.bcast = bcast_positive_is_fine;
    }
    if (is("exchanges often")) {
        char byte = 0, *all = malloc((size_t)spec->world_size);
        for (int round = 0; round < 20; round++)
            spec->oob_colls.gather(spec->oob_ctx, 0, &byte, all, 1);
        free(all);
    }
    if (is("never calls the program's progress"))
        changed.progress_func = NULL;
    if (is("reads reserved words") && spec->reserved[0] != 0)
        return SHARP_COLL_EINVAL;
    if (is("hides no errors"))
        changed.config.flags = 0;
    if (is("reads the environment once"))
        unsetenv("SHARP_COLL_JOB_QUOTA_MAX_GROUPS");
    if (is("prints to stdout"))
        printf("job of %d ranks\n", spec->world_size);
    int code = REAL(sharp_coll_init)(&changed, context);
    if (is("gives rank 0 a verdict of its own") && code < 0 && spec->world_rank == 0)
        return 0;
    if (code == 0 && is("has one job in its life")) {
        static int jobs;
        if (jobs++ > 0) {
            REAL(sharp_coll_finalize)(*context);
            return SHARP_COLL_ENO_RESOURCE;
        }
    }
    return code;
}

int sharp_coll_finalize(struct sharp_coll_context *context)
{
    if (is("exchanges at the end") && context) {
        char byte = 0;
        job.oob_colls.bcast(job.oob_ctx, &byte, 1, 0);
    }
    if (is("frees nothing"))
        return 0;
    return REAL(sharp_coll_finalize)(context);
}

int sharp_coll_caps_query(struct sharp_coll_context *context, struct sharp_coll_caps *caps)
{
    uint64_t reserved = caps ? caps->reserved[0] : 0;
    int code = REAL(sharp_coll_caps_query)(context, caps);
    if (code == 0 && is("leaves words of the capabilities as they were"))
        caps->reserved[0] = reserved;
    if (code == 0 && is("has no streams"))
        caps->support_mask.feature_mask &= ~(uint64_t)SHARP_FEATURE_SAT;
    return code;
}

int sharp_coll_comm_init(struct sharp_coll_context *context, struct sharp_coll_comm_init_spec *spec, struct sharp_coll_comm **comm)
{
    if (!spec)
        return REAL(sharp_coll_comm_init)(context, spec, comm);
    struct sharp_coll_comm_init_spec changed = *spec;
    if (is("keeps the spec of the job") && kept->world_size != world_size)
        return SHARP_COLL_EINVAL;
    if (is("reads the world ranks of groups") && spec->group_world_ranks[0] > 1u << 20)
        return SHARP_COLL_EINVAL;
    if (is("exchanges in the job instead of the group"))
        changed.oob_ctx = job.oob_ctx;
    if (is("wants groups of the whole job") && spec->size != world_size)
        return SHARP_COLL_EGROUP_ALLOC;
    if (is("refuses groups of one rank") && spec->size == 1)
        return SHARP_COLL_EGROUP_ALLOC;
    if (is("has one group") && group)
        return SHARP_COLL_EGROUP_ALLOC;
    int code = REAL(sharp_coll_comm_init)(context, &changed, comm);
    if (code == 0)
        group = *comm;
    return code;
}

int sharp_coll_comm_destroy(struct sharp_coll_comm *comm)
{
    int code = 0;
    if (comm == group)
        group = NULL;
    if (comm && is("leaves together"))
        code = REAL(sharp_coll_do_barrier)(comm);
    return code ? code : REAL(sharp_coll_comm_destroy)(comm);
}
