/* SPDX-License-Identifier: Apache-2.0 */
#include "component.h"

#include "hcoll.h"
#include "runtime.h"
#include "settings.h"

#include "opal/mca/base/mca_base_var.h"

#include <stdlib.h>
#include <string.h>

static bool enabled;
static int enabled_index;
/* Above those that Open MPI 4.1 has, of which the highest has 90. */
static int priority = 95;

/* Parameters that stand for a variable of the environment. Without one, the variable counts. */
static struct alias {
    const char *parameter, *variable, *meaning;
    char *value;
} ALIASES[] = {
    {"mode", "TRIB_MPI",
     "on: through the tree where that is worth while; force: wherever the tree can do it; require: or the program ends; off; "
     "report: count only", NULL},
    {"manager", "TRIB_MANAGER", "the fabric to join", NULL},
    {"min_bytes", "TRIB_MPI_MIN_BYTES", "shorter vectors stay with the MPI; K, M and G may follow the digits", NULL},
    {"max_bytes", "TRIB_MPI_MAX_BYTES", "longer vectors stay with the MPI; K, M and G may follow the digits", NULL},
    {"min_ranks", "TRIB_MPI_MIN_RANKS", "communicators of fewer ranks stay with the MPI", NULL},
    {"min_hosts", "TRIB_MPI_MIN_HOSTS", "communicators on fewer hosts stay with the MPI", NULL},
    {"min_calls", "TRIB_MPI_MIN_CALLS", "communicators but MPI_COMM_WORLD get their tree with the call for one of this number", NULL},
    {"disable", "TRIB_MPI_DISABLE", "collectives that stay with the MPI: MPI_Bcast,MPI_Iallreduce,...", NULL},
    {"sums", "TRIB_SUMS",
     "sums of floating-point numbers: plain, in the order of the tree; fixed or exact, the same bits whatever the order; int8 is not for MPI", NULL},
    {"timeout_ms", "TRIB_TIMEOUT_MS", "time limit for joining the fabric, in milliseconds", NULL},
    {"report", "TRIB_MPI_REPORT", "any value but 0: rank 0 prints in MPI_Finalize what went through the tree, and why the rest did not", NULL},
    {"profile", "TRIB_MPI_PROFILE", "any value but 0: the report tells waiting for the last rank from the rest", NULL},
    {"report_file", "TRIB_MPI_REPORT_FILE", "rank 0 writes that there as JSON", NULL},
};
#define ALIAS_COUNT (sizeof ALIASES / sizeof *ALIASES)

int settings_register(void)
{
    const mca_base_component_t *component = &mca_coll_tributary_component.collm_version;

    enabled_index = mca_base_component_var_register(
        component, "enable", "1: collectives go through the aggregation tree of a Tributary fabric", MCA_BASE_VAR_TYPE_BOOL, NULL, 0, 0,
        OPAL_INFO_LVL_1, MCA_BASE_VAR_SCOPE_READONLY, &enabled);
    (void)mca_base_component_var_register(component, "priority", "priority among the components for collectives",
                                          MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_9, MCA_BASE_VAR_SCOPE_READONLY, &priority);
    for (size_t i = 0; i < ALIAS_COUNT; i++)
        (void)mca_base_component_var_register(component, ALIASES[i].parameter, ALIASES[i].meaning, MCA_BASE_VAR_TYPE_STRING, NULL, 0,
                                              0, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_READONLY, &ALIASES[i].value);
    return OMPI_SUCCESS;
}

/* HCOLL's setting acts where ours is not given. */
bool settings_enabled(void)
{
    const char *text = getenv("OMPI_MCA_coll_tributary_enable");
    mca_base_var_source_t source = MCA_BASE_VAR_SOURCE_DEFAULT;

    (void)mca_base_var_get_value(enabled_index, NULL, &source, NULL);
    if (source == MCA_BASE_VAR_SOURCE_DEFAULT || (text != NULL && text[0] == '\0'))
        return hcoll_enabled() == 1;
    return enabled;
}

int settings_priority(void)
{
    return priority;
}

const char *runtime_setting(const char *name)
{
    for (size_t i = 0; i < ALIAS_COUNT; i++)
        if (strcmp(ALIASES[i].variable, name) == 0 && ALIASES[i].value != NULL && ALIASES[i].value[0] != '\0')
            return ALIASES[i].value;
    return getenv(name);
}
