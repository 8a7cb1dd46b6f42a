/* SPDX-License-Identifier: Apache-2.0
 *
 * Which MPI the program has, as that describes itself, and which library of ours fits it.
 */
#ifndef TRIB_MPI_WHICH_MPI_H
#define TRIB_MPI_WHICH_MPI_H

#include <stddef.h>

/* The function that is asked exists in every MPI since 3.0 and may be called before MPI_Init. */
#define WHICH_MPI_ASK "PMPI_Get_library_version"

/* How Open MPI's description begins. */
#define WHICH_MPI_OPEN_MPI "Open MPI "

/* This is more than MPI_MAX_LIBRARY_VERSION_STRING of any MPI. */
#define WHICH_MPI_LEN 16384

/* Reads the first line of what the MPI says about itself. */
void which_mpi_says(char version[WHICH_MPI_LEN]);

/* The version of the standard's ABI that the MPI speaks; 0 or less if it speaks one of its own. */
int which_mpi_standard_abi(void);

/* The middle of the name of the library that fits the MPI; NULL, and why, if there is none. */
const char *which_mpi_abi(const char *version, char *why, size_t length);

/* What builds that library. */
const char *which_mpi_how_to_build(const char *abi);

#endif
