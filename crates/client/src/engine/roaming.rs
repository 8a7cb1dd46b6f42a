//! A lane without a node: it calls the node's candidates until one answers.
//!
//! Each call blocks, so a thread of its own makes it, without the engine's lock. What became of it
//! goes to the lane (`Lane::called`).

use std::io;
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
    /// A call that no thread could be had for, and when it is tried again.
    put_off: Option<(Nanos, Attempt)>,
    spawn: Spawn,
}

/// Starts a thread that makes a call.
type Spawn = fn(Box<dyn FnOnce() + Send>) -> io::Result<()>;

impl Roaming {
    pub(super) fn new(course: Course, home: (Weak<Shared>, usize)) -> Roaming {
        Roaming { course, home, since: None, waits: None, last: None, put_off: None, spawn }
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
        (self.since, self.put_off) = (None, None);
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
        let attempt = self.course.next_call(now);
        self.call(now, attempt);
    }

    /// When a call that no thread could be had for is tried again.
    pub(super) fn put_off_until(&self) -> Nanos {
        self.put_off.as_ref().map_or(Nanos::NEVER, |(until, _)| *until)
    }

    /// Tries again to make the call that was put off.
    pub(super) fn try_again(&mut self, now: Nanos) {
        if let Some((_, attempt)) = self.put_off.take() {
            self.call(now, attempt);
        }
    }

    fn call(&mut self, now: Nanos, attempt: Attempt) {
        let (way, (home, at)) = (self.course.way.clone(), self.home.clone());
        let Attempt { pause, patience, placement } = attempt.clone();
        let call = move || {
            thread::sleep(pause);
            let outcome = way.call(&placement, patience);
            if let Some(shared) = home.upgrade() {
                shared.called(at, outcome);
            }
        };
        if let Err(cause) = (self.spawn)(Box::new(call)) {
            // The node is not to blame, so it is no failed call, which would lead to another epoch.
            tracing::warn!(%cause, "this process gets no thread to call the node (`ulimit -u`?), and tries again");
            self.put_off = Some((now + PUT_OFF, attempt));
        }
    }
}

fn spawn(call: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    // Signals are for the application's threads.
    let _mask = SignalMask::block_all();
    thread::Builder::new().name("tributary-call".into()).spawn(call).map(drop)
}

/// How often every candidate of the node may be tried before the way counts as lost.
const ROUNDS: usize = 3;
/// How long a node that does not read has to begin again, before it can do harm by taking this rank
/// for dead: nobody listens to it any more then.
const FAREWELL: Duration = Duration::from_secs(60);
/// How long a call waits that no thread could be had for.
const PUT_OFF: Nanos = Nanos::from_millis(500);

#[cfg(test)]
mod tests {
    use trib_keys::JobKey;
    use trib_messages::candidates::Candidate;
    use trib_messages::job::TicketNode;
    use trib_wire::{ChildIndex, JobId, Mode, NodeId};

    use super::*;
    use crate::way::Way;

    /// On the way to a node with two candidates, in a process that gets its threads like this.
    fn roaming(spawn: Spawn) -> Roaming {
        let candidate = |name: &str| Candidate { name: name.into(), stream: ([127, 0, 0, 1], 1).into() };
        let candidates = vec![candidate("n0"), candidate("n1")];
        let way = Way {
            job: JobId(1),
            first: Epoch(1),
            key: JobKey([1; 32]),
            node: TicketNode { node: NodeId(0), candidates, parent: None, in_ranks: false },
            child: ChildIndex(0),
            local: None,
            udp_port: 1,
            mode: Mode::Checked,
            shares: false,
            ucx: None,
            patience: Duration::from_secs(30),
        };
        Roaming { spawn, ..Roaming::new(Course::new(way, Nanos(0)), (Weak::new(), 0)) }
    }

    #[test]
    fn a_call_that_gets_no_thread_is_tried_again_until_the_lane_is_weary() {
        let mut roaming = roaming(|_| Err(io::ErrorKind::WouldBlock.into()));
        assert_eq!(roaming.put_off_until(), Nanos::NEVER);
        roaming.set_out(Nanos(7), None);
        let (mut now, mut tries) = (Nanos(7), 1);
        while !roaming.is_weary(now) {
            assert!(roaming.put_off_until() > now && roaming.put_off_until() < now + Nanos::from_millis(1000));
            now = roaming.put_off_until();
            roaming.try_again(now);
            tries += 1;
        }
        assert!(tries > 30 && now <= Nanos::from_millis(31_000), "{tries} tries, until {now:?}");
        assert_eq!(roaming.course.epoch(), Epoch(1), "the node is not to blame");
        roaming.arrive();
        assert_eq!(roaming.put_off_until(), Nanos::NEVER);
    }

    #[test]
    fn a_call_that_gets_a_thread_in_the_end_is_put_off_no_more() {
        let mut roaming = roaming(|_| Err(io::ErrorKind::WouldBlock.into()));
        roaming.set_out(Nanos(7), None);
        roaming.spawn = |_| Ok(());
        roaming.try_again(roaming.put_off_until());
        assert_eq!(roaming.put_off_until(), Nanos::NEVER);
    }
}
