/* SPDX-License-Identifier: Apache-2.0
 *
 * libtrib_mpi.so, which programs preload. It is linked with no MPI and knows none of its types.
 * When the program initialises its MPI, this library finds out which one that is and loads
 * libtrib_mpi_ABI.so, which fits it. From then on each stub calls a shim of that library, or the
 * MPI. If no library fits, it says so and steps aside: every call goes straight to the MPI.
 *
 * Arguments are handed on as machine words. All of them are integers or pointers, which the ABIs of
 * 64-bit Linux pass in a register or an 8-byte slot each, so a stub need not know which.
 */
#ifndef TRIB_MPI_FRONT_H
#define TRIB_MPI_FRONT_H

#include <stdbool.h>
#include <stdint.h>

typedef uintptr_t word;
_Static_assert(sizeof(word) == 8, "stubs hand arguments on as words of 64 bits");

typedef void (*front_entry)(void); /* of another type; the one that no compiler warns of casting */

#define FRONT_CALLS_MAX 160

/* Generated: the calls in the order of their numbers. Those that are only counted come first. */
struct front_call {
    const char *name;
    front_entry narrow; /* what serves it where the MPI lacks it; NULL: nothing */
    front_entry absent; /* what fails where nothing serves it */
};
extern const struct front_call front_table[];
extern const unsigned front_calls;

/* The function that carries out the call with number index. caller is an address in the program or
 * library that makes the call. */
front_entry front_target(unsigned index, const void *caller);

/* What follows this library for the call with number index: a tool's function, the MPI's, or one
 * that returns an error. The choice below has been made. */
front_entry front_next_entry(unsigned index);

/* The MPI's own function with this name, or NULL. The same holds. */
void *front_mpi_function(const char *name);

/* Fails a call as the MPI fails its own: calls the communicator's error handler, and returns the
 * error if that does. */
int front_fail(word comm, int error);

/* The same with MPI_ERR_OTHER, for a call that nothing serves. */
int front_absent(word comm);

/* Decides once which library carries out the calls; caller as above. */
void front_choose(const void *caller);

/* Whether a call of C's has come through a stub, as MPI_Init or MPI_Init_thread does first. */
bool front_saw_init(void);

/* Says why the collectives of a program that has initialised MPI in Fortran stay with the MPI. */
void front_tell_fortran(void);

/* Whether the MPI says that it is Open MPI. */
bool front_is_open_mpi(void);

/* Whether Fortran's calls come to a library of ours: through the MPI's C functions, or through the
 * stubs for those of mpi_f08 that do not. */
bool front_takes_fortran(void);

/* Lets that library look at a communicator that mpi_f08 has made; its number is Fortran's. */
void front_constructed(int result, int newcomm);

#endif
