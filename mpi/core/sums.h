/* SPDX-License-Identifier: Apache-2.0
 *
 * How sums of floating-point numbers are taken: for the program as TRIB_SUMS says, for a
 * communicator as its info says, if that has the key SUMS_KEY.
 */
#ifndef TRIB_MPI_SUMS_H
#define TRIB_MPI_SUMS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#define SUMS_KEY "tributary_sums"

/* No word that means something. */
#define SUMS_UNKNOWN UINT32_MAX

/* The program's, an enum trib_sums or SUMS_UNKNOWN, with which no job is joined. */
uint32_t sums_of_program(void);

/* A communicator's, which has been made. `otherwise` is what the program asks for. All members have
 * the same info, as the standard wants it, and the first of them tells what is no such word. The
 * call is local. */
uint32_t sums_of(MPI_Comm comm, uint32_t otherwise);

/* Whether they are sums whose bits depend on no order, which the MPI's do. */
bool sums_have_no_order(uint32_t sums);

#endif
