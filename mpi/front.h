/* SPDX-License-Identifier: Apache-2.0
 *
 * libtrib_mpi.so, which programs preload. It is linked with no MPI and knows none of its types:
 * when the program initialises its MPI, it finds out which one that is and loads
 * libtrib_mpi_FAMILY.so, which fits it. From there on each stub calls a shim of that library, or
 * the MPI. Where no library fits it says so and steps aside: every call goes straight to the MPI.
 *
 * Arguments are handed on as machine words. All of them are integers or pointers, which the ABIs of
 * 64-bit Linux pass in a register or an 8-byte slot each, so a stub needs not know which.
 */
#ifndef TRIB_MPI_FRONT_H
#define TRIB_MPI_FRONT_H

#include <stdbool.h>
#include <stdint.h>

typedef uintptr_t word;
_Static_assert(sizeof(word) == 8, "stubs hand arguments on as words of 64 bits");

typedef void (*front_entry)(void); /* of another type; the one that no compiler warns of casting */

#define FRONT_CALLS_MAX 160

/* Generated: the calls in the order of their numbers; those that are only counted come first. */
extern const char *const front_names[];
extern const unsigned front_calls;

/* The function that does call number index. caller: an address in the program or library that
 * calls. */
front_entry front_target(unsigned index, const void *caller);

/* Decides who does the calls, once; caller as above. */
void front_choose(const void *caller);

/* MPI_Init or MPI_Init_thread came through a stub. */
bool front_saw_init(void);

/* The library for this program's MPI tells that the collectives of Fortran stay with the MPI;
 * nothing where there is none. */
void front_tell_fortran(void);

/* Looks a function up as the object at caller sees it, our own apart. NULL: nobody has it. */
void *front_find(const char *name, const void *caller);

#endif
