/* SPDX-License-Identifier: Apache-2.0
 *
 * The component's parameters, which `ompi_info --param coll tributary --level 9` shows.
 */
#ifndef TRIB_COLL_SETTINGS_H
#define TRIB_COLL_SETTINGS_H

#include <stdbool.h>

/* Registers them. Returns what Open MPI's functions do. */
int settings_register(void);

/* Whether this process is to use the component at all. */
bool settings_enabled(void);

/* How the component ranks among the others; the highest serves a communicator. */
int settings_priority(void);

#endif
