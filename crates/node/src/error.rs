//! Why a node cannot run.

use std::io;
use std::net::SocketAddr;

/// A failure of the whole node. What happens to one job or one connection is only logged and
/// counted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller's configuration is wrong.
    #[error("a node needs at least one worker thread")]
    NoWorkers,
    /// The caller's configuration is wrong.
    #[error("a node needs at least one address to listen at")]
    NoAddress,
    /// The caller's configuration is wrong, or another process has the address.
    #[error("cannot listen at {address}: {cause}; is another node running there?")]
    Listen {
        /// The address at which it was to listen.
        address: SocketAddr,
        /// The system's reason.
        cause: io::Error,
    },
    /// This host lacks threads, sockets or descriptors.
    #[error("cannot start the node's threads and sockets: {0}")]
    Thread(io::Error),
    /// This program has an error.
    #[error("a thread of the node has ended; the log says why, please report it")]
    Broken,
    /// The manager refused the node, or this node's credentials are not those of the fabric.
    #[error("the manager did not take the node in: {0}")]
    Control(trib_control::Error),
}
