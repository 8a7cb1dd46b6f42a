//! SAT at a rank: operations one after the other as numbered segments, under a lease.
//!
//! ```text
//! Idle --operation waits: Intent--> Asked --Grant--> Held --Revoke: StopAt--> Stopping
//!  ^                                                  `--operations used up: StopAt--^|
//!  `---------------LeaseEnd(X): what was started beyond X waits again----------------'
//! ```
//! `phase` is this diagram as a table. Intents of different groups do not wait for each other, so
//! ranks may post their groups' operations in any order.

use std::collections::VecDeque;

use trib_wire::header::{FLAG_IN_TURN, FLAG_REPLAYED, FLAG_STREAM};
use trib_wire::standing::MARK_MAX;
use trib_wire::{Header, Kind};

use super::at::At;
use super::config::LeafConfig;
use super::kept::{Kept, end_below};
use super::operation::Operation;
use super::output::{GroupId, LeafOutput, Note, OpId, Payload};
use super::phase::{Event, Phase, transition};
use super::tidings::Tidings;
use crate::Path;
use crate::surprise::cannot_happen;

/// What a group does with the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Activity {
    /// It does nothing there.
    None,
    /// It waits for the lock.
    Asks,
    /// It has the lock and no operation: the node may ask for it back at any time.
    Holds,
    /// It has operations under way.
    Streams,
}

pub(super) struct Streams {
    /// The largest number of segments whose results are not here yet.
    flight: u64,
    /// Whether an operation is over only when every rank has its results.
    strict: bool,
    /// The number of segments that may be ahead of the node's fold.
    staging: u64,
    /// Operations that wait for the lock.
    waiting: VecDeque<Operation>,
    /// Operations under way.
    active: VecDeque<Operation>,
    /// The number of the next segment to be posted.
    posted: u64,
    /// The number of the next segment to be started.
    next: u64,
    /// The number of the next segment to be sent.
    sent: u64,
    /// The number of the first segment that was never sent, in no epoch.
    unsent: u64,
    /// The number of the first segment that was not sent in an earlier epoch.
    fresh: u64,
    /// The number of the next result in this epoch.
    got: u64,
    /// The results below this number are here. Those from `got` on come again, because other ranks
    /// lack them.
    had: u64,
    /// Operations that are over.
    kept: Kept,
    /// Whether something was given up of which this rank had sent a segment.
    gave_up_sent: bool,
    /// Segments below this number may be sent.
    credit: u64,
    /// What every member holds, and what this rank tells of that when nothing else does.
    pub(super) tidings: Tidings,
    phase: Phase,
    /// The number of the last lease.
    lease: u64,
    /// How many operations a lease allows (0 means no limit), and how many this one has had.
    lease_operations: u32,
    used: u32,
}

impl Streams {
    pub(super) fn new(config: &LeafConfig) -> Streams {
        let limits = &config.limits;
        Streams {
            strict: config.strict,
            flight: u64::from(limits.flight),
            staging: u64::from(limits.staging),
            waiting: VecDeque::new(),
            active: VecDeque::new(),
            posted: 0,
            next: 0,
            sent: 0,
            unsent: 0,
            fresh: 0,
            got: 0,
            had: 0,
            kept: Kept::new(config),
            gave_up_sent: false,
            credit: u64::from(limits.staging),
            tidings: Tidings::new(Path::Stream, config),
            phase: Phase::Idle,
            lease: 0,
            lease_operations: limits.lease_operations,
            used: 0,
        }
    }

    pub(super) fn post(&mut self, operation: Operation) {
        let operation = operation.starting_at(self.posted);
        self.posted = operation.end();
        self.waiting.push_back(operation);
    }

    /// The number of the next segment to be posted.
    pub(super) fn posted(&self) -> u64 {
        self.posted
    }

    pub(super) fn outstanding(&self) -> usize {
        let under_way = self.active.iter().chain(&self.waiting);
        under_way.filter(|operation| !operation.over).count() + self.kept.undecided()
    }

    /// Whether nothing is to be sent, no result is to come, and nothing is undecided.
    pub(super) fn is_idle(&self) -> bool {
        self.has_all() && !self.is_undecided()
    }

    /// Whether nothing is to be sent, and no result is to come.
    fn has_all(&self) -> bool {
        self.active.is_empty() && self.waiting.is_empty()
    }

    /// Whether an operation waits for nothing but the word that every rank has its results.
    pub(super) fn is_undecided(&self) -> bool {
        self.kept.undecided() > 0
    }

    /// Whether others may wait for ever for this rank. See `Datagrams::holds_others_up`.
    pub(super) fn holds_others_up(&self) -> bool {
        self.gave_up_sent && self.is_idle()
    }

    /// The group is over, and every member has the results below `mark`: this is the last word.
    pub(super) fn conclude(&mut self, group: GroupId, mark: u64, out: &mut impl LeafOutput) {
        let mark = mark.min(self.low());
        self.tidings.conclude(group, mark, &mut self.kept, out);
        end_below(&mut self.active, mark, out);
        end_below(&mut self.waiting, mark, out);
    }

    /// Gives up all operations that are not over and end beyond segment `below`. Returns their
    /// names. See `Datagrams::abandon`.
    pub(super) fn abandon(&mut self, below: u64) -> Vec<OpId> {
        let mut given_up = self.kept.abandon(below);
        let stays = |operation: &Operation| operation.over || operation.end() <= below;
        self.gave_up_sent |= !given_up.is_empty();
        for operations in [&mut self.active, &mut self.waiting] {
            for operation in operations.iter().filter(|operation| !stays(operation)) {
                self.gave_up_sent |= operation.base < self.unsent;
                given_up.push(operation.id);
            }
            operations.retain(stays);
        }
        if !self.strict && !given_up.is_empty() {
            self.had = MARK_MAX;
        }
        given_up
    }

    /// The operation whose result `seq` comes next.
    fn expected(&self, seq: u64) -> Option<&Operation> {
        if seq != self.got || seq >= self.sent { None } else { self.active.front() }
    }

    /// The same, if the result is not here from an earlier epoch.
    pub(super) fn lacking(&self, seq: u64) -> Option<&Operation> {
        self.expected(seq).filter(|_| seq >= self.had)
    }

    /// The operation to which the result `seq` belongs, if that result will come, though perhaps
    /// not as the next, and is not here from an earlier epoch.
    pub(super) fn awaited(&self, seq: u64) -> Option<&Operation> {
        let is_due = (self.got.max(self.had)..self.sent).contains(&seq);
        self.active.iter().rev().find(|operation| is_due && operation.base <= seq)
    }

    /// The bytes of results still to come for the first operation under way: those for what was
    /// sent of it, and those for all of it. `None` if nothing is under way, or if a control frame
    /// of the node must come first.
    pub(super) fn due(&self) -> Option<(u64, u64)> {
        let settled = self.waiting.is_empty() && self.phase == Phase::Held;
        let first = self.active.front().filter(|_| settled)?;
        Some((first.due(self.sent), first.due(first.end())))
    }

    /// What this rank does with the stream in this group.
    pub(super) fn activity(&self) -> Activity {
        match self.phase {
            _ if !self.active.is_empty() => Activity::Streams,
            Phase::Asked => Activity::Asks,
            Phase::Held => Activity::Holds,
            Phase::Idle | Phase::Stopping => Activity::None,
        }
    }

    /// Sends what the windows allow. `sharers` is the number of the rank's groups that stream and
    /// do not stand still, this one included.
    ///
    /// They share the flight: what a rank has on its link at once must not grow with its groups, or
    /// a job of many groups would take the link from a job with a single one. Each group keeps a
    /// few segments, so that none waits for another.
    ///
    /// Without `is_open` room the group does not ask for the lock, unless for what was sent before:
    /// see `Datagrams::pump`. Under a lease everything is sent, because what is kept of another
    /// group may wait for that lease's end. So a group may keep a flight beyond what there is room
    /// for, and as many groups as have a lease.
    pub(super) fn pump(&mut self, at: &mut At<'_, impl LeafOutput>, sharers: u64, is_open: bool) {
        self.start(at, is_open);
        let flight = self.flight.div_ceil(sharers.max(1)).max(SHARE_MIN.min(self.flight));
        let before = self.sent;
        while self.phase != Phase::Stopping && self.sent < self.next.min(self.credit).min(self.got + flight) {
            let after = self.active.partition_point(|o| o.base <= self.sent);
            let operation = after.checked_sub(1).and_then(|i| self.active.get(i));
            // It may have been given up; then nothing comes behind it either.
            let Some(operation) = operation.filter(|operation| self.sent < operation.end()) else { break };
            let mut flags = FLAG_STREAM;
            if self.sent < self.fresh {
                flags |= FLAG_REPLAYED;
                at.out.note(Note::Replayed);
            }
            let header = Header { mark: self.got, flags, ..at.header(Kind::Contribution) };
            let (header, slice) = operation.describe(self.sent, header);
            at.out.transmit(Path::Stream, &header, slice.map_or(Payload::None, Payload::Data));
            self.tidings.carry(header.mark);
            self.sent += 1;
        }
        if self.sent > before {
            self.check();
            self.unsent = self.unsent.max(self.sent);
        }
        // A used-up lease is given back only when all results are here: after a stop no rank and no
        // node on the way up sends anything, and other ranks may not have posted as much yet.
        if self.phase == Phase::Held && self.is_used_up() && self.got == self.next {
            self.stop(at);
        }
    }

    /// The windows, whose numbers are moved here alone.
    fn check(&self) {
        assert!(self.got <= self.sent && self.sent <= self.next && self.next <= self.posted, "segments out of turn");
        assert!(self.sent <= self.credit, "more was sent than there is credit for");
        assert!(self.sent - self.got <= self.flight, "more is under way than the grant allows");
    }

    /// Returns whether it was the next result.
    pub(super) fn on_result(&mut self, at: &mut At<'_, impl LeafOutput>, header: &Header) -> bool {
        self.on_mark(at, header.mark);
        if !self.expected(header.seq).is_some_and(|o| o.accepts(header)) {
            at.out.note(Note::Violation);
            return false;
        }
        let Some(operation) = self.active.front_mut() else { cannot_happen("a result of no operation") };
        if let Some(slice) = operation.result_slice(header).filter(|_| header.seq >= self.had) {
            at.out.deliver(slice);
        }
        operation.done += 1;
        self.got += 1;
        self.had = self.had.max(self.got);
        // What the node has folded has left its staging room.
        self.credit = self.credit.max(self.got + self.staging);
        let complete = operation.done == operation.pieces;
        if complete && let Some(operation) = self.active.pop_front() {
            let stable = self.held_by_all();
            self.kept.complete(operation, stable, at.out);
        }
        if !self.strict || complete {
            self.tidings.hold(at.now, self.got);
        }
        true
    }

    /// Every rank has the results below this number. A rank that has sent segment n has the result
    /// of n - F, and the result of n took all ranks. Under `strict` the group's root alone decides.
    fn held_by_all(&self) -> u64 {
        if self.strict {
            return self.tidings.stable();
        }
        self.tidings.stable().max(self.got.saturating_sub(self.flight))
    }

    /// Every member holds all results below this number. Beyond what this rank holds it says
    /// nothing: a node says so to ranks that have left the group, or it is wrong.
    pub(super) fn on_mark(&mut self, at: &mut At<'_, impl LeafOutput>, mark: u64) {
        self.tidings.hear(at, mark.min(self.low()), &mut self.kept);
    }

    /// The bytes that the driver keeps for other ranks.
    pub(super) fn kept_bytes(&self) -> u64 {
        self.kept.bytes()
    }

    /// The connection is gone. Nothing is told until `resume`.
    pub(super) fn suspend(&mut self) {
        self.tidings.suspend();
    }

    /// The number of the oldest segment whose result this rank lacks.
    pub(super) fn low(&self) -> u64 {
        self.had
    }

    /// A new epoch begins with this segment, because every rank has the results of all before it.
    /// The lease is gone: whatever is not complete everywhere waits for the next one. Returns false
    /// if that cannot be.
    pub(super) fn resume(&mut self, start: u64, out: &mut impl LeafOutput) -> bool {
        if start > self.had {
            return false;
        }
        self.fresh = self.unsent;
        let mut unfinished = core::mem::take(&mut self.active);
        unfinished.append(&mut self.waiting);
        self.waiting = self.kept.resumed(unfinished, start, out);
        self.next = self.waiting.front().map_or(start, |first| first.base);
        (self.got, self.sent) = (start, start);
        self.tidings.begin(start);
        self.credit = start + self.staging;
        (self.phase, self.lease, self.used) = (Phase::Idle, 0, 0);
        true
    }

    /// Drops all that was kept for other ranks.
    pub(super) fn forget(&mut self, out: &mut impl LeafOutput) {
        self.tidings.end();
        self.kept.release(u64::MAX, out);
        for operation in self.active.drain(..).chain(self.waiting.drain(..)) {
            self.kept.forget(&operation, out);
        }
    }

    pub(super) fn on_credit(&mut self, limit: u64) {
        self.credit = self.credit.max(limit);
    }

    pub(super) fn on_grant(&mut self, lease: u64) {
        if let Some(next) = transition(self.phase, Event::Grant).filter(|_| lease == self.lease + 1) {
            (self.phase, self.lease, self.used) = (next, lease, 0);
        }
    }

    pub(super) fn on_revoke(&mut self, at: &mut At<'_, impl LeafOutput>, lease: u64) {
        if lease == self.lease {
            self.stop(at);
        }
    }

    /// The lease ends at segment `end`. What this rank has started beyond it waits for the next
    /// lease. No result of that can have come, because some rank has not even posted it.
    pub(super) fn on_lease_end(&mut self, end: u64) {
        let Some(next) = transition(self.phase, Event::End).filter(|_| end >= self.got) else { return };
        self.phase = next;
        while self.active.back().is_some_and(|o| o.base >= end) {
            if let Some(operation) = self.active.pop_back() {
                self.waiting.push_front(operation);
            }
        }
        self.next = self.next.min(end);
        self.sent = self.sent.min(end);
        self.credit = self.credit.min(end + self.staging);
    }

    /// Starts what the lease covers. Asks for the lock if an operation waits and the rank has not
    /// asked yet.
    fn start(&mut self, at: &mut At<'_, impl LeafOutput>, is_open: bool) {
        loop {
            match self.phase {
                Phase::Held if !self.waiting.is_empty() && !self.is_used_up() => {
                    self.begin();
                    self.used += 1;
                }
                Phase::Idle if self.may_ask(is_open) => self.ask(at),
                _ => return,
            }
        }
    }

    fn may_ask(&self, is_open: bool) -> bool {
        self.waiting.front().is_some_and(|first| is_open || first.base < self.unsent)
    }

    /// Whether the lease has had its number of operations.
    fn is_used_up(&self) -> bool {
        self.lease_operations != 0 && self.used == self.lease_operations
    }

    fn begin(&mut self) {
        if let Some(operation) = self.waiting.pop_front() {
            self.next = operation.end();
            self.active.push_back(operation);
        }
    }

    fn ask(&mut self, at: &mut At<'_, impl LeafOutput>) {
        let Some(first) = self.waiting.front() else { cannot_happen("the lock is asked for and nothing waits") };
        let Some(next) = transition(self.phase, Event::Ask) else { cannot_happen("the lock is asked for twice") };
        let header = Header {
            seq: self.lease + 1,
            flags: FLAG_STREAM,
            signature: first.signature,
            op_seq: first.op_seq,
            ..at.header(Kind::Intent)
        };
        at.out.transmit(Path::Stream, &header, Payload::None);
        self.phase = next;
    }

    /// Tells the node how far this rank has got, behind all that it has sent. Nothing more is sent
    /// until the end of the lease is known.
    fn stop(&mut self, at: &mut At<'_, impl LeafOutput>) {
        let Some(next) = transition(self.phase, Event::Stop) else { return };
        let header = Header { seq: self.next, flags: FLAG_STREAM | FLAG_IN_TURN, ..at.header(Kind::StopAt) };
        at.out.transmit(Path::Stream, &header, Payload::None);
        self.phase = next;
    }
}

/// The number of segments that a group may have in flight, however many other groups stream. A
/// rank's groups share its `flight` segments. If there are so many groups that each share would be
/// smaller than this, each has this many, and together they exceed `flight`.
const SHARE_MIN: u64 = 2;
