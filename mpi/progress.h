/* SPDX-License-Identifier: Apache-2.0
 *
 * Progress of both sides while a rank waits: of the MPI while we wait in the tree, so that a
 * message that another rank sends to this one gets on, and of our own messages about failed trees.
 *
 * As long as nothing of ours waits, the MPI is called only from threads of the program that are
 * inside a wrapped call. When a tree has failed, and the level is MPI_THREAD_MULTIPLE, a helper
 * thread looks every 10 ms whether another rank needs an answer from this one, whatever the program
 * is doing. There is no helper with Open MPI: every thread that makes it progress walks a list of
 * file requests without a lock (mca_common_ompio_progress, seen in 4.1.4), so a thread of ours
 * would crash programs that run without it.
 */
#ifndef TRIB_MPI_PROGRESS_H
#define TRIB_MPI_PROGRESS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* Opens the mailbox on world, the private duplicate of MPI_COMM_WORLD. */
void progress_open(MPI_Comm world);

/* Whether a thread of ours may call this MPI while the program itself is in the MPI. */
bool progress_bears_second_thread(void);

/* Start and end the helper thread, if the MPI's thread level allows one. */
void progress_start_helper(void);
void progress_stop_helper(void);

/* Does one step of the MPI and of our own messages, and does not wait. */
void progress(void);

/* progress() as the callback of trib_params. */
void progress_while_waiting(void *ctx);

/* Does progress() and rests a little, for loops that wait for other ranks. */
void progress_and_rest(void);

/* Waits for a request of the MPI and keeps answering other ranks. Returns an error code of the
 * MPI. */
int progress_until_done(MPI_Request *request);

/* A barrier over world that keeps answering other ranks, and that ends only when our messages are
 * sent. */
void progress_until_all_arrive(MPI_Comm world);

/* Milliseconds on a clock that only goes forward. */
uint64_t progress_clock_ms(void);

#endif
