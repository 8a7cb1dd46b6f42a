/* SPDX-License-Identifier: Apache-2.0
 *
 * posting.h - the collectives by number, so that one function can break all of them.
 */
#ifndef POSTING_H
#define POSTING_H

#include "real.h"

/* The collectives; those with a reduce spec come first. */
enum collective { ALLREDUCE, REDUCE, REDUCE_SCATTER, ALLGATHER, BCAST, BARRIER };

struct call {
    union {
        struct sharp_coll_reduce_spec reduce;
        struct sharp_coll_gather_spec gather;
        struct sharp_coll_bcast_spec bcast;
    };
};

/* An error that this library should not give, or 0. */
int refused(enum collective collective, const struct call *call);

/* Breaks a spec. */
void change(enum collective collective, struct call *call);

/* The call of the library behind this one; without `request` it is the blocking call. */
int make(enum collective collective, struct sharp_coll_comm *comm, struct call *call, void **request);

/* Whether this process is the job's last rank, or its first. */
int at_last_rank(void);
int at_first_rank(void);

/* Counts a poll. When there are as many polls as the program wants, calls its progress function,
   whether it has one or not. */
void poll_as_told(void);

/* How long a wait may last, ms; 0 means for ever. */
int wait_limit(void);

#endif
