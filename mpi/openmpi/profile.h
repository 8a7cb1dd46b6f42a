/* SPDX-License-Identifier: Apache-2.0
 *
 * How much of the time in blocking collectives was waiting for the last rank (TRIB_MPI_PROFILE).
 *
 * Each rank notes when it entered and left each call, and at the end of the program the ranks tell
 * each other: what lies before the moment when the last member of the communicator entered was
 * waiting for that member, in the tree as in the MPI, and what follows is the rest. A barrier in
 * front of each collective, as other profilers have it, would need no clocks that agree. But its
 * own time would count as waiting, which for short vectors is as long as the collective, and ranks
 * that a broadcast or a reduction lets go on would wait for all others, so that the program would
 * be another one.
 */
#ifndef TRIB_COLL_PROFILE_H
#define TRIB_COLL_PROFILE_H

#include "collective.h"
#include "report.h"

#include <mpi.h>
#include <stdint.h>

/* The calls on one communicator. */
struct track;

/* Begins to note the calls on comm, and waits for nobody. No two communicators that live at the
 * same time and share a member have the same number. Returns NULL where nothing is to be noted. */
struct track *profile_track(MPI_Comm comm, uint64_t number);

/* Notes a call, by report_clock() and report_time(). NULL is allowed. */
void profile_note(struct track *track, enum collective collective, enum doer doer, uint64_t begun, uint64_t ended);

/* Splits all calls' times and hands them to the report. The call is collective over
 * MPI_COMM_WORLD, at the begin of MPI_Finalize. */
void profile_split(void);

#endif
