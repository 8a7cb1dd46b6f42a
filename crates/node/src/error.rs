//! Why a node cannot run.

use std::io;
use std::net::SocketAddr;

/// A failure of the whole node. What happens to one job or one connection is logged and counted instead.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller's configuration.
    #[error("a node needs at least one worker thread")]
    NoWorkers,
    /// The caller's configuration.
    #[error("a node needs at least one address to listen at")]
    NoAddress,
    /// The caller's configuration, or another process.
    #[error("cannot listen at {address}: {cause}; is another node running there?")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        cause: io::Error,
    },
    /// This host.
    #[error("cannot start the node's threads and sockets: {0}")]
    Thread(io::Error),
    /// This program.
    #[error("a thread of the node has ended; the log says why, please report it")]
    Broken,
    /// The manager, or this node's credentials.
    #[error("the manager did not take the node in: {0}")]
    Control(trib_control::Error),
}
