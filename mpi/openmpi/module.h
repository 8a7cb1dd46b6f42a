/* SPDX-License-Identifier: Apache-2.0
 *
 * What Open MPI calls for one communicator: the tree where the verdict says so, else the module
 * that it would have called without us.
 */
#ifndef TRIB_COLL_MODULE_H
#define TRIB_COLL_MODULE_H

#include "component.h"

#include "call.h"
#include "group.h"
#include "report.h"

#include "ompi/communicator/communicator.h"

#include <stdatomic.h>

struct request;
struct track;

struct module {
    mca_coll_base_module_t super;
    ompi_communicator_t *comm;
    mca_coll_base_comm_coll_t previous; /* the functions without us, each with its module */
    bool is_enabled;
    _Atomic(const struct group *) group; /* never NULL */
    struct group *own;                   /* the same, if this communicator has a tree or may get one */
    struct track *track;                 /* NULL: no profile */
    uint32_t others;                     /* how many persistent requests asked for a tree; equal on all members */
    uint32_t refused_until;              /* those with smaller numbers get none */
    /* Below: guarded by the lock of requests.c, but before the module is known there. */
    atomic_bool is_settled;        /* whether no tree is in the making */
    struct request *first, **last; /* the requests under way, in the order of their calls */
    struct request *started;       /* the persistent ones, each with a tree of its own */
    struct module *next;           /* of the modules with something to look after */
    bool is_listed;
    bool is_handing_over;          /* a thread lets the MPI begin what is left to it */
};

typedef struct module tributary_module_t;
OBJ_CLASS_DECLARATION(tributary_module_t);

/* A module for a communicator of two or more ranks. */
mca_coll_base_module_t *module_new(void);

/* The group by which a call is judged. */
const struct group *module_group(struct module *module);

/* Notes a call that had the verdict REASON_FEW_CALLS and counts for so many. Returns true if it is
 * to be judged anew, as the communicator's tree is in the making now. */
bool module_note_call(struct module *module, uint64_t calls);

/* Adds the time since then to that of a blocking call. */
void module_time(struct module *module, enum collective collective, enum doer doer, uint64_t begun);

/* Makes one more tree for the module's communicator, and waits for it, while the MPI makes
 * progress. The call is collective. Returns NULL, on all members, if the tree is refused. */
struct group *module_make_another(struct module *module);

/* The tree was made, or refused with this status. Called under the lock of requests.c. */
void module_settle(struct module *module, int status);

/* The module of MPI_COMM_WORLD, through which the library's own few bytes go. NULL before. */
extern struct module *module_of_world;

#endif
