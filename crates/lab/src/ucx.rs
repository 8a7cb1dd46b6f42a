//! Programs in a laboratory whose links go by UCX.

use std::process::Command;

use crate::topology::Topology;

/// Unless the environment says more, UCX goes over links alone: places are processes of one
/// machine, and it would find ways between them of which a laboratory knows nothing.
pub(crate) fn only_links(topology: &Topology, command: &mut Command) {
    if topology.is_over_ucx() && std::env::var_os("UCX_TLS").is_none() {
        command.env("UCX_TLS", "tcp,self");
    }
}
