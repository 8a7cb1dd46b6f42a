//! A lane without a node: it calls the node's candidates until one answers.
//!
//! Each call blocks, so a thread of its own makes it, without the engine's lock. What became of it
//! goes to the lane (`Lane::called`).

use std::sync::Weak;
use std::thread;
use std::time::Duration;

use trib_proto::Nanos;
use trib_transport::tcp::{Parting, StreamSocket, say};
use trib_wire::Epoch;

use super::Shared;
use super::helper::SignalMask;
use super::operation::Outgoing;
use super::wait::nanos;
use crate::way::{Attempt, Course};

/// Where the lane's tree is, and how the lane gets there.
pub(super) struct Roaming {
    pub(super) course: Course,
    /// The engine, and the number of the lane in it.
    home: (Weak<Shared>, usize),
    /// Since when the lane has been without a node.
    since: Option<Nanos>,
    /// Since when groups of the lane have waited to be whole again, and the epoch before.
    waits: Option<(Nanos, Epoch)>,
    /// The connection to the last node. Its kernel may still have to read what was said last.
    last: Option<StreamSocket>,
}

impl Roaming {
    pub(super) fn new(course: Course, home: (Weak<Shared>, usize)) -> Roaming {
        Roaming { course, home, since: None, waits: None, last: None }
    }

    /// Whether the lane has been without a node for longer than the program wants to wait.
    pub(super) fn is_weary(&self, now: Nanos) -> bool {
        self.since.is_some_and(|since| now.since(since) > self.patience())
    }

    /// Whether the lane has a node that leads nowhere: its groups have not been whole again for
    /// longer than the program wants to wait, and the nodes have moved again and again meanwhile.
    /// Where they have not, a member is late, which the nodes judge within `dead_after`.
    pub(super) fn is_lost(&self, now: Nanos, dead_after: Nanos) -> bool {
        let Some((since, before)) = self.waits else { return false };
        let (waited, moves) = (now.since(since), self.course.epoch().0.saturating_sub(before.0));
        let is_astray = moves as usize >= ROUNDS * self.course.way.node.candidates.len();
        waited > self.patience() && is_astray || waited > self.patience() + dead_after
    }

    /// Whether groups may wait to be whole again.
    pub(super) fn is_waiting(&self) -> bool {
        self.waits.is_some()
    }

    /// No group waits any more.
    pub(super) fn end_waiting(&mut self) {
        self.waits = None;
    }

    fn patience(&self) -> Nanos {
        nanos(self.course.way.patience)
    }

    /// The lane has a node, or will never have one again.
    pub(super) fn arrive(&mut self) {
        self.course.on_arrived();
        self.since = None;
    }

    /// The last frames wait until the node reads. If it does, it must not take the end of the
    /// connection for this rank's death.
    pub(super) fn say_later(&self, parting: Parting<Outgoing>) {
        // Signals are for the application's threads.
        let _mask = SignalMask::block_all();
        drop(say(vec![parting], FAREWELL));
    }

    /// Calls the node where it is now. `last` is the connection that has ended, if one has.
    pub(super) fn set_out(&mut self, now: Nanos, last: Option<StreamSocket>) {
        self.since = self.since.or(Some(now));
        self.waits = self.waits.or(Some((now, self.course.epoch())));
        self.last = last.or(self.last.take());
        let (way, (home, at)) = (self.course.way.clone(), self.home.clone());
        let Attempt { pause, patience, placement } = self.course.next_call(now);
        let call = move || {
            thread::sleep(pause);
            let outcome = way.call(&placement, patience);
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

/// How often every candidate of the node may be tried before the way counts as lost.
const ROUNDS: usize = 3;
/// How long a node that does not read has to begin again, before it can do harm by taking this rank
/// for dead: nobody listens to it any more then.
const FAREWELL: Duration = Duration::from_secs(60);
