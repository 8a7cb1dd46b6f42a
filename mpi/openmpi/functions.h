/* SPDX-License-Identifier: Apache-2.0
 *
 * The collectives that the tree takes: blocking, non-blocking and persistent.
 */
#ifndef TRIB_COLL_FUNCTIONS_H
#define TRIB_COLL_FUNCTIONS_H

#include "module.h"

/* Puts them into the module, instead of those that Open MPI had. */
void functions_install(struct module *module);

/* Lets the MPI begin a call of which there is a request. */
int functions_begin_by_mpi(struct module *module, const struct call *call, ompi_request_t **request);

#endif
