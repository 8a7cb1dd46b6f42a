/* SPDX-License-Identifier: Apache-2.0
 *
 * What this library asks of the MPI in whose program it is. The preloaded library answers with the
 * standard's PMPI_ functions. The component answers with Open MPI's own, because it is asked before
 * MPI_Init is over, when the standard's may not be called.
 */
#ifndef TRIB_MPI_RUNTIME_H
#define TRIB_MPI_RUNTIME_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int runtime_rank(MPI_Comm comm);
int runtime_size(MPI_Comm comm);

/* Writes the ranks in world of the members first .. first + count - 1 of comm; MPI_UNDEFINED where
 * a member is not in world. The call is local. */
void runtime_ranks_in(MPI_Comm world, MPI_Comm comm, int first, int count, int ranks[]);

/* Few bytes among all ranks of comm, which wait for each other. Return false if the MPI refuses. */
bool runtime_gather(MPI_Comm comm, const void *own, void *all, int bytes); /* to rank 0 */
bool runtime_bcast(MPI_Comm comm, void *buffer, int bytes, int root);
bool runtime_sum(MPI_Comm comm, const uint64_t *own, uint64_t *all, int count); /* at rank 0 */
int runtime_least(MPI_Comm comm, int own); /* the lowest of all ranks' numbers, on all of them */
void runtime_barrier(MPI_Comm comm);

/* Let the MPI move messages that other ranks send to this one. A rank that waits may give way to
 * others meanwhile; one that goes on keeps its processor where the MPI can be told to. */
void runtime_progress(void);
void runtime_progress_in_passing(void);

/* The bytes of data of an element, and the distance of two elements in memory. Both are 0 for a
 * handle that is none. */
void runtime_extent(MPI_Datatype datatype, size_t *bytes, size_t *distance);
/* Whether an element is one of the MPI's own types. */
bool runtime_is_predefined(MPI_Datatype datatype);
/* inout = in operator inout, for count elements. */
void runtime_reduce(const void *in, void *inout, size_t count, MPI_Datatype datatype, MPI_Op op);
/* Copy count elements between the program's memory and bytes without gaps. */
void runtime_pack(const void *from, size_t count, MPI_Datatype datatype, void *bytes);
void runtime_unpack(const void *bytes, size_t count, MPI_Datatype datatype, void *to);

/* What a communicator's info has for this key: at most `most` characters and a NUL are written to
 * value. Returns whether it has the key. The call is local. */
bool runtime_info(MPI_Comm comm, const char *key, char *value, int most);

/* The value of a setting that has this name in the environment, as this process has it; NULL: it is
 * not set. */
const char *runtime_setting(const char *name);

/* Ends the program on all ranks. */
_Noreturn void runtime_end(void);

#endif
