/* SPDX-License-Identifier: Apache-2.0 */
#include "component.h"

#include "job.h"
#include "module.h"
#include "presence.h"
#include "requests.h"
#include "settings.h"

#include "ompi/communicator/communicator.h"

static int open_component(void)
{
    if (settings_enabled())
        presence_show();
    return OMPI_SUCCESS;
}

static int close_component(void)
{
    requests_close();
    return OMPI_SUCCESS;
}

static int init_query(bool has_progress_threads, bool has_threads)
{
    (void)has_progress_threads, (void)has_threads;
    return settings_enabled() ? OMPI_SUCCESS : OMPI_ERR_NOT_AVAILABLE;
}

static mca_coll_base_module_t *comm_query(struct ompi_communicator_t *comm, int *priority)
{
    if (OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2)
        return NULL;
    *priority = settings_priority();
    return module_new();
}

bool trib_component_is_active(void)
{
    return job_is_own();
}

mca_coll_base_component_t mca_coll_tributary_component = {
    .collm_version = {
        MCA_COLL_BASE_VERSION_2_0_0,
        .mca_component_name = "tributary",
        MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
        .mca_open_component = open_component,
        .mca_close_component = close_component,
        .mca_register_component_params = settings_register,
    },
    .collm_data = {MCA_BASE_METADATA_PARAM_NONE},
    .collm_init_query = init_query,
    .collm_comm_query = comm_query,
};
