/* SPDX-License-Identifier: Apache-2.0 */
#include "component.h"

#include "presence.h"

#include "ompi/communicator/communicator.h"
#include "ompi/proc/proc.h"
#include "opal/mca/pmix/pmix.h"

/* Grows when libraries of two versions cannot work in one program. */
#define VERSION 2

static char KEY[] = "tributary.coll";

void presence_show(void)
{
    uint32_t version = VERSION;
    int status;

    OPAL_MODEX_SEND_VALUE(status, OPAL_PMIX_GLOBAL, KEY, &version, OPAL_UINT32);
    (void)status; /* who does not hear of this process counts it as lacking */
}

int presence_find_lacking(void)
{
    ompi_communicator_t *world = &ompi_mpi_comm_world.comm;

    for (int rank = 0; rank < ompi_comm_size(world); rank++) {
        ompi_proc_t *process = ompi_comm_peer_lookup(world, rank);
        uint32_t version = 0, *to = &version;
        int status;
        OPAL_MODEX_RECV_VALUE_IMMEDIATE(status, KEY, &process->super.proc_name, &to, OPAL_UINT32);
        if (status != OPAL_SUCCESS || version != VERSION)
            return rank;
    }
    return -1;
}
