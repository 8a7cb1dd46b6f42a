//! A lane without a node: it calls the node's candidates until one answers.
//!
//! Each call blocks, so a thread of its own makes it, without the engine's lock. What became of it
//! goes to the lane (`Lane::called`).

use std::sync::Weak;
use std::thread;
use std::time::Duration;

use trib_proto::Nanos;
use trib_transport::tcp::StreamSocket;
use trib_wire::Placement;

use super::Shared;
use super::helper::SignalMask;
use crate::way::Way;

/// Where the lane's tree is, and how the lane gets there.
pub(super) struct Roaming {
    way: Way,
    placement: Placement,
    /// The engine, and the number of the lane in it.
    home: (Weak<Shared>, usize),
    /// The port at which the lane takes datagrams.
    udp_port: u16,
    /// Since when the lane has been without a node.
    since: Option<Nanos>,
    /// The connection to the last node. Its kernel may still have to read what was said last.
    last: Option<StreamSocket>,
}

impl Roaming {
    pub(super) fn new(way: Way, placement: Placement, home: (Weak<Shared>, usize), udp_port: u16) -> Roaming {
        Roaming { way, placement, home, udp_port, since: None, last: None }
    }

    /// Where the tree is, as far as this rank knows.
    pub(super) fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Another one knows of this placement.
    pub(super) fn learn(&mut self, placement: &Placement) {
        self.placement = self.placement.with(placement);
    }

    /// The node is not where it was.
    pub(super) fn give_node_up(&mut self) {
        self.placement = self.placement.without(self.way.node);
    }

    /// Whether the lane has been without a node for longer than the program wants to wait.
    pub(super) fn is_weary(&self, now: Nanos) -> bool {
        let patience = Nanos(self.way.patience.as_nanos().min(u64::MAX.into()) as u64);
        self.since.is_some_and(|since| now.since(since) > patience)
    }

    /// The lane has a node, or will never have one again.
    pub(super) fn arrive(&mut self) {
        self.since = None;
    }

    /// Calls the node where it is now. `last` is the connection that has ended, if one has.
    pub(super) fn set_out(&mut self, now: Nanos, last: Option<StreamSocket>) {
        let pause = if last.is_some() { Duration::ZERO } else { PAUSE };
        self.since = self.since.or(Some(now));
        self.last = last.or(self.last.take());
        let (way, placement, udp_port) = (self.way.clone(), self.placement.clone(), self.udp_port);
        let (home, at) = self.home.clone();
        let call = move || {
            thread::sleep(pause);
            let outcome = way.call(&placement, udp_port, PATIENCE);
            if let Some(shared) = home.upgrade() {
                shared.called(at, outcome);
            }
        };
        // Signals are for the application's threads.
        let _mask = SignalMask::block_all();
        if let Err(cause) = thread::Builder::new().name("tributary-call".into()).spawn(call) {
            tracing::error!(%cause, "no thread can be had to call the node");
        }
    }
}

/// How long one candidate may take to answer.
const PATIENCE: Duration = Duration::from_millis(1000);
/// Before another candidate is called.
const PAUSE: Duration = Duration::from_millis(20);
