/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the libraries of all ranks meet, in MPI_Init, before anything else is done together.
 *
 * A rank may run without this library: another application of the program, a host on which the
 * library is missing, a program that initialises MPI in Fortran. No launcher tells this for sure.
 * A collective call on MPI_COMM_WORLD would wait for such a rank for ever, or, which is worse,
 * match the first such call of its program. So the meeting is a call that matches nothing but
 * itself, and it ends the program when not all have come in time.
 */
#ifndef TRIB_MPI_MEETING_H
#define TRIB_MPI_MEETING_H

#include <mpi.h>

/* Returns a communicator of all ranks of MPI_COMM_WORLD in which only the libraries talk. */
MPI_Comm meeting_hold(void);

#endif
