//! Why a manager does not start.

use std::io;

use crate::store::StoreError;
use crate::tenancy::PolicyError;

/// A manager that could not start or tell that it did.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The topology file.
    #[error(transparent)]
    Topology(#[from] trib_topology::TopologyError),
    /// The tenants file.
    #[error(transparent)]
    Tenants(#[from] PolicyError),
    /// The file with constants of predictions.
    #[error(transparent)]
    Constants(#[from] trib_topology::predict::ConstantsError),
    /// Credentials or the listening socket.
    #[error(transparent)]
    Control(#[from] trib_control::Error),
    /// The file in which jobs are kept.
    #[error("{0}: another manager may have it open, or it is another program's; name another file with --state")]
    State(StoreError),
    /// Signal handlers.
    #[error("cannot watch for signals: {0}")]
    Signals(io::Error),
    /// The supervisor's socket.
    #[error("cannot tell the supervisor at $NOTIFY_SOCKET: {0}")]
    Notify(io::Error),
    /// A thread.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}
