/* SPDX-License-Identifier: Apache-2.0 */
#include "component.h"

#include "presence.h"

#include "ompi/communicator/communicator.h"
#include "ompi/proc/proc.h"
#include "opal/mca/pmix/pmix.h"

#include <stdbool.h>

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

/* Returns 0 for a process that has shown nothing. Open MPI brings everybody's data to everybody
 * before this is called, so what is not here does not exist. Where a setting lets it fetch them
 * when they are asked for, this asks the process's host, and waits until the process has shown what
 * it has. That ends where it has shown nothing, too: PMIx 4 waits 2 s for one on the same host. */
static uint32_t version_of(const opal_process_name_t *process)
{
    uint32_t version = 0, *to = &version;
    int status;

    if (opal_pmix_base_async_modex || !opal_pmix_collect_all_data) {
        OPAL_MODEX_RECV_VALUE(status, KEY, process, &to, OPAL_UINT32);
    } else {
        OPAL_MODEX_RECV_VALUE_IMMEDIATE(status, KEY, process, &to, OPAL_UINT32);
    }
    return status == OPAL_SUCCESS ? version : 0;
}

/* The lowest rank from `first` on that has it, or that lacks it; -1 if there is none. */
static int find(int first, bool has_it)
{
    ompi_communicator_t *world = &ompi_mpi_comm_world.comm;

    for (int rank = first; rank < ompi_comm_size(world); rank++)
        if ((version_of(&ompi_comm_peer_lookup(world, rank)->super.proc_name) == VERSION) == has_it)
            return rank;
    return -1;
}

int presence_find_lacking(void)
{
    return find(0, false);
}

int presence_find_first(int lacking)
{
    return lacking > 0 ? 0 : find(1, true);
}
