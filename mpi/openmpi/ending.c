/* SPDX-License-Identifier: Apache-2.0 */
#include "component.h"

#include "ending.h"
#include "job.h"
#include "leaving.h"
#include "profile.h"
#include "requests.h"

#include "ompi/attribute/attribute.h"
#include "ompi/communicator/communicator.h"

static int end(MPI_Comm self, int key, void *value, void *extra)
{
    (void)self, (void)key, (void)value, (void)extra;
    if (job_is_own()) {
        /* A rank that leaves breaks trees that others are still making. */
        requests_await_all_trees();
        leaving_await();
        profile_split();
        job_meet_at_end();
        requests_close();
        job_leave();
    }
    return MPI_SUCCESS;
}

static int copy_nothing(MPI_Comm from, int key, void *extra, void *value, void *copied, int *is_copied, MPI_Comm to)
{
    (void)from, (void)key, (void)extra, (void)value, (void)copied, (void)to;
    *is_copied = 0;
    return MPI_SUCCESS;
}

void ending_watch(void)
{
    ompi_communicator_t *self = &ompi_mpi_comm_self.comm;
    ompi_attribute_fn_ptr_union_t copy = {.attr_communicator_copy_fn = copy_nothing};
    ompi_attribute_fn_ptr_union_t delete = {.attr_communicator_delete_fn = end};
    int key;

    if (ompi_attr_create_keyval(COMM_ATTR, copy, delete, &key, NULL, 0, NULL) == OMPI_SUCCESS)
        ompi_attr_set_c(COMM_ATTR, self, &self->c_keyhash, key, NULL, false);
}
