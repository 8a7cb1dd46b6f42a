//! How groups end: by a fault, or when all have left.

use trib_wire::{ChildIndex, Fault, GroupIndex, Kind, Rank, Reason};

use crate::Path;
use crate::node::group::Group;
use crate::node::lease::Lease;
use crate::node::place::Place;
use crate::node::{Link, NodeCore, NodeOutput, Note, Payload, Target};

impl<B> NodeCore<B> {
    pub(in crate::node) fn settle(&mut self, index: GroupIndex, outcome: Result<(), Fault>, out: &mut impl NodeOutput) {
        if let Err(fault) = outcome {
            self.fail(index, fault, None, out);
        }
    }

    /// Tells the fault at the other ends of all the group's edges, and gives back all that the
    /// group holds. Its name lives until all children have left.
    pub(in crate::node) fn fail(
        &mut self,
        index: GroupIndex,
        fault: Fault,
        from: Option<Link>,
        out: &mut impl NodeOutput,
    ) {
        let Some(group) = self.table.get_mut(index) else { return };
        if !group.fail() {
            return;
        }
        out.note(Note::GroupFailed);
        out.failed(&fault);
        group.broadcast_fault(&self.place, &fault, from, out);
        group.drop_machines();
        group.lease = Lease::default();
        self.forget_lock(index, out);
    }

    /// The driver cannot go on with the job. The other ends of every group's edges are told that
    /// the error is this node's. Nothing else of the core is touched, and the core cannot be used
    /// afterwards.
    pub fn give_up(&mut self, out: &mut impl NodeOutput) {
        let first = self.place.config.children.first().and_then(|child| child.ranks.nth(0)).unwrap_or(Rank(0));
        let fault = self.place.about(Reason::NodeFailed, first);
        for group in self.table.iter().filter(|group| !group.has_failed()) {
            group.broadcast_fault(&self.place, &fault, None, out);
        }
        for (key, pending) in core::mem::take(&mut self.pending) {
            self.refuse(&key, pending.joined & !pending.dead, fault, out);
        }
    }

    pub(in crate::node) fn on_leave(
        &mut self,
        index: GroupIndex,
        child: ChildIndex,
        out: &mut impl NodeOutput<Buffer = B>,
    ) {
        let Some(group) = self.table.get_mut(index) else { return };
        group.left |= 1 << child.0;
        let outcome = check_left(&self.place, group);
        let step = group.lease.check_stops(&group.info, group.left);
        self.settle(index, outcome, out);
        let about = self.place.down(Kind::StopAt, ChildIndex::ALL);
        self.take_step(index, step, &about, out);
        self.try_release(index, out);
        self.try_free(index, out);
    }

    pub(in crate::node) fn try_free(&mut self, index: GroupIndex, out: &mut impl NodeOutput) {
        let Some(group) = self.table.get_mut(index) else { return };
        if !group.is_gone() {
            return;
        }
        if let Some(header) = group.info.up(&self.place, Kind::Leave) {
            out.transmit(Target::Parent, Path::Stream, &header, Payload::None);
        }
        if let Some(group) = self.table.remove(index)
            && self.place.config.recovers
        {
            self.depart(&group.info, group.silent, out);
        }
        out.note(Note::GroupFreed);
        self.forget_lock(index, out);
    }
}

/// A fault if a child has left while others wait for it. It will never contribute, so they are told
/// instead of waiting for ever.
pub(in crate::node) fn check_left<B>(place: &Place, group: &Group<B>) -> Result<(), Fault> {
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
            .or_else(|| waiting_for_the_lock(group));
        if let Some(waiting) = waits {
            return Err(Fault { rank_b: waiting, ..place.about(Reason::MemberLeft, member.first) });
        }
    }
    Ok(())
}

/// A rank that waits for the lock of a group, if there is one.
fn waiting_for_the_lock<B>(group: &Group<B>) -> Option<Rank> {
    let waiting = group.lease.waiting();
    group.info.members.iter().find(|m| waiting & (1 << m.child.0) != 0).map(|m| m.first)
}
