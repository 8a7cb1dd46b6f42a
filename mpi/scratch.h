/* SPDX-License-Identifier: Apache-2.0
 *
 * A buffer for the length of one operation. The last one is kept for the next: fresh memory costs
 * several times the copy that goes into it.
 */
#ifndef TRIB_MPI_SCRATCH_H
#define TRIB_MPI_SCRATCH_H

#include <stddef.h>

/* NULL when memory is short. From any thread. */
void *scratch_take(size_t bytes);
/* NULL is allowed. */
void scratch_give_back(void *buffer);

/* A longer buffer is not kept. */
#define SCRATCH_KEPT_BYTES ((size_t)64 << 20)

#endif
