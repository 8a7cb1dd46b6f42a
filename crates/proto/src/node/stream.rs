//! SAT at a node: segments in order, two windows, never blocking.
//!
//! Segment n of a child waits in that child's staging queue (at most S of them; credit says so) until every child's
//! segment n is there and accumulator n mod W is free. Then they are folded in child order; the accumulator keeps
//! its slot until the result has been handed to every child, so what goes up can never starve what comes down.
//!
//! ```text
//!   children --staged--> [S per child] --fold--> [accumulator n mod W] --up, with the parent's credit-->
//!   children <--written to every child-- [accumulator n mod W] <--result-- parent
//! ```

use std::collections::VecDeque;

use trib_wire::header::FLAG_STREAM;
use trib_wire::{ChildIndex, Fault, Header, Kind, Reason};

use super::group::{Duty, GroupInfo, Posted, about, mismatch};
use super::output::{NodeOutput, Note, Part, Payload, Stage, Target};
use super::parts;
use super::place::Place;
use super::report::Folded;
use super::results::spread;
use crate::{Nanos, Path, Token};

struct Staged {
    head: Header,
    piece: Option<Part>,
    /// When it came.
    came: Nanos,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Folded, waits for the parent's credit.
    Folded,
    /// The aggregate is on its way up.
    Sent,
    /// The result is being written to the children whose bit is set.
    Result(u64),
}

struct Accumulator {
    head: Header,
    buffer: Option<Part>,
    state: State,
    /// When it was folded.
    since: Nanos,
}

/// The streaming side of one group. Segment numbers go on from lease to lease.
pub(super) struct Streams {
    /// Per member: segments that have arrived and are not folded.
    staged: Vec<VecDeque<Staged>>,
    /// Per member: number of its next segment.
    next: Vec<u64>,
    /// Per member: segments below this number it may send, as told.
    credit: Vec<u64>,
    /// Per member: what its ranks all hold.
    marks: Vec<u64>,
    /// W accumulators.
    accumulators: Vec<Option<Accumulator>>,
    /// Next segment to fold.
    next_fold: u64,
    /// Next aggregate to send up.
    next_up: u64,
    /// Aggregates below this number may go up.
    parent_credit: u64,
    /// Nothing goes up: the parent has been told how far we are and decides where the lease ends.
    silent: bool,
    /// What all ranks of the group hold.
    stable: u64,
    folded: Folded,
}

impl Streams {
    pub(super) fn new(place: &Place, info: &GroupInfo) -> Streams {
        let limits = &place.config.limits;
        let (members, staging) = (info.members.len(), u64::from(limits.staging));
        Streams {
            staged: (0..members).map(|_| VecDeque::with_capacity(limits.staging as usize)).collect(),
            next: vec![0; members],
            credit: vec![staging; members],
            marks: vec![0; members],
            accumulators: (0..limits.flight).map(|_| None).collect(),
            next_fold: 0,
            next_up: 0,
            parent_credit: staging,
            silent: false,
            stable: 0,
            folded: Folded::default(),
        }
    }

    /// What was folded so far.
    pub(super) fn folded(&self) -> Folded {
        self.folded
    }

    /// The first of this member's segments that waits for others, if there is one.
    pub(super) fn staged_head(&self, position: usize) -> Option<&Header> {
        self.staged[position].front().map(|s| &s.head)
    }

    /// Whether this member's next segment is what others wait for.
    pub(super) fn waits_for(&self, position: usize) -> Option<&Header> {
        if !self.staged[position].is_empty() {
            return None;
        }
        (0..self.staged.len()).find_map(|other| self.staged_head(other))
    }

    /// Since when a segment of another member's waits for this member's next.
    pub(super) fn waits_since(&self, position: usize) -> Option<Nanos> {
        self.waits_for(position)?;
        self.staged.iter().filter_map(|staged| staged.front()).map(|first| first.came).min()
    }

    /// Everything below segment `end` has come, gone and been handed on.
    pub(super) fn drained(&self, end: u64) -> bool {
        self.next_fold >= end && self.accumulators.iter().all(Option::is_none)
    }

    pub(super) fn on_contribution(
        &mut self,
        place: &Place,
        info: &GroupInfo,
        now: Nanos,
        position: usize,
        header: &Header,
        data: Option<Token>,
        out: &mut impl NodeOutput,
    ) -> Result<(), Fault> {
        let in_turn = header.seq == self.next[position] && header.seq < self.credit[position];
        let other = (0..self.staged.len()).filter_map(|p| self.staged_head(p)).find(|h| h.seq == header.seq);
        let fault = match other {
            Some(head) if in_turn && !same_operation(head, header) => {
                out.note(Note::Disagreement);
                Some(mismatch(place, Posted::from(head), Posted::from(header)))
            }
            _ if in_turn && info.allows(header, place.config.limits.segment) && info.gives(position, header) => None,
            _ => {
                out.note(Note::Violation);
                Some(about(place, Reason::Protocol, info.members[position].first))
            }
        };
        if let Some(fault) = fault {
            if let Some(token) = data {
                out.release(token);
            }
            return Err(fault);
        }
        self.marks[position] = self.marks[position].max(header.mark);
        self.next[position] += 1;
        let piece = data.map(|token| Part { token, window: header.window, len: header.payload_len });
        self.staged[position].push_back(Staged { head: *header, piece, came: now });
        self.advance(place, info, now, out)
    }

    /// The result came from the parent, in order.
    pub(super) fn on_result(
        &mut self,
        place: &Place,
        info: &GroupInfo,
        now: Nanos,
        header: &Header,
        data: Option<Token>,
        out: &mut impl NodeOutput,
    ) -> Result<(), Fault> {
        let slot = self.slot(header.seq);
        let Some(accumulator) = self.accumulators[slot]
            .as_mut()
            .filter(|a| a.state == State::Sent && same_operation(&a.head, header) && info.gets(header))
        else {
            if let Some(token) = data {
                out.release(token);
            }
            out.note(Note::Violation);
            return Err(about(place, Reason::Protocol, info.members[0].first));
        };
        if let Some(aggregate) = accumulator.buffer.take() {
            out.release(aggregate.token);
        }
        accumulator.buffer = data.map(|token| Part { token, window: header.window, len: header.payload_len });
        accumulator.state = State::Result(info.all);
        out.took(Path::Stream, Stage::Answer, now.since(accumulator.since));
        self.stable = self.stable.max(header.mark);
        let (head, buffer) = (accumulator.head, accumulator.buffer);
        self.hand_down(place, info, &head, buffer, out);
        // What the parent has folded has left its staging room.
        self.on_credit(place, info, header.seq + 1 + u64::from(place.config.limits.staging), out);
        Ok(())
    }

    /// A result is in the socket of a child.
    pub(super) fn on_written(
        &mut self,
        place: &Place,
        info: &GroupInfo,
        now: Nanos,
        child: ChildIndex,
        seq: u64,
        out: &mut impl NodeOutput,
    ) -> Result<(), Fault> {
        let slot = self.slot(seq);
        let Some(accumulator) = self.accumulators[slot].as_mut().filter(|a| a.head.seq == seq) else { return Ok(()) };
        let State::Result(pending) = &mut accumulator.state else { return Ok(()) };
        *pending &= !(1 << child.0);
        if *pending == 0 {
            if let Some(part) = accumulator.buffer {
                out.release(part.token);
            }
            self.accumulators[slot] = None;
            self.advance(place, info, now, out)?;
        }
        Ok(())
    }

    pub(super) fn on_credit(&mut self, place: &Place, info: &GroupInfo, limit: u64, out: &mut impl NodeOutput) {
        self.parent_credit = self.parent_credit.max(limit);
        self.send_up(place, info, out);
    }

    /// Nothing goes up from now on until `roll_back`.
    pub(super) fn fall_silent(&mut self) {
        self.silent = true;
    }

    /// The lease ends at segment `at`, which not all ranks have started: what came beyond it is dropped here and will come
    /// again. Credit that was given for what this node had already folded beyond is taken back at both ends of the edge: the
    /// child does the same when it hears of the end, and has heard of every credit before.
    pub(super) fn roll_back(&mut self, place: &Place, info: &GroupInfo, at: u64, out: &mut impl NodeOutput) {
        for (queue, next) in self.staged.iter_mut().zip(&mut self.next) {
            while queue.back().is_some_and(|s| s.head.seq >= at) {
                if let Some(piece) = queue.pop_back().and_then(|s| s.piece) {
                    out.release(piece.token);
                }
            }
            *next = (*next).min(at);
        }
        let limit = at + u64::from(place.config.limits.staging);
        self.parent_credit = self.parent_credit.min(limit);
        for told in &mut self.credit {
            *told = (*told).min(limit);
        }
        for slot in &mut self.accumulators {
            if let Some(beyond) = slot.take_if(|a| a.head.seq >= at)
                && let Some(part) = beyond.buffer
            {
                out.release(part.token);
            }
        }
        self.next_fold = self.next_fold.min(at);
        self.next_up = self.next_up.min(at);
        self.silent = false;
        self.send_up(place, info, out);
    }

    pub(super) fn drop_buffers(&mut self, out: &mut impl NodeOutput) {
        let staged = self.staged.iter_mut().flat_map(|q| q.drain(..)).filter_map(|s| s.piece);
        let folded = self.accumulators.iter_mut().filter_map(Option::take).filter_map(|a| a.buffer);
        for part in staged.chain(folded) {
            out.release(part.token);
        }
    }

    pub(super) fn tokens_held(&self) -> usize {
        let staged = self.staged.iter().flatten().filter(|s| s.piece.is_some()).count();
        staged + self.accumulators.iter().flatten().filter(|a| a.buffer.is_some()).count()
    }

    fn slot(&self, seq: u64) -> usize {
        (seq % self.accumulators.len() as u64) as usize
    }

    /// Folds as many segments as all children have sent and accumulators are free for.
    fn advance(&mut self, place: &Place, info: &GroupInfo, now: Nanos, out: &mut impl NodeOutput) -> Result<(), Fault> {
        while self.staged.iter().all(|queue| !queue.is_empty()) {
            let slot = self.slot(self.next_fold);
            if self.accumulators[slot].is_some() {
                break;
            }
            self.check_heads(place)?;
            self.fold(place, info, now, slot, out);
        }
        Ok(())
    }

    fn check_heads(&self, place: &Place) -> Result<(), Fault> {
        let heads = || self.staged.iter().filter_map(|queue| queue.front());
        let Some(first) = heads().next() else { return Ok(()) };
        match heads().find(|other| !same_operation(&first.head, &other.head)) {
            None => Ok(()),
            Some(other) => Err(mismatch(place, Posted::from(&first.head), Posted::from(&other.head))),
        }
    }

    fn fold(&mut self, place: &Place, info: &GroupInfo, now: Nanos, slot: usize, out: &mut impl NodeOutput) {
        let Some(head) = self.staged[0].front().map(|s| s.head) else { return };
        let mut first = now;
        let pieces = self.staged.iter_mut().map(|queue| {
            let staged = queue.pop_front()?;
            first = first.min(staged.came);
            staged.piece
        });
        let buffer = parts::fold(&head, pieces, out);
        let gathered = now.since(first);
        out.note(Note::SegmentFolded);
        out.took(Path::Stream, Stage::Gather, gathered);
        self.folded.add(&head, gathered);
        self.next_fold += 1;
        if info.duty == Duty::Root {
            self.stable = self.stable.max(self.marks.iter().copied().min().unwrap_or(0));
            self.accumulators[slot] = Some(Accumulator { head, buffer, state: State::Result(info.all), since: now });
            self.hand_down(place, info, &head, buffer, out);
        } else {
            self.accumulators[slot] = Some(Accumulator { head, buffer, state: State::Folded, since: now });
            self.send_up(place, info, out);
        }
        self.extend_credit(place, info, out);
    }

    /// Sends a result to every child. It tells them that their part was folded, and so is credit too.
    fn hand_down(
        &mut self,
        place: &Place,
        info: &GroupInfo,
        head: &Header,
        buffer: Option<Part>,
        out: &mut impl NodeOutput,
    ) {
        spread(place, info, head, buffer, info.all, self.stable, Path::Stream, out);
        let limit = head.seq + 1 + u64::from(place.config.limits.staging);
        for told in &mut self.credit {
            *told = (*told).max(limit);
        }
    }

    /// Sends aggregates up, as far as the parent's credit goes. At the group's root there is none: folds are results there.
    fn send_up(&mut self, place: &Place, info: &GroupInfo, out: &mut impl NodeOutput) {
        if info.duty == Duty::Root {
            return;
        }
        while !self.silent && self.next_up < self.next_fold.min(self.parent_credit) {
            let slot = self.slot(self.next_up);
            let mark = self.marks.iter().copied().min().unwrap_or(0);
            let Some(accumulator) = self.accumulators[slot].as_mut() else { return };
            let Some(up) = info.up(place, Kind::Contribution) else { return };
            let head = &accumulator.head;
            let header = Header {
                flags: FLAG_STREAM,
                lane: head.lane,
                signature: head.signature,
                witness: head.witness,
                op_seq: head.op_seq,
                seq: head.seq,
                offset: head.offset,
                extent: head.extent,
                mark,
                ..up
            };
            accumulator.state = State::Sent;
            self.next_up += 1;
            match accumulator.buffer {
                Some(part) => {
                    let header = Header { window: part.window, payload_len: part.len, ..header };
                    let payload = Payload::Data { token: part.token, from: 0 };
                    out.transmit(Target::Parent, Path::Stream, &header, payload);
                }
                None => out.transmit(Target::Parent, Path::Stream, &header, Payload::None),
            }
        }
    }

    /// Tells children that they may send on, when half their staging room is free again and no result has said so.
    fn extend_credit(&mut self, place: &Place, info: &GroupInfo, out: &mut impl NodeOutput) {
        let staging = u64::from(place.config.limits.staging);
        let limit = self.next_fold + staging;
        for (position, told) in self.credit.iter_mut().enumerate() {
            if limit - *told >= staging.div_ceil(2) {
                *told = limit;
                let child = info.members[position].child;
                let header = Header { seq: limit, flags: FLAG_STREAM, ..info.down(place, Kind::Credit, child) };
                out.transmit(Target::Child(child), Path::Stream, &header, Payload::None);
            }
        }
    }
}

fn same_operation(a: &Header, b: &Header) -> bool {
    let place = |header: &Header| (header.op_seq, header.lane, header.offset, header.extent, header.seq);
    a.signature == b.signature && place(a) == place(b)
}
