/* SPDX-License-Identifier: Apache-2.0
 *
 * The collectives that the tree does not take. They are counted, and done by the functions that
 * Open MPI would have called without us. forwards.c is generated from Open MPI's header.
 */
#ifndef TRIB_COLL_FORWARDS_H
#define TRIB_COLL_FORWARDS_H

#include "module.h"

/* Puts one into the module for each function that was there before, and holds the modules of all
 * functions that were, until they are released. */
void forwards_install(struct module *module);
void forwards_release(struct module *module);

#endif
