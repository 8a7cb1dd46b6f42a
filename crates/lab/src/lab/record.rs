//! What a later command needs to know of a laboratory that came up.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Lifetime;
use crate::topology::Topology;

/// The record is written when the whole laboratory is ready.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// What ranks and tools need in `TRIB_MANAGER`.
    pub(crate) manager: String,
    /// What it is made of.
    pub(crate) topology: Topology,
    /// The daemons, the manager first.
    pub(crate) daemons: Vec<Daemon>,
    /// The `trib` binary that the daemons run.
    pub(crate) program: PathBuf,
    /// When it ends.
    pub(crate) lifetime: Lifetime,
}

impl Record {
    /// The address on which a daemon listens.
    pub(crate) fn address(&self, daemon: &str) -> Option<SocketAddr> {
        self.daemons.iter().find_map(|known| (known.name == daemon).then_some(known.address))
    }
}

/// A daemon as others know it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Daemon {
    /// Its name.
    pub(crate) name: String,
    /// The address on which it said that it listens. It is started again there after it has ended.
    pub(crate) address: SocketAddr,
}
