//! Calls to other processes: a logical node connects to the one above as any child does, and a root
//! that has moved tells its other candidates where the tree is.

use std::net::SocketAddr;
use std::thread;

use trib_transport::edge_keys;
use trib_transport::tcp::{Connected, HandshakeError, Identity, connect_from, connect_once};
use trib_wire::{ChildIndex, NodeId, Placement};

use super::Request;
use super::registry::{Call, Purpose};
use crate::mailbox::Mailbox;
use crate::worker::{Key, WorkerHandle};

/// What became of a call.
pub(crate) struct Called {
    /// The logical node that called.
    pub(crate) key: Key,
    /// The placement in which it did.
    pub(crate) placement: Placement,
    pub(crate) purpose: Purpose,
    /// The position of the called process among the candidates.
    pub(crate) candidate: usize,
    pub(crate) outcome: Result<Connected, HandshakeError>,
}

/// Makes a call. A thread of its own waits for the other process; it ends with the call, and the
/// acceptor gets the outcome.
pub(super) fn make(call: Call, worker: &WorkerHandle, acceptor: Mailbox<Request>) {
    let Call { grant, placement, candidate, purpose, patience, .. } = call;
    let (key, epoch, is_first) = ((grant.job, grant.node), placement.epoch(grant.epoch), placement == Placement::FIRST);
    let above = grant.parent.as_ref().map(|parent| (parent.node, parent.child, parent.candidates.get(candidate)));
    let called = match purpose {
        Purpose::Parent => above.and_then(|(node, child, target)| Some((node, child, *target?, worker.udp_port))),
        Purpose::Candidate => grant.candidates.get(candidate).map(|target| (grant.node, ChildIndex::ALL, *target, 0)),
    };
    let Some((node, child, target, udp_port)): Option<(NodeId, ChildIndex, SocketAddr, u16)> = called else { return };
    let local = Some(worker.ip).filter(|ip| !ip.is_unspecified());
    let keys = edge_keys(&grant.key, grant.job, epoch, node, child);
    let identity = Identity { job: grant.job, epoch, node, child, channel: 0, udp_port, placement: placement.clone() };
    let reply = move |outcome| {
        acceptor.post(Request::Called(Box::new(Called { key, placement, purpose, candidate, outcome })));
    };
    let otherwise = reply.clone();
    let calling = move || {
        reply(match is_first {
            // The other process may hear of the job later than this one, because grants reach the
            // nodes of a tree one after the other.
            true => connect_from(local, target, &identity, &keys.hello, patience),
            false => connect_once(local, target, &identity, &keys.hello, patience),
        });
    };
    if let Err(error) = thread::Builder::new().name("calls".into()).spawn(calling) {
        otherwise(Err(error.into()));
    }
}
