/* SPDX-License-Identifier: Apache-2.0 */
#include "requests.h"

#include "functions.h"
#include "job.h"
#include "operation.h"
#include "report.h"
#include "verdict.h"

/* op.h wants a header that Debian's package lacks. What is used here of it is this name. */
#define OMPI_OP_H
typedef struct ompi_op_t ompi_op_t;
#include "ompi/mca/coll/base/coll_base_util.h"
#include "ompi/request/request.h"
#include "opal/runtime/opal_progress.h"

#include <pthread.h>
#include <string.h>

struct request {
    /* Of calls that wait for nobody Open MPI holds types and operator in it, which the program may
     * free. */
    ompi_coll_base_nbc_request_t super;
    struct module *module;
    struct call call;
    struct operation operation;
    trib_request *in_tree;   /* NULL: not in the tree */
    ompi_request_t *by_mpi;  /* what the MPI does instead; both are NULL while those ahead wait */
    bool is_active, is_detached;
    opal_object_t *held[4];  /* by a persistent request: NULL, or what the program may free */
    struct request *next;    /* of the same module */
};

typedef struct request tributary_request_t;
OBJ_CLASS_DECLARATION(tributary_request_t);

/* Guards what modules and requests are under way. Never held while the MPI or a waiting call of the
 * library runs, which may come back here. */
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
    request->next = NULL;
    *request->module->last = request;
    request->module->last = &request->next;
    list(request->module);
}

/* Whether the request is over; *error says how. */
static bool is_over(struct request *request, int *error)
{
    int done = 0, status;

    if (request->by_mpi != NULL) {
        if (!REQUEST_COMPLETE(request->by_mpi))
            return false;
        *error = request->by_mpi->req_status.MPI_ERROR;
        ompi_request_free(&request->by_mpi);
        request->by_mpi = NULL;
        return true;
    }
    if (request->in_tree == NULL)
        return false;
    status = trib_test(request->in_tree, &done);
    if (!done)
        return false;
    *error = operation_end(&request->operation, status) ? OMPI_SUCCESS : MPI_ERR_OTHER;
    trib_request_free(request->in_tree);
    request->in_tree = NULL;
    return true;
}

/* What the tree does not take, or was to take and does not exist, is done by the MPI, in the same
 * order on all ranks. */
static void hand_over(struct request *request)
{
    struct operation operation;

    trib_request_free(request->in_tree);
    request->in_tree = NULL;
    operation_forget(&request->operation);
    enum reason reason = verdict_on(module_group(request->module), &request->call, &operation);
    report_operation(request->call.name, reason == REASON_TREE ? REASON_NO_GROUP : reason, 0);
    if (functions_begin_by_mpi(request->module, &request->call, &request->by_mpi) != OMPI_SUCCESS)
        job_end("the MPI cannot begin %s", collective_name(request->call.name));
}

static void look_at_tree(struct module *module)
{
    int done = 0;
    int status = trib_test(module->own->creation, &done);

    if (!done)
        return;
    /* Other threads go to the MPI as soon as they see that the tree is refused. */
    for (struct request *each = module->first; each != NULL; each = each->next)
        if (each->by_mpi == NULL && (each->in_tree == NULL || status != TRIB_OK))
            hand_over(each);
    module_settle(module, status);
}

/* Looks at a module's requests in their order, until one is not over. Returns those that are. */
static struct request *look_at(struct module *module)
{
    struct request *over = NULL, **end = &over;

    if (!atomic_load(&module->is_settled))
        look_at_tree(module);
    while (atomic_load(&module->is_settled) && module->first != NULL) {
        struct request *first = module->first;
        int error;
        if (!is_over(first, &error))
            break;
        module->first = first->next;
        if (module->first == NULL)
            module->last = &module->first;
        first->super.super.req_status.MPI_ERROR = error;
        first->next = NULL;
        *end = first;
        end = &first->next;
    }
    return over;
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
    for (int i = 0; i < 4; i++)
        if (request->held[i] != NULL)
            OBJ_RELEASE(request->held[i]);
    OMPI_REQUEST_FINI(&request->super.super);
    OBJ_RELEASE(request);
}

/* Tells the program, which may free the request at once. */
static void complete(struct request *request)
{
    ompi_communicator_t *comm = request->module->comm;

    pthread_mutex_lock(&lock);
    request->is_active = false;
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
    struct request *over = NULL, **end = &over;
    int count = 0;

    if (atomic_load_explicit(&busy, memory_order_relaxed) == 0 || !job_usable() || pthread_mutex_trylock(&lock) != 0)
        return 0;
    for (struct module *module = modules, *next; module != NULL; module = next) {
        next = module->next;
        *end = look_at(module);
        while (*end != NULL)
            end = &(*end)->next;
        if (atomic_load(&module->is_settled) && module->first == NULL)
            unlist(module);
    }
    pthread_mutex_unlock(&lock);
    for (struct request *each = over, *next; each != NULL; each = next, count++) {
        next = each->next;
        complete(each);
    }
    return count;
}

void requests_await_tree(struct module *module)
{
    while (!atomic_load(&module->is_settled) && job_usable())
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

/* Puts the request into the tree, if it is to go there and can. */
static bool enter_tree(struct request *request)
{
    struct module *module = request->module;
    const struct group *group = module_group(module);

    if (verdict_on(group, &request->call, &request->operation) != REASON_TREE)
        return false;
    int status = operation_post(group, &request->operation, &request->in_tree);
    if (status == TRIB_OK)
        return true;
    if (!atomic_load(&module->is_settled))
        look_at_tree(module); /* it was refused just now */
    if (atomic_load(&module->group) != group)
        return false;
    operation_end(&request->operation, status);
    job_end("%s did not begin", collective_name(request->call.name));
}

static void start(struct request *request)
{
    struct module *module = request->module;

    OBJ_RETAIN(module->comm);
    request->is_active = true;
    pthread_mutex_lock(&lock);
    if (!enter_tree(request) && (atomic_load(&module->is_settled) || module->first == NULL))
        hand_over(request);
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
        while (!REQUEST_COMPLETE(&request->super.super))
            ; /* another thread is just about to say so */
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
    request->in_tree = NULL;
    request->by_mpi = NULL;
    request->is_active = request->is_detached = false;
    memset(request->held, 0, sizeof request->held);
    request->next = NULL;
}

OBJ_CLASS_INSTANCE(tributary_request_t, ompi_coll_base_nbc_request_t, construct, NULL);

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
    return request;
}

int requests_begin(struct module *module, const struct call *call, ompi_request_t **handle)
{
    struct request *request = new_request(module, call, false);

    request->super.super.req_state = OMPI_REQUEST_ACTIVE;
    *handle = &request->super.super;
    start(request);
    return OMPI_SUCCESS;
}

int requests_make(struct module *module, const struct call *call, ompi_request_t **handle)
{
    struct request *request = new_request(module, call, true);

    hold(request);
    *handle = &request->super.super;
    return OMPI_SUCCESS;
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
