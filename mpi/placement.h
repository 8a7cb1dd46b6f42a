/* SPDX-License-Identifier: Apache-2.0
 *
 * Which ranks share a host, as all ranks know it: the names are those that the manager plans with,
 * TRIB_HOST or the machine's own.
 */
#ifndef TRIB_MPI_PLACEMENT_H
#define TRIB_MPI_PLACEMENT_H

#include <mpi.h>
#include <stdbool.h>

/* Collective over world. Where memory is short on any rank, every rank counts as alone on its
 * host, on all ranks alike. */
void placement_read(MPI_Comm world);

/* The lowest rank in MPI_COMM_WORLD on the host of this one; so two ranks share a host when this
 * is equal. */
int placement_leader(int world_rank);

/* All ranks of MPI_COMM_WORLD are on one host. */
bool placement_is_one_host(void);

void placement_forget(void);

#endif
