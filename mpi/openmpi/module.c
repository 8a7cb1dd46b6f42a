/* SPDX-License-Identifier: Apache-2.0 */
#include "module.h"

#include "ending.h"
#include "forwards.h"
#include "functions.h"
#include "job.h"
#include "leaving.h"
#include "notice.h"
#include "presence.h"
#include "profile.h"
#include "requests.h"
#include "rest.h"
#include "runtime.h"

#include "opal/runtime/opal_progress.h"

#include <stdio.h>
#include <time.h>

/* How many persistent requests go without a tree after one was refused it. */
enum { REQUESTS_WITHOUT = 64 };

struct module *module_of_world;

static void leave_to_mpi(struct module *module, enum reason reason)
{
    atomic_store(&module->group, group_without_tree(reason));
    atomic_store(&module->is_settled, true);
}

/* Begins to make a tree. All members know the number of the communicator, and no two of them that
 * live at the same time have the same; `other` tells this one's trees apart. */
static void begin_tree(struct module *module, struct group *group, uint32_t other, const char *name)
{
    uint64_t tag = (uint64_t)other << 32 | ((uint32_t)module->comm->c_contextid + 1);

    if (group_begin(group, module->comm, tag, name) != TRIB_OK)
        job_end("rank %d cannot take part in the tree of %s: %s", job.rank, name, trib_last_error());
    group->standing = REASON_TREE;
}

/* Nobody waits here: Open MPI may be making several communicators at once, on other ranks in
 * another order. */
static void make_tree(struct module *module)
{
    begin_tree(module, module->own, 0, module->comm->c_name);
    atomic_store(&module->is_settled, false);
    requests_look_after(module);
}

/* Whether there is a tree, whose making has ended with this status. A program may be told to end
 * where a communicator has none; nobody asks that of a request. */
static bool is_made(struct module *module, struct group *group, int status, const char *name)
{
    bool is_required = job.config.mode == MODE_REQUIRE && group == module->own;

    trib_request_free(group->creation);
    group->creation = NULL;
    if (status == TRIB_OK) {
        report_group(GROUP_MADE);
        return true;
    }
    /* A refusal for want of quota is told to all members. Any other error may be this rank's alone,
     * and then the others would wait for it in the tree. */
    if (status != TRIB_ERR_QUOTA || is_required)
        job_end("%s got no tree: %s", name, trib_last_error());
    report_group(GROUP_REFUSED);
    group_tell_refusal(module->comm, name, status, status);
    return false;
}

struct group *module_make_another(struct module *module)
{
    char name[MPI_MAX_OBJECT_NAME + 64];
    struct group *group;
    struct rest rest = rest_begin();
    int done = 0, status;

    if (++module->others < module->refused_until)
        return NULL;
    group = group_like(module->own);
    snprintf(name, sizeof name, "a persistent request of %s", module->comm->c_name);
    begin_tree(module, group, module->others, name);
    while (status = trib_test(group->creation, &done), !done) {
        opal_progress();
        rest_pause(&rest);
    }
    if (is_made(module, group, status, name))
        return group;
    /* What was refused is refused to the next ones, too, as long as nothing is freed, of which the
     * ranks hear at different times; so they count, and agree when to ask again. */
    module->refused_until = module->others + REQUESTS_WITHOUT;
    group_free(group);
    return NULL;
}

static void open_group(struct module *module)
{
    enum reason prospect = group_prospect(module->comm);

    if (prospect != REASON_TREE) {
        leave_to_mpi(module, prospect);
        if (prospect == REASON_ONE_HOST && module == module_of_world)
            group_tell_one_host();
        return;
    }
    module->own = group_open(module->comm, module == module_of_world);
    atomic_store(&module->group, module->own);
    atomic_store(&module->is_settled, true);
    if (module->own->calls_left == 0)
        make_tree(module);
}

bool module_note_call(struct module *module, uint64_t calls)
{
    if (!group_note_call(module->own, calls))
        return false;
    make_tree(module);
    return true;
}

/* This rank has no component. The first one that has it says so, and each that is told to end the
 * program where it gets no tree does that: the ranks cannot agree on it. */
static void leave_all_to_mpi(int lacking)
{
    /* By then the one that speaks has ended all ranks, also where it was slow to come. */
    static const struct timespec spoken_for = {.tv_sec = 10};
    bool speaks = ompi_comm_rank(&ompi_mpi_comm_world.comm) == presence_find_first(lacking);
    bool ends = config_requires();

    if (speaks)
        notice("the collectives of this program stay with the MPI%s: rank %d runs without Tributary's component; install it on its "
               "host, and let coll_tributary_enable be 1 there",
               ends ? ", and TRIB_MPI=require ends it" : "", lacking);
    if (!ends)
        return;
    if (!speaks)
        nanosleep(&spoken_for, NULL);
    notice_wait_until_read();
    runtime_end();
}

/* The first collective thing that happens in the program. */
static void join(struct module *module)
{
    int lacking = presence_find_lacking();

    module_of_world = module;
    if (lacking < 0) {
        job_join(&ompi_mpi_comm_world.comm);
        ending_watch();
    } else {
        leave_all_to_mpi(lacking);
    }
}

static int enable(mca_coll_base_module_t *base, struct ompi_communicator_t *comm)
{
    struct module *module = (struct module *)base;

    module->comm = comm;
    module->previous = *comm->c_coll;
    forwards_install(module);
    functions_install(module);
    module->is_enabled = true;
    if (comm == &ompi_mpi_comm_world.comm)
        join(module);
    if (job_usable()) {
        open_group(module);
    } else if (job_is_weighed()) {
        atomic_store(&module->group, group_dry(comm));
        atomic_store(&module->is_settled, true);
    } else {
        leave_to_mpi(module, REASON_NO_JOB);
    }
    module->track = profile_track(comm, comm->c_contextid);
    return OMPI_SUCCESS;
}

static int disable(mca_coll_base_module_t *base, struct ompi_communicator_t *comm)
{
    struct module *module = (struct module *)base;

    (void)comm;
    if (module->is_enabled)
        forwards_release(module);
    module->is_enabled = false;
    return OMPI_SUCCESS;
}

static void construct(struct module *module)
{
    module->comm = NULL;
    module->is_enabled = false;
    module->own = NULL;
    module->track = NULL;
    module->others = 0;
    module->refused_until = 0;
    module->started = NULL;
    module->first = NULL;
    module->last = &module->first;
    module->next = NULL;
    module->is_listed = false;
    module->is_handing_over = false;
    atomic_init(&module->group, group_without_tree(REASON_NO_GROUP));
    atomic_init(&module->is_settled, false);
    module->super.coll_module_enable = enable;
    module->super.coll_module_disable = disable;
}

static void destruct(struct module *module)
{
    requests_forget(module);
    if (module->own != NULL && job_usable()) {
        if (atomic_load(&module->is_settled) && atomic_load(&module->group) == module->own && module->own->tree != NULL)
            report_group(GROUP_FREED);
        leaving_free(module->own);
    }
    if (module->own == NULL && atomic_load(&module->group)->standing == REASON_DRY_RUN)
        group_free((struct group *)(uintptr_t)atomic_load(&module->group));
    if (module == module_of_world)
        module_of_world = NULL;
}

OBJ_CLASS_INSTANCE(tributary_module_t, mca_coll_base_module_t, construct, destruct);

mca_coll_base_module_t *module_new(void)
{
    struct module *module = OBJ_NEW(tributary_module_t);

    return module != NULL ? &module->super : NULL;
}

const struct group *module_group(struct module *module)
{
    if (!job_usable() && !job_is_weighed())
        return group_without_tree(REASON_NO_JOB);
    return atomic_load(&module->group);
}

void module_time(struct module *module, enum collective collective, enum doer doer, uint64_t begun)
{
    profile_note(module->track, collective, doer, begun, report_time(collective, doer, begun));
}

void module_settle(struct module *module, int status)
{
    if (is_made(module, module->own, status, module->comm->c_name))
        atomic_store(&module->is_settled, true);
    else
        leave_to_mpi(module, REASON_NO_GROUP);
}
