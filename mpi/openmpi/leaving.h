/* SPDX-License-Identifier: Apache-2.0
 *
 * Trees that are still being made when their communicator is gone. MPI_Comm_free waits for nobody,
 * so other ranks may have the communicator yet, and make the tree with this rank's help or fail.
 */
#ifndef TRIB_COLL_LEAVING_H
#define TRIB_COLL_LEAVING_H

#include "component.h"

#include "group.h"

/* Frees the group, if its tree is being made then when that is over. */
void leaving_free(struct group *group);

/* Waits until all of these are free, while the MPI makes progress. */
void leaving_await(void);

#endif
