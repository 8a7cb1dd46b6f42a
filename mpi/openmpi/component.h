/* SPDX-License-Identifier: Apache-2.0
 *
 * mca_coll_tributary.so: the tree as one of Open MPI's components for collectives. Open MPI asks it
 * for a module for each communicator that is made, and calls the module's functions from C, C++ and
 * Fortran alike.
 */
#ifndef TRIB_COLL_COMPONENT_H
#define TRIB_COLL_COMPONENT_H

/* Open MPI's inner headers want its configuration first. */
#include "ompi_config.h"

#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/coll.h"

__attribute__((visibility("default"))) extern mca_coll_base_component_t mca_coll_tributary_component;

/* For libtrib_mpi.so, which may be preloaded as well: whether this component has a job. */
__attribute__((visibility("default"))) bool trib_component_is_active(void);

#endif
