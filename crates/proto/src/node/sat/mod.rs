//! SAT at a node: segments in order, and two windows, so that nothing blocks.
//!
//! Segment n of a child waits in that child's staging queue, which has room for S segments and
//! whose credit says so, until every child's segment n is there and accumulator n mod W is free.
//! Then they are folded in child order. The accumulator keeps its slot until the result has been
//! handed to every child, so what goes up can never starve what comes down.
//!
//! ```text
//!   children --staged--> [S per child] --fold--> [accumulator n mod W] --up, with credit-->
//!   children <--written to every child-- [accumulator n mod W] <--result-- parent
//! ```

mod accumulator;

use std::collections::VecDeque;

use trib_wire::header::{FLAG_REPLAYED, FLAG_STREAM};
use trib_wire::{ChildIndex, Fault, Header, Kind};

use crate::node::at::At;
use crate::node::frame::{Frame, about_piece};
use crate::node::identity::Identity;
use crate::node::info::{Duty, GroupInfo, Posted};
use crate::node::marks::Marks;
use crate::node::output::{NodeOutput, Note, Part, Payload, Stage, Target};
use crate::node::parts::{self, Hull};
use crate::node::report::{self, Folded};
use crate::node::results::{Outcome, spread};
use crate::surprise::cannot_happen;
use crate::{Nanos, Path};
use accumulator::{Event, State, transition};

struct Staged<B> {
    head: Header,
    part: Option<Part<B>>,
    /// When it came.
    came: Nanos,
}

struct Accumulator<B> {
    head: Header,
    part: Option<Part<B>>,
    state: State,
    /// A bit for each child to whose socket the result is still to be written.
    unwritten: u64,
    /// When it was folded.
    since: Nanos,
}

/// The streaming side of one group. Segment numbers go on from lease to lease.
pub(in crate::node) struct Streams<B> {
    /// Per member: the segments that have arrived and are not folded.
    staged: Vec<VecDeque<Staged<B>>>,
    /// Per member: the number of its next segment.
    next: Vec<u64>,
    /// Per member: it has been told that it may send the segments below this number.
    credit: Vec<u64>,
    /// Who holds which results.
    pub(in crate::node) marks: Marks,
    /// The accumulators: W of them from the first fold of a lease to its end, else none.
    accumulators: Vec<Option<Accumulator<B>>>,
    /// The next segment to fold.
    next_fold: u64,
    /// The next aggregate to send up.
    next_up: u64,
    /// Aggregates below this number may go up.
    parent_credit: u64,
    /// Whether nothing may go up, because the parent has been told how far this node is and decides
    /// where the lease ends.
    silent: bool,
    folded: Folded,
}

impl<B> Streams<B> {
    pub(in crate::node) fn new(identity: &Identity, info: &GroupInfo) -> Streams<B> {
        let limits = &identity.config.limits;
        let (members, staging, start) = (info.members.len(), u64::from(limits.staging), info.start.segments);
        Streams {
            staged: (0..members).map(|_| VecDeque::new()).collect(),
            next: vec![start; members],
            credit: vec![start + staging; members],
            marks: Marks::new(Path::Stream, identity, (members, start)),
            accumulators: Vec::new(),
            next_fold: start,
            next_up: start,
            parent_credit: start + staging,
            silent: false,
            folded: Folded::default(),
        }
    }

    /// What has been folded so far.
    pub(in crate::node) fn folded(&self) -> Folded {
        self.folded
    }

    /// The first of this member's segments that waits for others, if there is one.
    pub(in crate::node) fn staged_head(&self, position: usize) -> Option<&Header> {
        self.staged[position].front().map(|s| &s.head)
    }

    /// A segment of this operation that waits for others, if there is one.
    pub(in crate::node) fn staged_of(&self, op_seq: u64) -> Option<&Header> {
        self.staged.iter().find_map(|queue| {
            // A member's segments come in the order of its operations.
            let first = queue.partition_point(|staged| staged.head.op_seq < op_seq);
            queue.get(first).map(|staged| &staged.head).filter(|head| head.op_seq == op_seq)
        })
    }

    /// The segment of others that waits for this member's next one, if there is any.
    pub(in crate::node) fn waits_for(&self, position: usize) -> Option<&Header> {
        if !self.staged[position].is_empty() {
            return None;
        }
        (0..self.staged.len()).find_map(|other| self.staged_head(other))
    }

    /// Since when another member's segment waits for this member's next one.
    pub(in crate::node) fn waits_since(&self, position: usize) -> Option<Nanos> {
        self.waits_for(position)?;
        self.staged.iter().filter_map(|staged| staged.front()).map(|first| first.came).min()
    }

    /// Whether everything below segment `end` has come, was folded and was handed on.
    pub(in crate::node) fn drained(&self, end: u64) -> bool {
        self.next_fold >= end && self.accumulators.iter().all(Option::is_none)
    }

    /// Whether there is a contribution to a segment whose result this member does not hold.
    pub(in crate::node) fn outruns(&self, position: usize) -> bool {
        self.next.iter().any(|next| *next > self.marks.held_by(position))
    }

    pub(in crate::node) fn on_contribution(
        &mut self,
        at: &mut At<'_, impl NodeOutput<Buffer = B>>,
        position: usize,
        frame: Frame<'_, B>,
    ) -> Result<(), Fault> {
        let header = frame.header;
        let in_turn = header.seq == self.next[position] && header.seq < self.credit[position];
        let other = (0..self.staged.len()).filter_map(|p| self.staged_head(p)).find(|h| h.seq == header.seq);
        if let Some(head) = other.filter(|head| in_turn && !same_operation(head, header)) {
            at.out.note(Note::Disagreement);
            return Err(at.identity.mismatch(Posted::from(head), Posted::from(header)));
        }
        let given = at.info.given(position, header, at.identity.config.limits.segment);
        let Some(elements) = given.filter(|_| in_turn) else {
            at.out.note(Note::Violation);
            return Err(at.violation(position));
        };
        self.marks.hold(position, header.mark);
        self.next[position] += 1;
        self.staged[position].push_back(Staged { head: *header, part: frame.into_part(elements), came: at.now });
        self.check(position, at.identity.config.limits.staging);
        self.advance(at)
    }

    /// The result came from the parent, in order.
    pub(in crate::node) fn on_result(
        &mut self,
        at: &mut At<'_, impl NodeOutput<Buffer = B>>,
        frame: Frame<'_, B>,
    ) -> Result<(), Fault> {
        let header = frame.header;
        let slot = slot(at.identity, header.seq);
        let accumulator = self.accumulators.get_mut(slot).and_then(Option::as_mut);
        let Some((accumulator, elements)) = accumulator
            .filter(|a| transition(a.state, Event::Result).is_some())
            .filter(|a| same_operation(&a.head, header))
            .and_then(|a| Some((a, at.info.gotten(header)?)))
        else {
            at.out.note(Note::Violation);
            return Err(at.violation(0));
        };
        accumulator.part = frame.into_part(elements);
        (accumulator.state, accumulator.unwritten) = (State::Result, at.info.all);
        at.out.took(Path::Stream, Stage::Answer, at.now.since(accumulator.since));
        self.marks.settle(header.mark);
        self.hand_down(at, slot);
        // What the parent has folded has left its staging room.
        self.on_credit(at, header.seq + 1 + u64::from(at.identity.config.limits.staging));
        Ok(())
    }

    /// A result has been written to the socket of a child.
    pub(in crate::node) fn on_written(
        &mut self,
        at: &mut At<'_, impl NodeOutput<Buffer = B>>,
        child: ChildIndex,
        seq: u64,
    ) -> Result<(), Fault> {
        let slot = slot(at.identity, seq);
        let accumulator = self.accumulators.get_mut(slot).and_then(Option::as_mut);
        let Some(accumulator) = accumulator.filter(|a| a.head.seq == seq) else { return Ok(()) };
        if transition(accumulator.state, Event::Written).is_none() {
            return Ok(());
        }
        accumulator.unwritten &= !(1 << child.0);
        if accumulator.unwritten == 0 {
            self.accumulators[slot] = None;
            self.advance(at)?;
        }
        Ok(())
    }

    pub(in crate::node) fn on_credit(&mut self, at: &mut At<'_, impl NodeOutput<Buffer = B>>, limit: u64) {
        self.parent_credit = self.parent_credit.max(limit);
        self.send_up(at);
    }

    /// Nothing goes up from now on until `roll_back`.
    pub(in crate::node) fn fall_silent(&mut self) {
        self.silent = true;
    }

    /// The lease ends at segment `end`, which not all ranks have started. What came beyond it is
    /// dropped and will come again. Credit that was given because this node had already folded
    /// segments beyond it is taken back at both ends of the edge: the child does the same when it
    /// hears of the end, and it has heard of every credit before.
    pub(in crate::node) fn roll_back(&mut self, at: &mut At<'_, impl NodeOutput<Buffer = B>>, end: u64) {
        for (queue, next) in self.staged.iter_mut().zip(&mut self.next) {
            while queue.back().is_some_and(|s| s.head.seq >= end) {
                queue.pop_back();
            }
            *next = (*next).min(end);
        }
        let limit = end + u64::from(at.identity.config.limits.staging);
        self.parent_credit = self.parent_credit.min(limit);
        for told in &mut self.credit {
            *told = (*told).min(limit);
        }
        for slot in &mut self.accumulators {
            slot.take_if(|a| a.head.seq >= end && transition(a.state, Event::RollBack).is_some());
        }
        self.next_fold = self.next_fold.min(end);
        self.next_up = self.next_up.min(end);
        self.silent = false;
        self.send_up(at);
    }

    pub(in crate::node) fn buffers_held(&self) -> usize {
        let staged = self.staged.iter().flatten().filter(|s| s.part.is_some()).count();
        staged + self.accumulators.iter().flatten().filter(|a| a.part.is_some()).count()
    }

    /// The lease is over, and nothing that came under it is here any more. What is left of it would
    /// be for each group, and only those that stream need it.
    pub(in crate::node) fn rest(&mut self) {
        self.staged.iter_mut().for_each(VecDeque::shrink_to_fit);
        self.accumulators = Vec::new();
    }

    /// Folds as many segments as all children have sent and as accumulators are free for.
    fn advance(&mut self, at: &mut At<'_, impl NodeOutput<Buffer = B>>) -> Result<(), Fault> {
        while self.staged.iter().all(|queue| !queue.is_empty()) {
            let slot = slot(at.identity, self.next_fold);
            if self.accumulators.get(slot).is_some_and(Option::is_some) {
                break;
            }
            self.check_heads(at.identity)?;
            self.fold(at, slot);
        }
        Ok(())
    }

    /// The windows of a member's edge, whose numbers are moved here alone.
    fn check(&self, position: usize, staging: u32) {
        let (next, staging) = (self.next[position], u64::from(staging));
        assert!(next <= self.credit[position], "more came than there is credit for");
        assert!(self.credit[position] <= self.next_fold + staging, "credit for more than there is room for");
        assert_eq!(
            self.staged[position].len() as u64,
            next - self.next_fold,
            "what came was not folded or is not there"
        );
    }

    fn check_heads(&self, identity: &Identity) -> Result<(), Fault> {
        let heads = || self.staged.iter().filter_map(|queue| queue.front());
        let Some(first) = heads().next() else { cannot_happen("a group without members") };
        match heads().find(|other| !same_operation(&first.head, &other.head)) {
            None => Ok(()),
            Some(other) => Err(identity.mismatch(Posted::from(&first.head), Posted::from(&other.head))),
        }
    }

    fn fold(&mut self, at: &mut At<'_, impl NodeOutput<Buffer = B>>, slot: usize) {
        let Some(mut head) = self.staged[0].front().map(|s| s.head) else { cannot_happen("a fold of nothing") };
        let is_root = at.info.duty == Duty::Root;
        let event = if is_root { Event::FoldAtRoot } else { Event::Fold };
        let Some(state) = transition(State::Free, event) else { cannot_happen("a fold into what is taken") };
        let fronts = self.staged.iter().filter_map(|queue| queue.front());
        let first = fronts.clone().map(|staged| staged.came).fold(at.now, Nanos::min);
        head.flags |= fronts.clone().fold(0, |flags, staged| flags | staged.head.flags) & FLAG_REPLAYED;
        let hull = Hull::of(fronts.filter_map(|staged| staged.part.as_ref()));
        let parts = self.staged.iter_mut().filter_map(|queue| queue.pop_front()?.part);
        let part = parts::fold(&head, hull, parts, at.info.way_of_folds(), at.out);
        let gathered = at.now.since(first);
        at.out.note(Note::SegmentFolded);
        at.out.took(Path::Stream, Stage::Gather, gathered);
        self.folded.add(&head, gathered);
        if is_root && head.is_replayed() {
            at.out.replayed(Path::Stream, report::result_bytes(&head));
        }
        assert_eq!(head.seq, self.next_fold, "a fold out of turn");
        self.next_fold += 1;
        self.accumulators.resize_with(at.identity.config.limits.flight as usize, || None);
        self.accumulators[slot] = Some(Accumulator { head, part, state, unwritten: at.info.all, since: at.now });
        if is_root {
            self.marks.settle(self.marks.least());
            self.hand_down(at, slot);
        } else {
            self.send_up(at);
        }
        self.extend_credit(at);
    }

    /// Sends a result to every child. The result tells a child that its segment was folded, so it
    /// is credit too.
    fn hand_down(&mut self, at: &mut At<'_, impl NodeOutput<Buffer = B>>, slot: usize) {
        let Some(Accumulator { head, part, .. }) = &self.accumulators[slot] else {
            cannot_happen("no result to hand down")
        };
        let outcome = Outcome { path: Path::Stream, head, part: part.as_ref(), stable: self.marks.stable() };
        spread(at, &outcome, at.info.all);
        let limit = head.seq + 1 + u64::from(at.identity.config.limits.staging);
        for told in &mut self.credit {
            *told = (*told).max(limit);
        }
    }

    /// Sends aggregates up, as far as the parent's credit goes. At the group's root there are none,
    /// because folds are results there.
    fn send_up(&mut self, at: &mut At<'_, impl NodeOutput<Buffer = B>>) {
        if at.info.duty == Duty::Root {
            return;
        }
        while !self.silent && self.next_up < self.next_fold.min(self.parent_credit) {
            let slot = slot(at.identity, self.next_up);
            let mark = self.marks.carry();
            let Some(accumulator) = self.accumulators[slot].as_mut() else { cannot_happen("no aggregate to send") };
            let Some(up) = at.up(Kind::Contribution) else { cannot_happen("nothing is above an inner node") };
            assert_eq!(accumulator.head.seq, self.next_up, "the slot of an aggregate holds another");
            let header = about_piece(&accumulator.head, mark, up);
            let Some(next) = transition(accumulator.state, Event::Credit) else {
                cannot_happen("an aggregate is sent twice")
            };
            accumulator.state = next;
            self.next_up += 1;
            match &accumulator.part {
                Some(part) => {
                    let header = header.carrying(&part.elements, part.bytes);
                    let payload = Payload::Data { buffer: &part.buffer, from: 0 };
                    at.out.transmit(Target::Parent, Path::Stream, &header, payload);
                }
                None => at.out.transmit(Target::Parent, Path::Stream, &header, Payload::None),
            }
        }
    }

    /// Tells children that they may send on, once half their staging room is free again and no
    /// result has told them.
    fn extend_credit(&mut self, at: &mut At<'_, impl NodeOutput<Buffer = B>>) {
        let staging = u64::from(at.identity.config.limits.staging);
        let limit = self.next_fold + staging;
        for (position, told) in self.credit.iter_mut().enumerate() {
            if limit - *told >= staging.div_ceil(2) {
                *told = limit;
                let child = at.info.members[position].child;
                let header = Header { seq: limit, flags: FLAG_STREAM, ..at.down(Kind::Credit, child) };
                at.out.transmit(Target::Child(child), Path::Stream, &header, Payload::None);
            }
        }
    }
}

/// The accumulator of a segment.
fn slot(identity: &Identity, seq: u64) -> usize {
    (seq % u64::from(identity.config.limits.flight)) as usize
}

fn same_operation(a: &Header, b: &Header) -> bool {
    let coordinates = |header: &Header| (header.op_seq, header.lane, header.piece(), header.seq);
    a.signature == b.signature && coordinates(a) == coordinates(b)
}

#[cfg(test)]
mod tests;
