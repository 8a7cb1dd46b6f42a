/* SPDX-License-Identifier: Apache-2.0
 *
 * A buffer for the time of one operation. The last one is kept for the next operation, because
 * fresh memory costs several times as much as the copy that goes into it.
 */
#ifndef TRIB_MPI_SCRATCH_H
#define TRIB_MPI_SCRATCH_H

#include <stddef.h>

/* Returns NULL when memory is short. Any thread may call this. */
void *scratch_take(size_t bytes);
/* NULL is allowed. */
void scratch_give_back(void *buffer);

/* A buffer of more bytes is not kept. */
#define SCRATCH_KEPT_BYTES ((size_t)64 << 20)

#endif
