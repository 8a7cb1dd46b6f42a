//! The way of a rank to its node on one lane, wherever the node is.

use std::net::IpAddr;
use std::time::Duration;

use trib_keys::{EdgeKeys, JobKey};
use trib_messages::candidates::Candidate;
use trib_messages::job::TicketNode;
use trib_proto::Nanos;
use trib_proto::placing::{Caller, View};
use trib_transport::tcp::handshake::Identity;
use trib_transport::tcp::{Connected, HandshakeError, connect_from, connect_once};
use trib_transport::ucx::UcxWorker;
use trib_wire::{ChildIndex, Epoch, JobId, Mode, Placement};

/// What a rank needs to call its node.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) job: JobId,
    /// The epoch of the first placement.
    pub(crate) first: Epoch,
    pub(crate) key: JobKey,
    pub(crate) node: TicketNode,
    pub(crate) child: ChildIndex,
    /// The address from which it calls, if that is prescribed.
    pub(crate) local: Option<IpAddr>,
    /// The port at which it takes datagrams.
    pub(crate) udp_port: u16,
    /// The mode of the job's data path.
    pub(crate) mode: Mode,
    /// Whether it may share memory with a node in a process of its host.
    pub(crate) shares: bool,
    /// What the connection goes through if it is one over UCX; nothing else does.
    pub(crate) ucx: Option<UcxWorker>,
    /// How long it may be without a node.
    pub(crate) patience: Duration,
}

/// A connection to the node.
pub(crate) struct Connection {
    pub(crate) epoch: Epoch,
    pub(crate) keys: EdgeKeys,
    pub(crate) open: Connected,
}

impl Way {
    /// Calls the node where it is in a placement. It blocks for at most `patience`. In the first
    /// placement it tries again until then, because the node may not have heard of the job yet.
    pub(crate) fn call(&self, placement: &Placement, patience: Duration) -> Result<Connection, HandshakeError> {
        let (node, epoch) = (self.node.node, placement.epoch(self.first));
        let candidate = placement.candidate(node, self.node.candidates.len()) as u16;
        let keys = self.key.node(self.job, node, candidate).edge(self.child, 0).keys(placement);
        let identity = Identity {
            job: self.job,
            epoch,
            node,
            child: self.child,
            channel: 0,
            mode: self.mode,
            udp_port: self.udp_port,
            shares: self.shares,
            ucx: self.ucx.clone(),
            placement: placement.clone(),
        };
        let target = self.node.hosted(placement).stream;
        let open = match *placement == Placement::FIRST {
            true => connect_from(self.local, target, &identity, &keys.hello, patience),
            false => connect_once(self.local, target, &identity, &keys.hello, patience),
        }?;
        Ok(Connection { epoch, keys, open })
    }
}

/// How far a rank is on its way.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    pub(crate) way: Way,
    view: View,
    caller: Caller,
}

/// A call that is to be made.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    /// How long from now.
    pub(crate) pause: Duration,
    /// How long it may take then.
    pub(crate) patience: Duration,
    /// Where the nodes are, as far as this rank knows.
    pub(crate) placement: Placement,
}

impl Course {
    /// The beginning of a way. The first call is due at once.
    pub(crate) fn new(way: Way, now: Nanos) -> Course {
        let caller = Caller::new(way.node.node, way.node.candidates.len(), now);
        Course { view: View::new(way.first), way, caller }
    }

    /// Where the nodes are, as far as this rank knows.
    pub(crate) fn placement(&self) -> &Placement {
        self.view.placement()
    }

    /// The epoch of that placement.
    pub(crate) fn epoch(&self) -> Epoch {
        self.view.epoch()
    }

    /// The process that is to host the node.
    pub(crate) fn host(&self) -> &Candidate {
        self.way.node.hosted(self.placement())
    }

    /// The next call. What becomes of it is told to `on_arrived` or `on_failed`.
    pub(crate) fn next_call(&mut self, now: Nanos) -> Attempt {
        let at = self.caller.deadline().max(now);
        self.caller.on_timer(at, &mut self.view);
        let (pause, patience) = (at.since(now), self.caller.deadline().since(at));
        let placement = self.placement().clone();
        Attempt { pause: Duration::from_nanos(pause.0), patience: Duration::from_nanos(patience.0), placement }
    }

    /// The node has answered.
    pub(crate) fn on_arrived(&mut self) {
        self.caller.on_accepted();
    }

    /// Something has come from the node.
    pub(crate) fn on_fruit(&mut self) {
        self.caller.on_fruit();
    }

    /// A call has failed.
    pub(crate) fn on_failed(&mut self, now: Nanos, cause: &HandshakeError) {
        match cause {
            HandshakeError::Moved(placement) => self.on_told(now, placement),
            _ => drop(self.caller.on_failed(now, &mut self.view)),
        }
    }

    /// The node has said that the tree is elsewhere.
    pub(crate) fn on_told(&mut self, now: Nanos, placement: &Placement) {
        self.view.told(placement);
        self.caller.on_moved(now);
    }

    /// The node is gone.
    pub(crate) fn on_lost(&mut self, now: Nanos) {
        self.caller.on_lost(now, &mut self.view);
    }
}
