/* SPDX-License-Identifier: Apache-2.0
 *
 * The begin of MPI_Finalize, when ranks can still talk: the MPI deletes the attributes of
 * MPI_COMM_SELF first.
 */
#ifndef TRIB_COLL_ENDING_H
#define TRIB_COLL_ENDING_H

/* Leaves the job then. */
void ending_watch(void);

#endif
