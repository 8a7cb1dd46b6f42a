//! Why a manager does not start.

use std::io;

/// A manager that could not start or tell that it did.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The topology file.
    #[error(transparent)]
    Topology(#[from] trib_topology::TopologyError),
    /// Credentials or the listening socket.
    #[error(transparent)]
    Control(#[from] trib_control::Error),
    /// The operating system's random source.
    #[error("cannot read random bytes for job keys: {0}")]
    Random(io::Error),
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
