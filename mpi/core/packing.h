/* SPDX-License-Identifier: Apache-2.0
 *
 * Vectors whose elements do not lie one after the other as the tree wants them: derived types, and
 * pairs that the compiler pads. They are copied to memory without gaps and back.
 */
#ifndef TRIB_MPI_PACKING_H
#define TRIB_MPI_PACKING_H

#include "types.h"

#include <mpi.h>
#include <stddef.h>

/* Memory without gaps, and what is to be copied back from it. All zero: nothing is packed. */
struct packing {
    void *memory;
    void *vector; /* the program's */
    size_t count;
    MPI_Datatype datatype;
    struct pair_layout pair; /* width 0: datatype says how elements lie */
};

/* Whether the MPI's elements lie without gaps and in the order of their data, so that they may be
 * taken as bytes. */
bool packing_is_needless(MPI_Datatype datatype);

/* Makes memory for count elements, of `bytes` bytes together. A program without memory for it is
 * ended with a line that says so: its other ranks wait for this one in the tree. */
void packing_open(struct packing *packing, void *vector, size_t count, MPI_Datatype datatype, struct pair_layout pair,
                  size_t bytes);

/* Copy elements first .. first + count - 1 of the vector to the memory; and all of them back. */
void packing_take(struct packing *packing, size_t first, size_t count, size_t at);
void packing_give_back(const struct packing *packing);

void packing_close(struct packing *packing);

#endif
