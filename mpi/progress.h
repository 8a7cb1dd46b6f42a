/* SPDX-License-Identifier: Apache-2.0
 *
 * Both sides move while a rank waits: the MPI while we wait in the tree, so that a message another
 * rank sends to this one goes on; and our own messages about failed trees.
 *
 * The MPI is called from threads of the program that are inside a wrapped call, and from no other
 * as long as nothing of ours waits. When a tree has failed, and the level is MPI_THREAD_MULTIPLE, a
 * helper thread looks every 10 ms whether another rank needs a word from this one, whatever the
 * program is doing. Not with Open MPI: its file requests stand in a list without a lock, which
 * every thread walks that makes the MPI progress (mca_common_ompio_progress, seen in 4.1.4), so a
 * thread of ours crashes programs that ran without it.
 */
#ifndef TRIB_MPI_PROGRESS_H
#define TRIB_MPI_PROGRESS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* world: the private duplicate of MPI_COMM_WORLD. */
void progress_open(MPI_Comm world);

/* Whether this MPI can be called from a thread of ours while the program is in the MPI itself. */
bool progress_bears_second_thread(void);

/* Starts and joins the helper thread, where the MPI's thread level allows one. */
void progress_start_helper(void);
void progress_stop_helper(void);

/* One step of the MPI and of our own messages; waits for nothing. */
void progress(void);

/* progress() as the callback of trib_params. */
void progress_while_waiting(void *ctx);

/* progress() and a short rest, for loops that wait for other ranks. */
void progress_and_rest(void);

/* Waits for a request of the MPI's and keeps answering other ranks; an error code of the MPI's. */
int progress_until_done(MPI_Request *request);

/* A barrier over world that keeps answering other ranks, and sees our messages off. */
void progress_until_all_arrive(MPI_Comm world);

/* Milliseconds on a clock that only goes forward. */
uint64_t progress_clock_ms(void);

#endif
