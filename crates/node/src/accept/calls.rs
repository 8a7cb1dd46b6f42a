//! Calls to other processes: a logical node connects to the one above as any child does, and a root
//! that has moved tells its other candidates where the tree is.

use std::net::SocketAddr;
use std::thread;

use trib_keys::HelloKey;
use trib_messages::job::NodeGrant;
use trib_messages::via::Via;
use trib_transport::tcp::{Connected, HandshakeError, Identity, connect_from, connect_once};
use trib_wire::{ChildIndex, Placement};

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
    let (key, is_first) = ((grant.job, grant.node), placement == Placement::FIRST);
    let called = match purpose {
        Purpose::Parent => as_child(&grant, &placement, candidate, worker),
        Purpose::Candidate => as_candidate(&grant, &placement, candidate),
    };
    let Some((identity, target, hello)) = called else { return };
    let local = Some(worker.ip).filter(|ip| !ip.is_unspecified());
    let reply = move |outcome| {
        acceptor.post(Request::Called(Box::new(Called { key, placement, purpose, candidate, outcome })));
    };
    let otherwise = reply.clone();
    let calling = move || {
        reply(match is_first {
            // The other process may hear of the job later than this one, because grants reach the
            // nodes of a tree one after the other.
            true => connect_from(local, target, &identity, &hello, patience),
            false => connect_once(local, target, &identity, &hello, patience),
        });
    };
    if let Err(error) = thread::Builder::new().name("calls".into()).spawn(calling) {
        otherwise(Err(error.into()));
    }
}

/// The calling end, the address that it calls, and the key of their handshake.
type Line = (Identity, SocketAddr, HelloKey);

/// A call of a candidate of the node above.
fn as_child(grant: &NodeGrant, placement: &Placement, candidate: usize, worker: &WorkerHandle) -> Option<Line> {
    let parent = grant.parent.as_ref()?;
    let called = parent.candidates.get(candidate)?;
    let (job, epoch, placement) = (grant.job, placement.epoch(grant.epoch), placement.clone());
    let hello = called.key.keys(&placement).hello;
    let ucx = worker.ucx.get().cloned().filter(|_| parent.via == Via::Ucx);
    let identity = Identity {
        job,
        epoch,
        node: parent.node,
        child: parent.child,
        channel: 0,
        mode: grant.limits.mode,
        udp_port: worker.udp_port,
        shares: true,
        ucx,
        placement,
    };
    Some((identity, called.stream, hello))
}

/// A call of another candidate of the node, which is the root.
fn as_candidate(grant: &NodeGrant, placement: &Placement, candidate: usize) -> Option<Line> {
    let (target, hello) = (*grant.candidates.get(candidate)?, grant.root.as_ref()?.hello(placement));
    let (job, epoch, placement) = (grant.job, placement.epoch(grant.epoch), placement.clone());
    let child = ChildIndex::ALL;
    let identity = Identity {
        job,
        epoch,
        node: grant.node,
        child,
        channel: 0,
        mode: grant.limits.mode,
        udp_port: 0,
        shares: true,
        ucx: None,
        placement,
    };
    Some((identity, target, hello))
}
