/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages between ranks about a tree that failed, over a private duplicate of MPI_COMM_WORLD.
 *
 * A message names its group in its body, not in its MPI tag, so that two groups that fail at the
 * same time can never be confused. Sending and receiving never wait: any wrapped call may move a
 * message on. All ranks must have the same byte order, which the tree itself needs too.
 */
#ifndef TRIB_MPI_MAILBOX_H
#define TRIB_MPI_MAILBOX_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

enum message_kind {
    MESSAGE_QUERY,    /* first member to all: stop using the tree, send your mark */
    MESSAGE_MARK,     /* member to first member: how many operations it completed, and
                       * what it still has of the last */
    MESSAGE_DECISION, /* first member to all: what is to be done; payload: one byte per member,
                       * 1 = lacks the operation */
    MESSAGE_DATA,     /* payload: a result (allreduce) or an input (reduce) */
};

#define MESSAGE_CAUSE 384

struct message {
    uint64_t group;      /* group.id */
    uint64_t payload;    /* bytes that follow */
    uint32_t kind;       /* enum message_kind */
    uint32_t sender;     /* rank in the group */
    uint64_t completed;  /* mark: operations completed through the tree; decision: the largest such
                          * number */
    uint64_t bytes;      /* mark, decision: length of the vector of the last completed operation */
    uint32_t collective; /* the last completed operation: enum collective, root */
    int32_t root;
    uint32_t held;   /* mark: 1 when the sender still holds that operation's result (input);
                      * decision: the holder's rank */
    int32_t padding;
    char cause[MESSAGE_CAUSE]; /* mark: what made the sender stop; empty: it was asked to */
};

/* Opens the mailbox on comm, which must stay valid until mailbox_idle() is true and nothing more is
 * sent. From here on callers hold registry_lock(), because the mailbox has no lock of its own. */
void mailbox_open(MPI_Comm comm);

/* Starts to send a message; returns false when memory is short. payload is copied and may be NULL
 * when message->payload is 0. */
bool mailbox_send(int world_rank, const struct message *message, const void *payload);

/* Moves all messages on, and calls handle() for each one that has arrived. handle() may send; it
 * owns the payload and frees it. */
void mailbox_poll(void (*handle)(const struct message *message, void *payload));

/* True when nothing is waiting to be sent. */
bool mailbox_idle(void);

#endif
