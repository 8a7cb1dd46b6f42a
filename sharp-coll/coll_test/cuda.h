/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of a GPU, through the driver that exists at run time: nothing of CUDA is needed to
 * build this program.
 */
#ifndef COLL_TEST_CUDA_H
#define COLL_TEST_CUDA_H

#include <stddef.h>

/* Returns NULL, or why there is no such memory here. The local rank picks a device. */
const char *cuda_open(int local_rank);
/* Returns NULL when there is not enough memory. */
void *cuda_take(size_t len);
void cuda_give_back(void *start);
/* Returns 0, or the driver's error. */
int cuda_write(void *to, const void *from, size_t len);
int cuda_read(void *to, const void *from, size_t len);

#endif
