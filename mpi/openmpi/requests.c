/* SPDX-License-Identifier: Apache-2.0 */
#include "requests.h"

#include "deferred.h"
#include "functions.h"
#include "job.h"
#include "operation.h"
#include "report.h"
#include "rest.h"
#include "verdict.h"

/* op.h wants a header that Debian's package lacks. What is used here of it is this name. */
#define OMPI_OP_H
typedef struct ompi_op_t ompi_op_t;
#include "ompi/mca/coll/base/coll_base_util.h"
#include "ompi/request/request.h"
#include "opal/runtime/opal_progress.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct request {
    /* Of calls that wait for nobody Open MPI holds types and operator in it, which the program may
     * free. */
    ompi_coll_base_nbc_request_t super;
    struct module *module;
    /* Of a persistent request: ranks may start theirs in any order, so that no group of another
     * call would match them. */
    struct group *own;
    struct call call;
    struct deferred *deferred; /* NULL: the tree may take the call */
    int *arrays;               /* a copy of the call's counts and offsets */
    struct operation operation;
    trib_request *in_tree;     /* NULL: not in the tree */
    /* What the MPI does instead; MPI_REQUEST_NULL: neither it nor the tree could begin that. This
     * and in_tree are NULL while those ahead wait. */
    ompi_request_t *by_mpi;
    int status;                /* how the tree's operation has ended, or what the MPI said */
    bool is_active, is_detached;
    opal_object_t *held[4];    /* by a persistent request: NULL, or what the program may free */
    struct request *next;      /* of the same module */
};

typedef struct request tributary_request_t;
OBJ_CLASS_DECLARATION(tributary_request_t);

/* Guards what modules and requests are under way. Never held while the MPI, an operator of the
 * program's or a waiting call of the library runs, which may come back here or take long. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct module *modules;
static atomic_int busy; /* how many of them there are */
static bool is_registered;

static int progress(void);

/* Open MPI calls progress() from now on. */
static void list(struct module *module)
{
    if (module->is_listed)
        return;
    module->is_listed = true;
    module->next = modules;
    modules = module;
    atomic_fetch_add(&busy, 1);
    if (!is_registered)
        is_registered = opal_progress_register(progress) == OPAL_SUCCESS;
}

static void unlist(struct module *module)
{
    for (struct module **at = &modules; *at != NULL; at = &(*at)->next)
        if (*at == module) {
            *at = module->next;
            module->is_listed = false;
            atomic_fetch_sub(&busy, 1);
            return;
        }
}

void requests_look_after(struct module *module)
{
    pthread_mutex_lock(&lock);
    list(module);
    pthread_mutex_unlock(&lock);
}

static void append(struct request *request)
{
    struct module *module = request->module;

    request->next = NULL;
    if (request->own != NULL) {
        request->next = module->started;
        module->started = request;
    } else {
        *module->last = request;
        module->last = &request->next;
    }
    list(module);
}

/* Whether what the tree or the MPI does for the request is done. */
static bool is_done(struct request *request)
{
    int done = 0;

    if (request->by_mpi != NULL)
        return REQUEST_COMPLETE(request->by_mpi);
    if (request->in_tree != NULL)
        request->status = trib_test(request->in_tree, &done);
    return done != 0;
}

/* Lets the MPI begin what the tree does not take. If it cannot, the request ends with its error. */
static void begin_deferred(struct request *request)
{
    request->status = request->deferred->begin(request->module, request->deferred, &request->by_mpi);
    if (request->status != OMPI_SUCCESS)
        request->by_mpi = MPI_REQUEST_NULL;
}

/* What the tree does not take, or was to take and does not exist, is done by the MPI, in the same
 * order on all ranks. Called without the lock. */
static void hand_over(struct request *request)
{
    struct operation operation;

    if (request->deferred != NULL) {
        begin_deferred(request);
        return;
    }
    if (request->in_tree != NULL) { /* refused, so that it ends at once; before, it reads its input */
        (void)trib_wait(request->in_tree, -1);
        trib_request_free(request->in_tree);
        request->in_tree = NULL;
    }
    operation_forget(&request->operation);
    enum reason reason = verdict_on(module_group(request->module), &request->call, &operation);
    if (!request->call.is_mpis_own)
        report_operation(request->call.name, reason == REASON_TREE ? REASON_NO_GROUP : reason, operation.bytes);
    if (functions_begin_by_mpi(request->module, &request->call, &request->by_mpi) != OMPI_SUCCESS)
        job_end("the MPI cannot begin %s", collective_name(request->call.name));
}

/* The first of a module's requests that the MPI is to begin, now that the making of its tree has
 * ended with this status. */
static struct request *first_left_to_mpi(const struct module *module, int status)
{
    struct request *each = module->first;

    while (each != NULL && (each->by_mpi != NULL || (each->in_tree != NULL && status == TRIB_OK)))
        each = each->next;
    return each;
}

/* Settles the module if its tree is made or refused. The lock is held, but not while the MPI begins
 * what is left to it. Others may append requests meanwhile, which then have their turn, and leave
 * the rest alone. The requests keep the communicator, and so the module. */
static void look_at_tree(struct module *module)
{
    struct request *request;
    int done = 0;

    if (atomic_load(&module->is_settled) || module->is_handing_over)
        return;
    int status = trib_test(module->own->creation, &done);
    if (!done)
        return;
    module->is_handing_over = true;
    while ((request = first_left_to_mpi(module, status)) != NULL) {
        pthread_mutex_unlock(&lock);
        hand_over(request);
        pthread_mutex_lock(&lock);
    }
    module->is_handing_over = false;
    /* Other threads go to the MPI as soon as they see that the tree is refused. */
    module_settle(module, status);
}

/* Takes requests that are done off a module's lists: of those that share its group in their order,
 * until one is not. */
static struct request *look_at(struct module *module)
{
    struct request *done = NULL, **end = &done;

    for (struct request **at = &module->started; *at != NULL;) {
        struct request *each = *at;
        if (!is_done(each)) {
            at = &each->next;
            continue;
        }
        *at = each->next;
        each->next = NULL;
        *end = each;
        end = &each->next;
    }
    look_at_tree(module);
    while (atomic_load(&module->is_settled) && module->first != NULL && is_done(module->first)) {
        struct request *first = module->first;
        module->first = first->next;
        if (module->first == NULL)
            module->last = &module->first;
        first->next = NULL;
        *end = first;
        end = &first->next;
    }
    return done;
}

/* Holds what a persistent request is started with, as far as it counts on this rank. Open MPI 4.1
 * does that for its own requests while they are under way only. */
static void hold(struct request *request)
{
    const struct call *call = &request->call;
    bool is_root = call->root == ompi_comm_rank(request->module->comm);
    bool gives = call->send != MPI_IN_PLACE && (call->kind != KIND_SCATTER || is_root);
    bool takes = call->recv != MPI_IN_PLACE && (call->kind != KIND_GATHER || is_root);

    request->held[0] = (opal_object_t *)request->module->comm;
    request->held[1] = (opal_object_t *)call->op;
    request->held[2] = gives ? (opal_object_t *)call->send_type : NULL;
    request->held[3] = takes ? (opal_object_t *)call->datatype : NULL;
    for (int i = 0; i < 4; i++)
        if (request->held[i] != NULL)
            OBJ_RETAIN(request->held[i]);
}

static void release(struct request *request)
{
    if (request->own != NULL && job_usable()) {
        report_group(GROUP_FREED);
        group_free(request->own);
    }
    for (int i = 0; i < 4; i++)
        if (request->held[i] != NULL)
            OBJ_RELEASE(request->held[i]);
    free(request->arrays);
    deferred_free(request->deferred);
    OMPI_REQUEST_FINI(&request->super.super);
    OBJ_RELEASE(request);
}

/* Gives the program what a request has brought, and frees what the request needed for that. Returns
 * how it ended. */
static int end(struct request *request)
{
    int error;

    if (request->by_mpi == MPI_REQUEST_NULL) {
        request->by_mpi = NULL;
        return request->status;
    }
    if (request->by_mpi != NULL) {
        error = request->by_mpi->req_status.MPI_ERROR;
        ompi_request_free(&request->by_mpi);
        request->by_mpi = NULL;
        return error;
    }
    error = operation_end(&request->operation, request->status) ? OMPI_SUCCESS : MPI_ERR_OTHER;
    trib_request_free(request->in_tree);
    request->in_tree = NULL;
    return error;
}

/* Ends a request that is done and on no list any more. The program may free it as soon as it is
 * told. */
static void complete(struct request *request)
{
    ompi_communicator_t *comm = request->module->comm;
    int error = end(request);

    request->super.super.req_status.MPI_ERROR = error;
    pthread_mutex_lock(&lock);
    request->is_active = false;
    /* Who waits for it calls the communicator's error handler. */
    if (error != OMPI_SUCCESS && !request->super.super.req_persistent) {
        request->held[0] = (opal_object_t *)comm;
        OBJ_RETAIN(comm);
    }
    bool is_detached = request->is_detached;
    pthread_mutex_unlock(&lock);
    if (is_detached)
        release(request);
    else
        (void)ompi_request_complete(&request->super.super, true);
    OBJ_RELEASE(comm);
}

static int progress(void)
{
    struct request *done = NULL, **last = &done;
    int count = 0;

    if (atomic_load_explicit(&busy, memory_order_relaxed) == 0 || !job_usable() || pthread_mutex_trylock(&lock) != 0)
        return 0;
    for (struct module *module = modules, *next; module != NULL; module = next) {
        *last = look_at(module);
        while (*last != NULL)
            last = &(*last)->next;
        next = module->next; /* only now: others may list modules while one is looked at */
        if (atomic_load(&module->is_settled) && module->first == NULL && module->started == NULL)
            unlist(module);
    }
    pthread_mutex_unlock(&lock);
    for (struct request *each = done, *next; each != NULL; each = next, count++) {
        next = each->next;
        complete(each);
    }
    return count;
}

void requests_await_tree(struct module *module)
{
    struct rest rest = rest_begin();

    for (opal_progress(); !atomic_load(&module->is_settled) && job_usable(); opal_progress())
        rest_pause(&rest);
}

static bool is_tree_in_the_making(void)
{
    bool found = false;

    pthread_mutex_lock(&lock);
    for (struct module *module = modules; module != NULL && !found; module = module->next)
        found = !atomic_load(&module->is_settled);
    pthread_mutex_unlock(&lock);
    return found;
}

void requests_await_all_trees(void)
{
    struct rest rest = rest_begin();

    for (; job_usable() && is_tree_in_the_making(); rest_pause(&rest))
        opal_progress();
}

bool requests_are_ahead(struct module *module)
{
    if (atomic_load(&module->is_settled) || !job_usable())
        return false;
    pthread_mutex_lock(&lock);
    bool are_ahead = !atomic_load(&module->is_settled) && module->first != NULL;
    pthread_mutex_unlock(&lock);
    return are_ahead;
}

/* Puts the request into the tree, if it is to go there and can. An operation that cannot begin
 * because ranks have disagreed before is one that has ended so. */
static bool enter_tree(struct request *request, const struct group *group)
{
    struct module *module = request->module;

    if (request->deferred != NULL || verdict_on(group, &request->call, &request->operation) != REASON_TREE)
        return false;
    int status = operation_post(group, &request->operation, &request->in_tree);
    if (status == TRIB_OK)
        return true;
    if (group != request->own) {
        requests_await_tree(module); /* it was refused just now */
        if (atomic_load(&module->group) != group)
            return false;
    }
    (void)operation_end(&request->operation, status); /* ends the program but for TRIB_ERR_MISMATCH */
    request->status = MPI_ERR_OTHER;
    request->by_mpi = MPI_REQUEST_NULL;
    return true;
}

/* Whether nobody else begins the request: it is in the tree, or waits behind those that may yet be
 * left to the MPI. */
static bool is_listed_as_it_is(struct request *request, bool is_in_tree, const struct group *group)
{
    struct module *module = request->module;
    bool is_settled = atomic_load(&module->is_settled);

    if (request->own != NULL)
        return is_in_tree;
    return is_in_tree ? !is_settled || atomic_load(&module->group) == group : !is_settled && module->first != NULL;
}

static void start(struct request *request)
{
    struct module *module = request->module;
    const struct group *group = request->own != NULL && job_usable() ? request->own : module_group(module);

    OBJ_RETAIN(module->comm);
    request->is_active = true;
    bool is_in_tree = enter_tree(request, group);
    pthread_mutex_lock(&lock);
    if (!is_listed_as_it_is(request, is_in_tree, group)) {
        pthread_mutex_unlock(&lock);
        hand_over(request);
        pthread_mutex_lock(&lock);
    }
    append(request);
    pthread_mutex_unlock(&lock);
}

static int start_persistent(size_t count, ompi_request_t **requests)
{
    for (size_t i = 0; i < count; i++) {
        requests[i]->req_state = OMPI_REQUEST_ACTIVE;
        requests[i]->req_complete = REQUEST_PENDING;
        start((struct request *)requests[i]);
    }
    return OMPI_SUCCESS;
}

static int free_request(ompi_request_t **handle)
{
    struct request *request = (struct request *)*handle;

    pthread_mutex_lock(&lock);
    bool is_active = request->is_active;
    request->is_detached = is_active;
    pthread_mutex_unlock(&lock);
    if (!is_active) {
        /* Another thread is just about to say so. The call makes each look a real one. */
        while (!REQUEST_COMPLETE(&request->super.super))
            opal_progress();
        release(request);
    }
    *handle = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

/* MPI allows no collective to be cancelled. */
static int cancel(ompi_request_t *request, int flag)
{
    (void)request, (void)flag;
    return MPI_ERR_REQUEST;
}

static void construct(struct request *request)
{
    request->super.super.req_type = OMPI_REQUEST_COLL;
    request->super.super.req_free = free_request;
    request->super.super.req_cancel = cancel;
    request->super.super.req_start = start_persistent;
    request->own = NULL;
    request->deferred = NULL;
    request->arrays = NULL;
    request->in_tree = NULL;
    request->by_mpi = NULL;
    request->is_active = request->is_detached = false;
    memset(request->held, 0, sizeof request->held);
    request->next = NULL;
}

OBJ_CLASS_INSTANCE(tributary_request_t, ompi_coll_base_nbc_request_t, construct, NULL);

/* MPI lets programs change arrays when the call is over and not before. But they have seen no
 * harm in it so far, because Open MPI's own requests do not look at them again. */
static void copy_arrays(struct request *request)
{
    size_t ranks = (size_t)ompi_comm_size(request->module->comm);
    struct call *call = &request->call;

    if (call->counts == NULL)
        return;
    request->arrays = malloc(2 * ranks * sizeof *request->arrays);
    if (request->arrays == NULL)
        job_end("there is no memory for a request of %s", collective_name(call->name));
    memcpy(request->arrays, call->counts, ranks * sizeof *request->arrays);
    call->counts = request->arrays;
    if (call->offsets != NULL)
        call->offsets = memcpy(request->arrays + ranks, call->offsets, ranks * sizeof *request->arrays);
}

static struct request *new_request(struct module *module, const struct call *call, bool persistent)
{
    struct request *request = OBJ_NEW(tributary_request_t);

    if (request == NULL)
        job_end("there is no memory for a request of %s", collective_name(call->name));
    OMPI_REQUEST_INIT(&request->super.super, persistent);
    request->super.super.req_mpi_object.comm = module->comm;
    request->super.super.req_status = (ompi_status_public_t){.MPI_SOURCE = MPI_ANY_SOURCE, .MPI_TAG = MPI_ANY_TAG, .MPI_ERROR = OMPI_SUCCESS};
    request->module = module;
    request->call = *call;
    copy_arrays(request);
    return request;
}

static int begin(struct request *request, ompi_request_t **handle)
{
    request->super.super.req_state = OMPI_REQUEST_ACTIVE;
    *handle = &request->super.super;
    start(request);
    return OMPI_SUCCESS;
}

int requests_begin(struct module *module, const struct call *call, ompi_request_t **handle)
{
    return begin(new_request(module, call, false), handle);
}

int requests_defer(struct module *module, struct deferred *deferred, ompi_request_t **handle)
{
    struct request *request = new_request(module, &(const struct call){.name = deferred->name}, false);

    request->deferred = deferred;
    return begin(request, handle);
}

bool requests_make(struct module *module, const struct call *call, ompi_request_t **handle)
{
    struct group *own = module_make_another(module);

    if (own == NULL)
        return false;
    struct request *request = new_request(module, call, true);
    request->own = own;
    hold(request);
    *handle = &request->super.super;
    return true;
}

void requests_forget(struct module *module)
{
    pthread_mutex_lock(&lock);
    unlist(module);
    pthread_mutex_unlock(&lock);
}

void requests_close(void)
{
    pthread_mutex_lock(&lock);
    bool was_registered = is_registered;
    is_registered = false;
    pthread_mutex_unlock(&lock);
    if (was_registered)
        opal_progress_unregister(progress);
}
