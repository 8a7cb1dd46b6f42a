/* SPDX-License-Identifier: Apache-2.0 */
#include "aside.h"

#include "component_active.h"
#include "launcher.h"
#include "notice.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* What TRIB_MPI says in this process, or HCOLL's name for the same: ranks cannot agree here. */
static const char *mode(void)
{
    static const char *const OF_HCOLL[] = {"off", "on", "force", "require", "require"};
    const char *own = getenv("TRIB_MPI"), *hcoll = getenv("HCOLL_ENABLE_SHARP");

    if (own != NULL && own[0] != '\0')
        return own;
    const char *enabled = getenv("OMPI_MCA_coll_hcoll_enable");
    if (enabled != NULL && (strcmp(enabled, "0") == 0 || strcmp(enabled, "false") == 0))
        return "off";
    bool is_level = hcoll != NULL && hcoll[0] >= '0' && hcoll[0] <= '4' && hcoll[1] == '\0';
    return is_level ? OF_HCOLL[hcoll[0] - '0'] : "on";
}

void aside_say(const char *why)
{
    static const struct timespec spoken_for = {.tv_sec = 1};
    bool speaks = launcher_is_first_rank(), ends = strcmp(mode(), "require") == 0;

    if (strcmp(mode(), "off") == 0 || component_is_active())
        return;
    /* The launcher ends the others when the first one has ended. If that one has what another
     * lacks, this other one says so itself. */
    if (ends && !speaks)
        nanosleep(&spoken_for, NULL);
    if (ends || speaks)
        notice("the collectives of this program stay with the MPI%s: %s", ends ? ", and TRIB_MPI=require ends it" : "", why);
    if (!ends)
        return;
    notice_wait_until_read();
    /* What MPI_Abort needs has another form in each MPI; a launcher ends the program when one of
     * its processes fails. */
    _exit(EXIT_FAILURE);
}
