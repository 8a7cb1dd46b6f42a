/* SPDX-License-Identifier: Apache-2.0
 *
 * How a rank waits in a meeting of ranks, and for a tree in the making: it looks a few times, and
 * then sleeps between looks. An MPI's own wait looks all the time. Where ranks share cores, those
 * that wait would keep the others, the manager and the nodes from what they wait for.
 */
#ifndef TRIB_MPI_REST_H
#define TRIB_MPI_REST_H

struct rest {
    int looks;
    long pause_ns;
};

/* At the begin of each wait. */
struct rest rest_begin(void);

/* After a look in vain. */
void rest_pause(struct rest *rest);

#endif
