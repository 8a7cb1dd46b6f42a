/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls for large counts where the MPI has no such form. Programs that look for one before they
 * call it, as mpi4py does, find ours, which is there under every MPI. So it has to work: the usual
 * form serves it, whose counts are ints.
 */
#ifndef TRIB_MPI_NARROW_H
#define TRIB_MPI_NARROW_H

#include "front.h"

#include <stdbool.h>

struct narrow {
    const char *name;
    word comm;
    const word *root; /* NULL: all ranks are alike */
    bool lasts;       /* the MPI may read arrays after the call */
    bool is_refused;
    void *arrays[4];
    unsigned used;
};

/* Notes whether a count or a displacement does not fit into an int. */
void narrow_count(struct narrow *narrow, word count);

/* Whether a buffer is MPI_IN_PLACE, with which the MPI reads no array for what is sent. */
bool narrow_is_in_place(word buffer);

/* What an array has a number for: each rank of the other side, and so on. */
enum whose { PEERS, OWN_GROUP, SOURCES, DESTINATIONS };

/* Returns ints for an array of such numbers, if this rank's is one that counts. */
word narrow_array(struct narrow *narrow, word array, enum whose whose);

/* Says why the call cannot be done, and fails it with the MPI's error. */
int narrow_refuse(struct narrow *narrow);

/* Frees the arrays, unless the MPI may still read them. */
void narrow_end(struct narrow *narrow);

#endif
