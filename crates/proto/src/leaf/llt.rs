//! LLT at a rank: the sliding window, and the only retransmission timer of the protocol.
//!
//! Fragment n is sent once, when the result of n - W is here. If nothing is heard for a round trip,
//! a small probe asks about the oldest fragment. The node's answer is the result, or it names which
//! of this rank's contributions the node has, and only what it lacks is sent again. While other
//! ranks are late, probes go on at a slow fixed pace: a rank that waits costs some tens of small
//! packets a second, however long the vector is. If what is sent never arrives, or nothing is ever
//! answered, the group fails: `passage`.

use std::collections::VecDeque;

use trib_wire::body::Held;
use trib_wire::{Header, Kind, Reason};

use super::at::At;
use super::operation::Operation;
use super::output::{LeafOutput, Note, OpId, Payload};
use super::rtt::{self, RoundTrip};
use crate::Path;
use crate::limits::Limits;
use crate::passage::Questions;
use crate::time::Nanos;

pub(super) struct Datagrams {
    /// The size of the window in fragments: W.
    window: u64,
    operations: VecDeque<Operation>,
    /// The number of the next fragment to be posted.
    next: u64,
    /// The number of the next fragment to be sent.
    sent: u64,
    /// The oldest fragment without a result.
    low: u64,
    /// Bit i is set if the result of fragment `low + i` is here.
    got: u64,
    /// Every member holds all results below this number.
    stable: u64,
    deadline: Nanos,
    pause: Nanos,
    /// The probe that has no answer yet: when it left, and the number below which fragments had
    /// been sent by then.
    probe: Option<(Nanos, u64)>,
    /// Probes about the oldest fragment, and what became of them.
    questions: Questions,
}

impl Datagrams {
    pub(super) fn new(limits: &Limits) -> Datagrams {
        Datagrams {
            window: u64::from(limits.window),
            operations: VecDeque::new(),
            next: 0,
            sent: 0,
            low: 0,
            got: 0,
            stable: 0,
            deadline: Nanos::NEVER,
            pause: Nanos(0),
            probe: None,
            questions: Questions::default(),
        }
    }

    pub(super) fn post(&mut self, operation: Operation) {
        let operation = operation.starting_at(self.next);
        self.next = operation.end();
        self.operations.push_back(operation);
    }

    pub(super) fn outstanding(&self) -> usize {
        self.operations.len()
    }

    pub(super) fn deadline(&self) -> Nanos {
        self.deadline
    }

    /// Gives all operations up. Returns their names.
    pub(super) fn abandon(&mut self) -> Vec<OpId> {
        self.deadline = Nanos::NEVER;
        self.next = self.sent;
        self.operations.drain(..).map(|o| o.id).collect()
    }

    /// The operation to which fragment `seq` belongs, if that fragment was sent and its result is
    /// not here.
    pub(super) fn expected(&self, seq: u64) -> Option<&Operation> {
        if seq < self.low || seq >= self.sent || self.got >> (seq - self.low) & 1 != 0 {
            return None;
        }
        self.operations.get(self.index_of(seq)?)
    }

    pub(super) fn pump(&mut self, at: &mut At<'_, impl LeafOutput>) {
        while self.sent < self.next && self.may_send(self.sent) {
            self.send(at, self.sent);
            self.sent += 1;
            if self.deadline == Nanos::NEVER {
                self.rearm(at.now, at.round_trip);
            }
        }
    }

    pub(super) fn on_result(&mut self, at: &mut At<'_, impl LeafOutput>, header: &Header) {
        if header.mark > self.stable {
            self.stable = header.mark;
            at.out.stable(at.group, Path::Datagram, header.mark);
        }
        if self.expected(header.seq).is_none() {
            return at.out.note(Note::Duplicate);
        }
        let Some(index) = self.index_of(header.seq) else { return };
        let operation = &mut self.operations[index];
        if !operation.accepts(header) {
            return at.out.note(Note::Violation);
        }
        if let Some(slice) = operation.result_slice(header) {
            at.out.deliver(slice);
        }
        operation.done += 1;
        let complete = operation.done == operation.pieces;
        self.got |= 1 << (header.seq - self.low);
        if self.got & 1 != 0 {
            let run = u64::from(self.got.trailing_ones());
            self.low += run;
            self.got = self.got.checked_shr(run as u32).unwrap_or(0);
            self.rearm(at.now, at.round_trip);
        }
        if complete && let Some(operation) = self.operations.remove(index) {
            at.out.complete(operation.id, Ok(operation.tail(self.stable)));
        }
    }

    /// The node says to which fragments it has this rank's contribution. Those that it lacks are
    /// sent again. Returns why the group cannot go on, if the node never gets them.
    pub(super) fn on_held(&mut self, at: &mut At<'_, impl LeafOutput>, held: &Held) -> Option<Reason> {
        let (asked, covers) = self.probe.take()?;
        at.round_trip.sample(at.now.since(asked));
        let behind = self.low.checked_sub(held.have_base).filter(|behind| *behind < 64);
        let is_there = behind.is_none_or(|behind| held.have >> behind & 1 != 0);
        let verdict = self.questions.answer(at.now, is_there);
        for seq in self.low.max(held.have_base)..covers.min(self.sent).min(held.have_base.saturating_add(64)) {
            let lacks = held.have >> (seq - held.have_base) & 1 == 0;
            if lacks && self.expected(seq).is_some() {
                at.out.note(Note::Resent);
                self.send(at, seq);
            }
        }
        verdict
    }

    /// Returns why the group cannot go on, if the node never answers.
    pub(super) fn on_timer(&mut self, at: &mut At<'_, impl LeafOutput>, longest: Nanos) -> Option<Reason> {
        let now = at.now;
        if now < self.deadline {
            return None;
        }
        if self.low == self.sent {
            self.deadline = Nanos::NEVER;
            return None;
        }
        let header = Header { seq: self.low, mark: self.low, ..at.header(Kind::Probe) };
        at.out.transmit(Path::Datagram, &header, Payload::None);
        at.out.note(Note::Probe);
        self.probe = Some((now, self.sent));
        self.pause = Nanos(2 * self.pause.0.max(at.round_trip.timeout().0)).min(longest);
        self.deadline = now + rtt::spread(self.pause, at.edge.config.rank, now);
        self.questions.ask(now, at.edge.signs)
    }

    /// The oldest fragment has changed, so its timer starts anew.
    fn rearm(&mut self, now: Nanos, round_trip: &RoundTrip) {
        self.probe = None;
        self.questions = Questions::default();
        self.pause = round_trip.timeout();
        self.deadline = if self.low == self.sent { Nanos::NEVER } else { now + self.pause };
    }

    fn may_send(&self, seq: u64) -> bool {
        // It may be sent if the result of seq - W is here: that result is below `low`, or its bit
        // in `got` is set.
        match seq.checked_sub(self.window) {
            None => true,
            Some(before) if before < self.low => true,
            Some(before) => self.got >> (before - self.low) & 1 != 0,
        }
    }

    fn send(&self, at: &mut At<'_, impl LeafOutput>, seq: u64) {
        let Some(operation) = self.index_of(seq).and_then(|i| self.operations.get(i)) else { return };
        let header = Header { mark: self.low, ..at.header(Kind::Contribution) };
        let (header, slice) = operation.describe(seq, header);
        at.out.transmit(Path::Datagram, &header, slice.map_or(Payload::None, Payload::Data));
    }

    fn index_of(&self, seq: u64) -> Option<usize> {
        let after = self.operations.partition_point(|o| o.base <= seq);
        let index = after.checked_sub(1)?;
        (seq < self.operations[index].end()).then_some(index)
    }
}
