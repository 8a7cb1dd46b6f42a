/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings of libsharp_coll's that ask the fabric for something, so that they hold for MPI
 * programs, too: what HCOLL would hand to that library. docs/sharp-coll.md says what each means.
 */
#ifndef TRIB_MPI_SHARP_H
#define TRIB_MPI_SHARP_H

#include "config.h"

/* Adds what SHARP_COLL_ variables in this process's environment ask for, unless TRIB_QUOTA or
 * TRIB_TIMEOUT_MS say it. */
void sharp_read(struct config *config);

#endif
