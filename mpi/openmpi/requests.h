/* SPDX-License-Identifier: Apache-2.0
 *
 * Non-blocking and persistent calls that go through the tree, as requests of Open MPI. Open MPI's
 * progress engine looks after them, and after trees that are being made.
 */
#ifndef TRIB_COLL_REQUESTS_H
#define TRIB_COLL_REQUESTS_H

#include "component.h"

#include "call.h"
#include "module.h"

#include <stdbool.h>

struct deferred;

/* Looks after the tree that is being made for the module. */
void requests_look_after(struct module *module);

/* Waits until the module's tree is made or refused, while the MPI makes progress. */
void requests_await_tree(struct module *module);
/* The same for all communicators. */
void requests_await_all_trees(void);

/* Whether requests wait for a tree that may yet be refused. The MPI would then begin them. It tells
 * calls that wait for nobody apart by their order, so it must not begin another one before. */
bool requests_are_ahead(struct module *module);

/* Begins a call that goes through the tree, or is not to be begun before those ahead. Returns what
 * Open MPI's functions do. */
int requests_begin(struct module *module, const struct call *call, ompi_request_t **request);

/* The same for a call that the tree does not take, when requests are ahead of it. The request takes
 * what is deferred over. */
int requests_defer(struct module *module, struct deferred *deferred, ompi_request_t **request);

/* Makes a persistent request for a call that goes through the tree: one of its own, because all
 * members make their requests in the same order, but each may start them in another one. The call
 * is collective, and waits. Returns false, on all members, if that tree is refused. */
bool requests_make(struct module *module, const struct call *call, ompi_request_t **request);

/* The module is gone, and with it what is left of its requests. */
void requests_forget(struct module *module);

/* Looks after nothing any more. */
void requests_close(void);

#endif
