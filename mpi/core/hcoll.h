/* SPDX-License-Identifier: Apache-2.0
 *
 * HCOLL's names for settings, so that job scripts written for it go on as they are. They act where
 * they are set and our own setting for the same is not. Their meanings are those of NVIDIA's
 * documentation of HCOLL and SHARP.
 */
#ifndef TRIB_MPI_HCOLL_H
#define TRIB_MPI_HCOLL_H

#include "config.h"

/* Adds what HCOLL's variables in this process's environment say. What they ask for and does not
 * exist here is said on stderr, once for all variables that have no meaning. */
void hcoll_read(struct config *config);

/* Whether they say that a program without the tree is to end. */
bool hcoll_requires(void);

/* What OMPI_MCA_coll_hcoll_enable says: 1, 0, or -1 if nothing. */
int hcoll_enabled(void);

#endif
