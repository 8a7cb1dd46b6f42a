/* SPDX-License-Identifier: Apache-2.0
 *
 * Which ranks share a host. All ranks know this. The host names are those with which the manager
 * plans: TRIB_HOST, or the machine's own.
 */
#ifndef TRIB_MPI_PLACEMENT_H
#define TRIB_MPI_PLACEMENT_H

#include <mpi.h>
#include <stdbool.h>

/* Longer than any host name that the manager takes; what is cut off would have been refused. */
#define PLACEMENT_NAME_LEN 256

/* Writes the name of this rank's host, filled up with zeros. */
void placement_read_host(char name[PLACEMENT_NAME_LEN]);

/* Reads the placement. The call is collective over world, and no rank leaves it before all have
 * come to it. */
void placement_read(MPI_Comm world);

/* The lowest rank in MPI_COMM_WORLD on the host of this rank. Two ranks share a host if these are
 * equal. */
int placement_leader(int world_rank);

void placement_forget(void);

#endif
