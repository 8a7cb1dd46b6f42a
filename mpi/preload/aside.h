/* SPDX-License-Identifier: Apache-2.0
 *
 * What is said where the collectives of a program stay with the MPI.
 */
#ifndef TRIB_MPI_ASIDE_H
#define TRIB_MPI_ASIDE_H

/* Says why in one line, unless the user has switched this library off or the component for Open MPI
 * has the collectives; then ends the program, if it is not to run without a tree. MPI is
 * initialised. */
void aside_say(const char *why);

#endif
