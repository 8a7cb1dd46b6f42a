//! How groups end: by a fault, or when all have left.

use trib_wire::{ChildIndex, Fault, GroupIndex, Kind, Marks, Rank, Reason};

use crate::Path;
use crate::node::at::At;
use crate::node::group::Group;
use crate::node::identity::Identity;
use crate::node::info::{Duty, Member};
use crate::node::lease::Lease;
use crate::node::{Link, NodeCore, NodeOutput, Note, Payload, Target};

impl<B> NodeCore<B> {
    pub(in crate::node) fn settle(&mut self, index: GroupIndex, outcome: Result<(), Fault>, out: &mut impl NodeOutput) {
        if let Err(fault) = outcome {
            self.fail(index, fault, None, out);
        }
    }

    /// The group cannot go on. Under `strict` its root decides how it ends, and nodes below that
    /// wait for its word.
    pub(in crate::node) fn fail(
        &mut self,
        index: GroupIndex,
        fault: Fault,
        from: Option<Link>,
        out: &mut impl NodeOutput,
    ) {
        let group = self.table.live(index);
        match (self.identity.config.strict, group.info.duty) {
            (false, _) | (true, Duty::Relay) => self.conclude(index, (fault, Marks::default()), from, out),
            (true, Duty::Root) => {
                // A child that has found the fault waits for the answer like all others.
                let (mark, from) = (group.last_word(&self.identity), from.filter(|link| *link == Link::Parent));
                self.conclude(index, (fault, mark), from, out);
            }
            (true, Duty::Inner) => {
                if group.report() {
                    group.tell_parent(&self.identity, &fault, out);
                    self.give_back(index, out);
                }
            }
        }
    }

    /// Tells at the other ends of all the group's edges how it ends: the fault, and below which
    /// numbers every member has the results. Its name lives until all children have left.
    pub(in crate::node) fn conclude(
        &mut self,
        index: GroupIndex,
        (fault, mark): (Fault, Marks),
        from: Option<Link>,
        out: &mut impl NodeOutput,
    ) {
        let group = self.table.live(index);
        if !group.fail() {
            return;
        }
        out.note(Note::GroupFailed);
        out.failed(&fault);
        group.broadcast_fault(&self.identity, (&fault, mark), from, out);
        if self.identity.config.recovers && !self.identity.config.strict {
            group.release_those_that_left(&self.identity, out);
        }
        self.give_back(index, out);
    }

    /// Gives back all that a group holds that cannot go on.
    fn give_back(&mut self, index: GroupIndex, out: &mut impl NodeOutput) {
        let group = self.table.live(index);
        group.drop_machines();
        group.lease = Lease::default();
        self.forget_lock(index, out);
    }

    /// The driver cannot go on with the job. The other ends of every group's edges are told that
    /// the error is this node's. Nothing else of the core is touched, and the core cannot be used
    /// afterwards. Under `strict` only the roots of groups may say how these end, and no one node
    /// knows that of a group that waits to go on: these wait for another epoch.
    pub fn give_up(&mut self, out: &mut impl NodeOutput) {
        let first = self.identity.config.children.first().and_then(|child| child.ranks.nth(0)).unwrap_or(Rank(0));
        let fault = self.identity.about(Reason::NodeFailed, first);
        for group in self.table.iter().filter(|group| !group.has_failed()) {
            if self.identity.config.strict && group.info.duty == Duty::Inner {
                group.tell_parent(&self.identity, &fault, out);
            } else {
                group.broadcast_fault(&self.identity, (&fault, group.last_word(&self.identity)), None, out);
            }
        }
        for (key, pending) in core::mem::take(&mut self.pending) {
            if !self.identity.config.strict || !pending.standing().resumed {
                self.refuse((&key, pending.joined & !pending.dead), (fault, Marks::default()), out);
            }
        }
    }

    pub(in crate::node) fn on_leave(
        &mut self,
        index: GroupIndex,
        child: ChildIndex,
        out: &mut impl NodeOutput<Buffer = B>,
    ) {
        let group = self.table.live(index);
        group.left |= 1 << child.0;
        // Under `strict` an operation succeeds only when those that have left hold the result, too.
        if !self.identity.config.strict
            && let Some(position) = group.info.position(child)
        {
            let mut at = At { identity: &self.identity, info: &group.info, now: self.now, out: &mut *out };
            group.datagrams.iter_mut().for_each(|datagrams| datagrams.marks.leave(&mut at, position));
            group.streams.iter_mut().for_each(|streams| streams.marks.leave(&mut at, position));
            group.board.iter_mut().for_each(|board| board.leave(&mut at, position));
        }
        let outcome = check_left(&self.identity, group);
        let step = group.lease.check_stops(&group.info, group.left);
        self.settle(index, outcome, out);
        let about = self.identity.down(Kind::StopAt, ChildIndex::ALL);
        self.take_step(index, step, &about, out);
        self.try_release(index, out);
        self.try_free(index, out);
        self.advance_waiting(out);
    }

    pub(in crate::node) fn try_free(&mut self, index: GroupIndex, out: &mut impl NodeOutput) {
        let group = self.table.live(index);
        if !group.is_gone() {
            return;
        }
        if let Some(header) = group.info.up(&self.identity, Kind::Leave) {
            out.transmit(Target::Parent, Path::Stream, &header, Payload::None);
        }
        if let Some(group) = self.table.remove(index)
            && self.identity.config.recovers
        {
            self.depart(&group.info, group.silent, out);
        }
        out.note(Note::GroupFreed);
        self.forget_lock(index, out);
    }
}

/// A fault if a child has left while others wait for it. It will never contribute, so they are told
/// instead of waiting for ever.
pub(in crate::node) fn check_left<B>(identity: &Identity, group: &Group<B>) -> Result<(), Fault> {
    if group.left == 0 || group.has_failed() {
        return Ok(());
    }
    for (position, member) in group.info.members.iter().enumerate() {
        if group.left & (1 << member.child.0) == 0 {
            continue;
        }
        let waits = group
            .datagrams
            .as_ref()
            .and_then(|d| d.waits_for(member.child))
            .or_else(|| group.streams.as_ref().and_then(|s| s.waits_for(position)))
            .map(|header| Rank(header.witness))
            .or_else(|| waiting_for_the_lock(group))
            .or_else(|| waiting_for_the_mark(identity, group, position));
        if let Some(waiting) = waits {
            return Err(Fault { rank_b: waiting, ..identity.about(Reason::MemberLeft, member.first) });
        }
    }
    Ok(())
}

/// A rank that waits for the word that all have a result, if the member at a position has left
/// without it. Such a word is waited for under `strict` alone.
fn waiting_for_the_mark<B>(identity: &Identity, group: &Group<B>, position: usize) -> Option<Rank> {
    let lacks = group.datagrams.as_ref().is_some_and(|datagrams| datagrams.outruns(position))
        || group.streams.as_ref().is_some_and(|streams| streams.outruns(position));
    let is_here = |member: &&Member| group.left & (1 << member.child.0) == 0;
    group.info.members.iter().find(is_here).filter(|_| lacks && identity.config.strict).map(|member| member.first)
}

/// A rank that waits for the lock of a group, if there is one.
fn waiting_for_the_lock<B>(group: &Group<B>) -> Option<Rank> {
    let waiting = group.lease.waiting();
    group.info.members.iter().find(|m| waiting & (1 << m.child.0) != 0).map(|m| m.first)
}
