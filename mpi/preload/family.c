/* SPDX-License-Identifier: Apache-2.0
 *
 * Tells the Makefile for which MPI's ABI the compiler at hand is. The Makefile reads what the
 * preprocessor makes of this file, which is never compiled.
 */
#include <mpi.h>

#ifdef MPI_ABI_VERSION
family=abi
#elif defined(OPEN_MPI)
family=openmpi
#elif defined(MPICH_VERSION)
family=mpich
#endif
