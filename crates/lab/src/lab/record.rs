//! What a later command needs to know of a laboratory that came up.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::topology::Topology;

/// Written when all of it is ready.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// What ranks and tools need in `TRIB_MANAGER`.
    pub(crate) manager: String,
    /// What it is made of.
    pub(crate) topology: Topology,
    /// Names of the daemons, the manager first.
    pub(crate) daemons: Vec<String>,
    /// The `trib` binary that the daemons run.
    pub(crate) program: PathBuf,
}
