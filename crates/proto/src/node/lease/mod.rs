//! A group's lease on a stream context at one node.
//!
//! ```text
//!   Idle --Grant--> Granted --all have stopped--> Stopping --LeaseEnd(X)--> Ending
//!    ^-----------------------------drained to X--------------------------------'
//! ```
//! `phase` is this diagram as a table. `locking` is what the node does at each step.
//!
//! A group that asks holds nothing: the context is taken when the grant passes through. Every
//! gathering (of intents, of stops, of releases) is a barrier over the children that take part.
//!
//! A lease without a limit lets a rank stream an operation that others have not posted yet. If
//! those others wait for another group's lock first, each waits for what the other holds. So a
//! lease ends at the *least* progress of its ranks: all have posted what lies before it, which
//! therefore finishes by itself. What some had sent beyond is dropped and sent again under the next
//! lease. It cannot have been folded at the group's root, so no rank has its result. `StopAt`
//! travels in turn with the segments of its group, and nothing follows it upward until the end is
//! known, so nothing that was dropped can arrive late.

use trib_wire::{ChildIndex, Fault, Header, Kind};

mod locking;
mod phase;

use crate::Path;
use crate::node::at::At;
use crate::node::info::GroupInfo;
use crate::node::output::{NodeOutput, Note, Payload, Target};
use crate::surprise::cannot_happen;
pub(super) use phase::Phase;
use phase::{Event, transition};
use trib_wire::header::{FLAG_IN_TURN, FLAG_STREAM};

/// What the caller has to do after an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::node) enum Step {
    Nothing,
    /// All children want to stream. The caller passes that on, or decides if this is the root of
    /// the tree.
    Ask,
    /// All children have said how far they are, and all have started what lies before `end`.
    Stop {
        end: u64,
    },
    /// The context is free at this node and below it.
    Released,
}

#[derive(Default)]
pub(in crate::node) struct Lease {
    /// The number of the current or last lease.
    number: u64,
    pub(in crate::node) phase: Phase,
    /// A bit for each child that wants lease `number + 1`.
    intents: u64,
    /// A bit for each child that has said how far it is in lease `number`, and the least progress
    /// of these.
    stops: u64,
    stop_at: u64,
    /// The segment at which the lease ends, while it ends.
    end: u64,
    /// A bit for each child that folds and has released lease `number`.
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

    /// A bit for each child that waits for the lock. It waits for the children that have not asked
    /// yet.
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
        let Some(up) = at.up(Kind::Intent) else { cannot_happen("the root of a tree asks above it") };
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

    /// The group has the lock.
    pub(in crate::node) fn grant(&mut self, at: &mut At<'_, impl NodeOutput>) {
        let Some(next) = transition(self.phase, Event::Grant) else { return at.out.note(Note::Violation) };
        self.number += 1;
        (self.phase, self.intents) = (next, 0);
        (self.stops, self.stop_at, self.released) = (0, u64::MAX, 0);
        self.tell(at, Kind::Grant, self.number);
    }

    /// The number of the lease for which an intent that is now under way asks.
    pub(in crate::node) fn asked(&self) -> u64 {
        self.number + 1
    }

    /// The number of the lease that is held, or was held last.
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

    /// Goes on if all children that are still here have said how far they are. A child that has
    /// left has finished all that it ever started.
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
        let Some(up) = at.up(Kind::StopAt) else { cannot_happen("the root of a tree stops above it") };
        let header = Header { seq: self.stop_at, flags: FLAG_STREAM | FLAG_IN_TURN, ..up };
        at.out.transmit(Target::Parent, Path::Stream, &header, Payload::None);
    }

    /// The lease ends at this segment. Returns whether it may end now at all.
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

    /// Gives the context up if it can go now. `drained` says whether this node's own segments have
    /// drained.
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
        let Some(up) = at.up(Kind::Released) else { cannot_happen("the root of a tree releases above it") };
        let header = Header { seq: self.number, flags: FLAG_STREAM, ..up };
        at.out.transmit(Target::Parent, Path::Stream, &header, Payload::None);
    }

    fn tell(&self, at: &mut At<'_, impl NodeOutput>, kind: Kind, seq: u64) {
        let header = Header { seq, flags: FLAG_STREAM, ..at.down(kind, ChildIndex::ALL) };
        at.out.transmit(Target::Children(at.info.all), Path::Stream, &header, Payload::None);
    }
}

#[cfg(test)]
mod tests;
