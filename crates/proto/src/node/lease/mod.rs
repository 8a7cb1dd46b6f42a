//! A group's lease on a stream context at one node.
//!
//! ```text
//!   Idle --Grant--> Granted --all have stopped--> Stopping --LeaseEnd(X)--> Ending --drained to X--> Idle
//! ```
//! `phase` is this diagram as a table. `locking` is what the node does at each step.
//!
//! Asking holds nothing: the context is taken when the grant passes through. Every gathering (intents, stops,
//! releases) is a barrier over the children that take part.
//!
//! A lease without a limit lets a rank stream an operation that others have not posted yet; if those others wait for
//! another group's lock first, that would be hold-and-wait. So a lease ends at the *least* progress of its ranks, up to
//! which all have posted and which therefore finishes by itself; what some had sent beyond is dropped and sent again
//! under the next lease. It cannot have been folded at the group's root, nor seen by anybody. `StopAt` travels in turn with
//! the segments of its group, and nothing follows it upward until the end is known: so nothing dropped can arrive late.

use trib_wire::{ChildIndex, Fault, Header, Kind};

mod locking;
mod phase;

use crate::Path;
use crate::node::at::At;
use crate::node::info::GroupInfo;
use crate::node::output::{NodeOutput, Note, Payload, Target};
pub(super) use phase::Phase;
use phase::{Event, transition};
use trib_wire::header::{FLAG_IN_TURN, FLAG_STREAM};

/// What the caller has to do after an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::node) enum Step {
    Nothing,
    /// Everybody below wants to stream: pass on, or decide if this is the root of the tree.
    Ask,
    /// Everybody below has said how far it is; all have started what lies before `end`.
    Stop {
        end: u64,
    },
    /// The context is free here and below.
    Released,
}

#[derive(Default)]
pub(in crate::node) struct Lease {
    /// Number of the current or last lease.
    number: u64,
    pub(in crate::node) phase: Phase,
    /// Children that want lease `number + 1`.
    intents: u64,
    /// Children that have said how far they are in lease `number`, and the least of it.
    stops: u64,
    stop_at: u64,
    /// Where the lease ends, while it does.
    end: u64,
    /// Inner children that have released lease `number`.
    released: u64,
}

impl Lease {
    /// Whether this segment may be streamed now.
    pub(in crate::node) fn covers(&self, seq: u64) -> bool {
        match self.phase {
            Phase::Idle => false,
            Phase::Granted | Phase::Stopping => true,
            Phase::Ending => seq < self.end,
        }
    }

    pub(in crate::node) fn holds_context(&self) -> bool {
        self.phase != Phase::Idle
    }

    /// Children that wait for the lock, if not all do: the others are what they wait for.
    pub(in crate::node) fn waiting(&self) -> u64 {
        self.intents
    }

    pub(in crate::node) fn on_intent(
        &mut self,
        at: &At<'_, impl NodeOutput>,
        position: usize,
        header: &Header,
    ) -> Result<Step, Fault> {
        let bit = at.info.bit(position);
        if header.seq != self.number + 1 || self.intents & bit != 0 {
            return Err(at.violation(position));
        }
        self.intents |= bit;
        Ok(if self.intents == at.info.all { Step::Ask } else { Step::Nothing })
    }

    pub(in crate::node) fn ask_up(&self, at: &mut At<'_, impl NodeOutput>, about: &Header) {
        let Some(up) = at.up(Kind::Intent) else { return };
        let header = Header {
            seq: self.number + 1,
            flags: FLAG_STREAM,
            signature: about.signature,
            op_seq: about.op_seq,
            witness: about.witness,
            ..up
        };
        at.out.transmit(Target::Parent, Path::Stream, &header, Payload::None);
    }

    /// The lock is ours.
    pub(in crate::node) fn grant(&mut self, at: &mut At<'_, impl NodeOutput>) {
        let Some(next) = transition(self.phase, Event::Grant) else { return at.out.note(Note::Violation) };
        self.number += 1;
        (self.phase, self.intents) = (next, 0);
        (self.stops, self.stop_at, self.released) = (0, u64::MAX, 0);
        self.tell(at, Kind::Grant, self.number);
    }

    /// Number of the lease that an intent now under way asks for.
    pub(in crate::node) fn asked(&self) -> u64 {
        self.number + 1
    }

    /// Number of the lease held or held last.
    pub(in crate::node) fn current(&self) -> u64 {
        self.number
    }

    pub(in crate::node) fn revoke(&self, at: &mut At<'_, impl NodeOutput>) {
        if transition(self.phase, Event::Revoke).is_some() {
            self.tell(at, Kind::Revoke, self.number);
        }
    }

    pub(in crate::node) fn on_stop(
        &mut self,
        at: &At<'_, impl NodeOutput>,
        position: usize,
        end: u64,
        left: u64,
    ) -> Result<Step, Fault> {
        let bit = at.info.bit(position);
        if transition(self.phase, Event::Stopped).is_none() || self.stops & bit != 0 {
            return Err(at.violation(position));
        }
        self.stops |= bit;
        self.stop_at = self.stop_at.min(end);
        Ok(self.check_stops(at.info, left))
    }

    /// Whether all who are still here have said how far they are. Who has left has finished all it ever started.
    pub(in crate::node) fn check_stops(&mut self, info: &GroupInfo, left: u64) -> Step {
        let all_here = self.stops | left == info.all && self.stops & !left != 0;
        match transition(self.phase, Event::Stopped).filter(|_| all_here) {
            None => Step::Nothing,
            Some(next) => {
                self.phase = next;
                Step::Stop { end: self.stop_at }
            }
        }
    }

    pub(in crate::node) fn send_stop_up(&self, at: &mut At<'_, impl NodeOutput>) {
        if let Some(up) = at.up(Kind::StopAt) {
            let header = Header { seq: self.stop_at, flags: FLAG_STREAM | FLAG_IN_TURN, ..up };
            at.out.transmit(Target::Parent, Path::Stream, &header, Payload::None);
        }
    }

    /// The lease ends at this segment; whether it may end now at all.
    pub(in crate::node) fn end(&mut self, at: &mut At<'_, impl NodeOutput>, end: u64) -> bool {
        let Some(next) = transition(self.phase, Event::End) else { return false };
        (self.phase, self.end) = (next, end);
        self.tell(at, Kind::LeaseEnd, end);
        true
    }

    pub(in crate::node) fn on_released(&mut self, at: &At<'_, impl NodeOutput>, position: usize) -> Result<(), Fault> {
        let bit = at.info.bit(position);
        if self.phase != Phase::Ending || at.info.inner & bit == 0 || self.released & bit != 0 {
            return Err(at.violation(position));
        }
        self.released |= bit;
        Ok(())
    }

    /// Whether the context can go now, given whether our own segments have drained.
    pub(in crate::node) fn try_release(
        &mut self,
        info: &GroupInfo,
        left: u64,
        drained: impl FnOnce(u64) -> bool,
    ) -> Step {
        let all_released = (self.released | left) & info.inner == info.inner;
        match transition(self.phase, Event::Drained).filter(|_| all_released && drained(self.end)) {
            None => Step::Nothing,
            Some(next) => {
                self.phase = next;
                Step::Released
            }
        }
    }

    pub(in crate::node) fn send_released_up(&self, at: &mut At<'_, impl NodeOutput>) {
        if let Some(up) = at.up(Kind::Released) {
            let header = Header { seq: self.number, flags: FLAG_STREAM, ..up };
            at.out.transmit(Target::Parent, Path::Stream, &header, Payload::None);
        }
    }

    fn tell(&self, at: &mut At<'_, impl NodeOutput>, kind: Kind, seq: u64) {
        let header = Header { seq, flags: FLAG_STREAM, ..at.down(kind, ChildIndex::ALL) };
        at.out.transmit(Target::Children(at.info.all), Path::Stream, &header, Payload::None);
    }
}
