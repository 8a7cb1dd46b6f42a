//! The way of a rank to its node on one lane, wherever the node is.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use trib_messages::candidates::Candidate;
use trib_transport::tcp::handshake::Identity;
use trib_transport::tcp::{HandshakeError, StreamSocket, connect_from};
use trib_transport::{EdgeKeys, edge_keys};
use trib_wire::auth::JobKey;
use trib_wire::{ChildIndex, Epoch, JobId, NodeId, Placement};

/// What a rank needs to call its node.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) job: JobId,
    /// The epoch of the first placement.
    pub(crate) first: Epoch,
    pub(crate) key: JobKey,
    pub(crate) node: NodeId,
    pub(crate) child: ChildIndex,
    /// The address from which it calls, if that is prescribed.
    pub(crate) local: Option<IpAddr>,
    /// The processes that may host the node, at least one.
    pub(crate) candidates: Vec<Candidate>,
    /// How long it may be without a node.
    pub(crate) patience: Duration,
}

/// A connection to the node.
pub(crate) struct Connection {
    pub(crate) epoch: Epoch,
    pub(crate) keys: EdgeKeys,
    pub(crate) stream: StreamSocket,
    /// Where the node takes datagrams.
    pub(crate) datagrams: SocketAddr,
}

impl Way {
    /// The process that hosts the node in a placement.
    pub(crate) fn host(&self, placement: &Placement) -> &Candidate {
        &self.candidates[placement.candidate(self.node, self.candidates.len())]
    }

    /// Calls the node where it is in a placement. The rank takes its datagrams at `udp_port`. It
    /// blocks for at most `patience`.
    pub(crate) fn call(
        &self,
        placement: &Placement,
        udp_port: u16,
        patience: Duration,
    ) -> Result<Connection, HandshakeError> {
        let epoch = placement.epoch(self.first);
        let keys = edge_keys(&self.key, self.job, epoch, self.node, self.child);
        let identity = Identity {
            job: self.job,
            epoch,
            node: self.node,
            child: self.child,
            channel: 0,
            udp_port,
            placement: placement.clone(),
        };
        let open = connect_from(self.local, self.host(placement).stream, &identity, &keys.hello, patience)?;
        Ok(Connection { epoch, keys, stream: open.socket, datagrams: open.datagrams })
    }
}
