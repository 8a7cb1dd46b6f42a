/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether all ranks have the component. The launcher passes on what each process has said before
 * the MPI connects them, so no message of ours meets a rank that does not expect one.
 */
#ifndef TRIB_COLL_PRESENCE_H
#define TRIB_COLL_PRESENCE_H

/* Says that this process has it. */
void presence_show(void);

/* Returns -1 if all ranks of MPI_COMM_WORLD have said so, else the lowest that has not. All ranks
 * come to the same. */
int presence_find_lacking(void);

/* Returns the lowest rank of MPI_COMM_WORLD that has said so, -1 if none has; `lacking` is the
 * lowest that has not. */
int presence_find_first(int lacking);

#endif
