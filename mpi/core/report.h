/* SPDX-License-Identifier: Apache-2.0
 *
 * What went through the tree and what did not, and why.
 */
#ifndef TRIB_MPI_REPORT_H
#define TRIB_MPI_REPORT_H

#include "collective.h"

#include <stdint.h>

/* Who did what took its time. */
enum doer { DOER_TREE, DOER_MPI, DOERS };

enum group_event { GROUP_MADE, GROUP_REFUSED, GROUP_FREED, GROUP_EVENTS };

/* Count an operation, a group and so on. `bytes` are those of the vector or of a rank's block, 0
 * where the verdict came without a look at it. Any thread may call these. */
void report_operation(enum collective collective, enum reason reason, uint64_t bytes);
void report_group(enum group_event event);

/* The clock by which blocking calls are timed, in nanoseconds. Returns 0, without a look at it,
 * when nobody is to see a report. */
uint64_t report_clock(void);

/* Add the time since then: of a blocking collective, and of waiting for a communicator's tree. The
 * first returns the time until which it counted. */
uint64_t report_time(enum collective collective, enum doer doer, uint64_t since);
void report_tree_time(uint64_t since);

/* Adds to what of that time was waiting for the last rank, and what was not; in nanoseconds. */
void report_split(enum collective collective, enum doer doer, uint64_t waiting, uint64_t rest);

/* Sums over all ranks and writes: to rank 0's stderr when TRIB_MPI_REPORT is set there, and as JSON
 * to the file TRIB_MPI_REPORT_FILE. The call is collective over the job's private communicator. */
void report_write(void);

/* Writes this rank's figures alone to its stderr when TRIB_MPI_REPORT is set; for MPI_Abort. */
void report_write_own(void);

#endif
