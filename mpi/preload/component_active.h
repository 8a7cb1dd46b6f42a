/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the component for Open MPI has this program's collectives: then nothing is left to do
 * here, and every call goes to the MPI, which calls the component.
 */
#ifndef TRIB_MPI_COMPONENT_ACTIVE_H
#define TRIB_MPI_COMPONENT_ACTIVE_H

#include <stdbool.h>

/* The answer is known when MPI is initialised. */
bool component_is_active(void);

#endif
