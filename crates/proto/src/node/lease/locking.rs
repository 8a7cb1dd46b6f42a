//! The lock on stream contexts at this node: gatherings are passed on upward, or decided at the
//! root of the tree.

use trib_wire::{ChildIndex, Fault, GroupIndex, Header, Kind, Reason};

use super::Step;
use crate::lock::Decision;
use crate::node::at::At;
use crate::node::info::Duty;
use crate::node::{Link, NodeCore, NodeOutput, Note};

impl<B> NodeCore<B> {
    /// Passes a completed gathering on, or decides it at the root of the tree.
    pub(in crate::node) fn take_step(
        &mut self,
        index: GroupIndex,
        step: Step,
        about: &Header,
        out: &mut impl NodeOutput<Buffer = B>,
    ) {
        let now = self.now;
        let group = self.table.live(index);
        let mut at = At { identity: &self.identity, info: &group.info, now, out: &mut *out };
        let (info, lease) = (at.info, &mut group.lease);
        let mut decisions = Vec::new();
        match (step, self.arbiter.as_mut()) {
            (Step::Nothing, _) => {}
            (Step::Ask, None) => lease.ask_up(&mut at, about),
            (Step::Ask, Some(arbiter)) => arbiter.request(index, info.nodes.clone(), now, &mut decisions),
            (Step::Stop { .. }, None) => {
                lease.send_stop_up(&mut at);
                if let Some(streams) = group.streams.as_mut() {
                    streams.fall_silent();
                }
            }
            (Step::Stop { end }, Some(_)) => self.end_lease(index, end, out),
            (Step::Released, None) => lease.send_released_up(&mut at),
            (Step::Released, Some(arbiter)) => arbiter.released(index, now, &mut decisions),
        }
        for decision in decisions {
            self.apply(decision, out);
        }
    }

    /// The parent grants a lease. If all contexts are in use here, they are further up, and no
    /// correct node grants another.
    pub(in crate::node) fn grant_from_above(
        &mut self,
        index: GroupIndex,
        out: &mut impl NodeOutput,
    ) -> Result<(), Fault> {
        let folds = self.table.get_mut(index).is_some_and(|group| group.info.duty != Duty::Relay);
        if folds && self.streams_held() >= self.identity.config.limits.streams as usize {
            out.note(Note::Violation);
            return Err(self.identity.between(Reason::Protocol, Link::Parent));
        }
        self.apply(Decision::Grant(index), out);
        Ok(())
    }

    /// Carries out a decision of the arbiter, which is here or further up.
    pub(in crate::node) fn apply(&mut self, decision: Decision, out: &mut impl NodeOutput) {
        let index = match decision {
            Decision::Grant(group) | Decision::Revoke(group) => group,
        };
        let group = self.table.live(index);
        let mut at = At { identity: &self.identity, info: &group.info, now: self.now, out };
        match decision {
            Decision::Grant(_) => {
                at.out.note(Note::LeaseGranted);
                group.lease.grant(&mut at);
            }
            Decision::Revoke(_) => {
                at.out.note(Note::LeaseRevoked);
                group.lease.revoke(&mut at);
            }
        }
    }

    /// The lease ends at this segment. What was sent beyond it will come again under the next
    /// lease.
    pub(in crate::node) fn end_lease(&mut self, index: GroupIndex, end: u64, out: &mut impl NodeOutput<Buffer = B>) {
        let group = self.table.live(index);
        let mut at = At { identity: &self.identity, info: &group.info, now: self.now, out: &mut *out };
        if !group.lease.end(&mut at, end) {
            return at.out.note(Note::Violation);
        }
        if let Some(streams) = group.streams.as_mut() {
            streams.roll_back(&mut at, end);
        }
        self.try_release(index, out);
    }

    /// Gives the stream context back if the lease has ended and everything has drained.
    pub(in crate::node) fn try_release(&mut self, index: GroupIndex, out: &mut impl NodeOutput<Buffer = B>) {
        let group = self.table.live(index);
        let streams = group.streams.as_ref();
        let step = group.lease.try_release(&group.info, group.left, |end| match streams {
            Some(streams) => streams.drained(end),
            None => end <= group.info.start.segments || group.info.duty == Duty::Relay,
        });
        if step == Step::Released {
            group.streams.iter_mut().for_each(|streams| streams.rest());
            let about = self.identity.down(Kind::Released, ChildIndex::ALL);
            self.take_step(index, step, &about, out);
        }
    }

    pub(in crate::node) fn forget_lock(&mut self, index: GroupIndex, out: &mut impl NodeOutput) {
        let now = self.now;
        let Some(arbiter) = self.arbiter.as_mut() else { return };
        let mut decisions = Vec::new();
        arbiter.forget(index, now, &mut decisions);
        for decision in decisions {
            self.apply(decision, out);
        }
    }
}
