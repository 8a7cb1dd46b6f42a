/* SPDX-License-Identifier: Apache-2.0
 *
 * Fortran's own entry points, as far as programs must be seen there.
 */
#ifndef TRIB_MPI_FORTRAN_H
#define TRIB_MPI_FORTRAN_H

/* A function that was found, or NULL. Each stub keeps its own: a search opens files. */
typedef void *_Atomic fortran_kept;

/* The function that the MPI has under this name, without which the program is ended. */
void *fortran_find(fortran_kept *kept, const char *name, const void *caller);

/* What follows when a constructor of mpi_f08 has returned result. */
void fortran_constructed(int result, const int *newcomm);

#endif
