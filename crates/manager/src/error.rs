//! Why a manager does not start.

use std::io;

use crate::records::store::StoreError;
use crate::tenancy::PolicyError;

/// Why a manager could not start, or could not tell that it did.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The topology file cannot be used.
    #[error(transparent)]
    Topology(#[from] trib_topology::TopologyError),
    /// The tenants file cannot be used.
    #[error(transparent)]
    Tenants(#[from] PolicyError),
    /// The file with the constants of predictions cannot be used.
    #[error(transparent)]
    Constants(#[from] trib_topology::predict::ConstantsError),
    /// The credentials or the listening socket cannot be used.
    #[error(transparent)]
    Control(#[from] trib_control::Error),
    /// The file in which jobs are kept cannot be used.
    #[error("{0}: another manager may have it open, or it is another program's; name another file with --state")]
    State(StoreError),
    /// Signal handlers cannot be set.
    #[error("cannot watch for signals: {0}")]
    Signals(io::Error),
    /// A thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}
