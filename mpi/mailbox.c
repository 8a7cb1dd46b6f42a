/* SPDX-License-Identifier: Apache-2.0 */
#include "mailbox.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define TAG 1

/* One message on its way. Header and payload lie together. */
struct parcel {
    struct parcel *next;
    MPI_Request request;
    struct message message;
    unsigned char payload[];
};

static MPI_Comm channel = MPI_COMM_NULL;
static struct parcel *outgoing;
static struct parcel *incoming; /* at most one: messages of one sender must stay in order */
static size_t incoming_payload;

void mailbox_open(MPI_Comm comm)
{
    channel = comm;
}

bool mailbox_send(int world_rank, const struct message *message, const void *payload)
{
    struct parcel *parcel = malloc(sizeof *parcel + message->payload);

    if (parcel == NULL || message->payload > INT_MAX - sizeof *message) {
        free(parcel);
        return false;
    }
    parcel->message = *message;
    if (message->payload > 0)
        memcpy(parcel->payload, payload, message->payload);
    PMPI_Isend(&parcel->message, (int)(sizeof parcel->message + message->payload), MPI_BYTE, world_rank, TAG, channel,
               &parcel->request);
    parcel->next = outgoing;
    outgoing = parcel;
    return true;
}

static void forget_sent(void)
{
    for (struct parcel **link = &outgoing; *link != NULL;) {
        struct parcel *parcel = *link;
        int sent;
        PMPI_Test(&parcel->request, &sent, MPI_STATUS_IGNORE);
        if (sent) {
            *link = parcel->next;
            free(parcel);
        } else {
            link = &parcel->next;
        }
    }
}

/* Starts to receive the next message, if there is one. The probe also makes the MPI progress while
 * a rank waits in the tree. */
static void accept_next(void)
{
    MPI_Message matched;
    MPI_Status status;
    int found, bytes;

    PMPI_Improbe(MPI_ANY_SOURCE, TAG, channel, &found, &matched, &status);
    if (!found)
        return;
    PMPI_Get_count(&status, MPI_BYTE, &bytes);
    incoming_payload = (size_t)bytes - sizeof incoming->message;
    incoming = malloc(sizeof *incoming + incoming_payload);
    if (incoming == NULL)
        /* A message that was matched cannot be given back, and not even a few kilobytes of memory
         * are left. */
        abort();
    PMPI_Imrecv(&incoming->message, bytes, MPI_BYTE, &matched, &incoming->request);
}

static void *take_payload(const struct parcel *parcel)
{
    void *payload = malloc(incoming_payload > 0 ? incoming_payload : 1);

    if (payload == NULL)
        abort();
    return memcpy(payload, parcel->payload, incoming_payload);
}

void mailbox_poll(void (*handle)(const struct message *message, void *payload))
{
    if (outgoing != NULL)
        forget_sent();
    for (;;) {
        int received;
        if (incoming == NULL)
            accept_next();
        if (incoming == NULL)
            return;
        PMPI_Test(&incoming->request, &received, MPI_STATUS_IGNORE);
        if (!received)
            return;
        struct parcel *parcel = incoming;
        incoming = NULL;
        handle(&parcel->message, take_payload(parcel));
        free(parcel);
    }
}

bool mailbox_idle(void)
{
    return outgoing == NULL;
}
