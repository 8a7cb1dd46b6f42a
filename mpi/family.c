/* SPDX-License-Identifier: Apache-2.0
 *
 * For the Makefile, which reads what the preprocessor makes of this: whose ABI the compiler at hand
 * is for. Never compiled.
 */
#include <mpi.h>

#ifdef OPEN_MPI
family=openmpi
#elif defined(MPICH_VERSION)
family=mpich
#endif
