/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a collective goes through the tree. That depends on five things only: on values that MPI
 * guarantees equal on all ranks of the communicator (the communicator, the length and signature of
 * the vector, operator, root), on the placement that all ranks know, on what the manager predicted
 * for the job, on rank 0's settings, and on the communicator's calls so far. If anything else
 * decided it, ranks would wait for each other in different calls for ever.
 *
 * Differences that only this rank can see must not matter: equal buffers count as MPI_IN_PLACE, and
 * how elements lie in memory as it may. A call that is wrong on this rank alone is left to the MPI
 * to report.
 */
#ifndef TRIB_MPI_VERDICT_H
#define TRIB_MPI_VERDICT_H

#include "call.h"
#include "group.h"
#include "operation.h"

/* Returns REASON_TREE and sets *operation, or returns why the MPI is to do the call. */
enum reason verdict_on(const struct group *group, const struct call *call, struct operation *operation);

#endif
