//! Programs in places that use UCX.

use std::process::Command;

/// Unless the environment says more, UCX goes over links alone: places are processes of one
/// machine, and it would find ways between them of which a laboratory knows nothing.
pub(crate) fn only_links(command: &mut Command) {
    if std::env::var_os("UCX_TLS").is_none() {
        command.env("UCX_TLS", "tcp,self");
    }
}
