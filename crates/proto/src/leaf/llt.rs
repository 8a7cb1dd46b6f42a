//! LLT at a rank: the sliding window, and the only retransmission timer of the protocol.
//!
//! Fragment n is sent once, when the result of n - W is here. If nothing is heard for a round trip,
//! a small probe asks about the oldest fragment. The node's answer is the result, or it names which
//! of this rank's contributions the node has, and only what it lacks is sent again, as much at once
//! as arrives: `resends`. While other ranks are late, probes go on at a slow fixed pace: a rank
//! that waits costs some tens of small packets a second, however long the vector is. If what is
//! sent never arrives, or nothing is ever answered, the group fails: `passage`.

use std::collections::VecDeque;

use trib_wire::body::Held;
use trib_wire::header::FLAG_REPLAYED;
use trib_wire::standing::MARK_MAX;
use trib_wire::{Header, Kind, Reason};

use super::at::At;
use super::config::LeafConfig;
use super::delivered::Delivered;
use super::kept::{Kept, end_below};
use super::operation::Operation;
use super::output::{GroupId, LeafOutput, Note, OpId, Payload};
use super::resends::Resends;
use super::rtt::{self, RoundTrip};
use super::tidings::Tidings;
use crate::Path;
use crate::passage::Questions;
use crate::surprise::cannot_happen;
use crate::time::Nanos;

pub(super) struct Datagrams {
    /// The size of the window in fragments: W.
    window: u64,
    /// Whether an operation is over only when every rank has its results.
    strict: bool,
    operations: VecDeque<Operation>,
    /// The number of the next fragment to be posted.
    next: u64,
    /// The number of the next fragment to be sent.
    sent: u64,
    /// The number of the first fragment that was not sent in an earlier epoch.
    fresh: u64,
    /// The fragments whose results have come in this epoch, or come no more.
    got: Delivered,
    /// The fragments whose results had come when the epoch began. They come again, because other
    /// ranks lack them.
    had: Delivered,
    /// Fragments of operations that were given up whose results have come since, with what was in
    /// `got` then. This rank does not hold those, and asks about them no more.
    heard: Delivered,
    /// Operations that are over.
    kept: Kept,
    /// Whether something was given up of which this rank had sent a fragment.
    gave_up_sent: bool,
    /// What every member holds, and what this rank tells of that when nothing else does.
    pub(super) tidings: Tidings,
    deadline: Nanos,
    pause: Nanos,
    /// The probe that has no answer yet: when it left, and the number below which fragments had
    /// been sent by then.
    probe: Option<(Nanos, u64)>,
    /// Probes about the oldest fragment, and what became of them.
    questions: Questions,
    resends: Resends,
}

impl Datagrams {
    pub(super) fn new(config: &LeafConfig) -> Datagrams {
        Datagrams {
            window: u64::from(config.limits.window),
            strict: config.strict,
            operations: VecDeque::new(),
            next: 0,
            sent: 0,
            fresh: 0,
            got: Delivered::default(),
            had: Delivered::default(),
            heard: Delivered::default(),
            kept: Kept::new(config),
            gave_up_sent: false,
            tidings: Tidings::new(Path::Datagram, config),
            deadline: Nanos::NEVER,
            pause: Nanos(0),
            probe: None,
            questions: Questions::default(),
            resends: Resends::default(),
        }
    }

    pub(super) fn post(&mut self, operation: Operation) {
        let operation = operation.starting_at(self.next);
        self.next = operation.end();
        self.operations.push_back(operation);
    }

    /// The number of the next fragment to be posted.
    pub(super) fn posted(&self) -> u64 {
        self.next
    }

    pub(super) fn outstanding(&self) -> usize {
        self.operations.iter().filter(|operation| !operation.over).count() + self.kept.undecided()
    }

    /// Whether nothing is to be sent, no result is to come, and nothing is undecided.
    pub(super) fn is_idle(&self) -> bool {
        self.operations.is_empty() && !self.is_undecided()
    }

    /// Whether an operation waits for nothing but the word that every rank has its results.
    pub(super) fn is_undecided(&self) -> bool {
        self.kept.undecided() > 0
    }

    /// Whether this rank waits for nothing here, and others may wait for ever for the word that it
    /// holds a result, too: it has given that up, and they can have it.
    pub(super) fn holds_others_up(&self) -> bool {
        self.gave_up_sent && self.is_idle()
    }

    pub(super) fn deadline(&self) -> Nanos {
        self.deadline
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

    /// The group is over, and every member has the results below `mark`: this is the last word.
    pub(super) fn conclude(&mut self, group: GroupId, mark: u64, out: &mut impl LeafOutput) {
        let mark = mark.min(self.low());
        self.tidings.conclude(group, mark, &mut self.kept, out);
        end_below(&mut self.operations, mark, out);
    }

    /// Gives up all operations that are not over and end beyond fragment `below`. Returns their
    /// names.
    ///
    /// Under `strict` others count on what this rank holds all the same. Elsewhere it lacks nothing
    /// from then on, and others forget what they keep for it.
    ///
    /// While an operation is undecided, this rank goes on asking about what it has sent: the word
    /// that decides may come with a result of what it has given up, and be lost.
    pub(super) fn abandon(&mut self, below: u64) -> Vec<OpId> {
        let stays = |operation: &Operation| operation.over || operation.end() <= below;
        let (stay, given_up) = self.operations.drain(..).partition::<VecDeque<_>, _>(stays);
        self.operations = stay;
        self.next = self.operations.back().map_or(self.sent, |last| last.end().max(self.sent));
        let mut names = self.kept.abandon(below);
        let unsent = self.sent.max(self.fresh);
        self.gave_up_sent |= !names.is_empty() || given_up.iter().any(|operation| operation.base < unsent);
        names.extend(given_up.iter().map(|operation| operation.id));
        if !self.strict && !names.is_empty() {
            self.had = Delivered::below(MARK_MAX);
        }
        if self.is_idle() {
            self.deadline = Nanos::NEVER;
        }
        names
    }

    /// The connection is gone. Nothing comes any more until `resume`.
    pub(super) fn suspend(&mut self) {
        (self.deadline, self.probe) = (Nanos::NEVER, None);
        self.tidings.suspend();
        self.had.unite(self.got);
    }

    /// The number of the oldest fragment whose result this rank lacks.
    pub(super) fn low(&self) -> u64 {
        self.had.low().max(self.got.low())
    }

    /// A new epoch begins with this fragment, because every rank has the results of all before it.
    /// Returns false if that cannot be.
    pub(super) fn resume(&mut self, start: u64, out: &mut impl LeafOutput) -> bool {
        if start > self.low() {
            return false;
        }
        self.fresh = self.fresh.max(self.sent);
        let unfinished = core::mem::take(&mut self.operations);
        self.operations = self.kept.resumed(unfinished, start, out);
        // What was given up in an earlier epoch is not sent in this one.
        self.next = self.operations.back().map_or(start, Operation::end);
        (self.got, self.heard, self.sent) = (Delivered::below(start), Delivered::below(start), start);
        self.tidings.begin(start);
        true
    }

    /// Drops all that was kept for other ranks.
    pub(super) fn forget(&mut self, out: &mut impl LeafOutput) {
        self.tidings.end();
        self.kept.release(u64::MAX, out);
        for operation in self.operations.drain(..) {
            self.kept.forget(&operation, out);
        }
        (self.deadline, self.probe) = (Nanos::NEVER, None);
    }

    /// The operation to which fragment `seq` belongs, if that fragment was sent and its result has
    /// not come in this epoch.
    fn expected(&self, seq: u64) -> Option<&Operation> {
        if seq >= self.sent || self.got.contains(seq) {
            return None;
        }
        self.operations.get(self.index_of(seq)?)
    }

    /// The same, if the result is not here at all.
    pub(super) fn lacking(&self, seq: u64) -> Option<&Operation> {
        self.expected(seq).filter(|_| !self.had.contains(seq))
    }

    /// Sends what the window allows. Without `is_open` room that is what was sent in an earlier
    /// epoch: others may lack it, and what is kept for them goes when they have it.
    pub(super) fn pump(&mut self, at: &mut At<'_, impl LeafOutput>, is_open: bool) {
        let end = if is_open { self.next } else { self.next.min(self.fresh) };
        while self.sent < end && self.may_send(self.sent) {
            if self.sent < self.fresh {
                at.out.note(Note::Replayed);
            }
            self.send(at, self.sent);
            self.sent += 1;
            if self.deadline == Nanos::NEVER {
                self.rearm(at.now, at.round_trip);
            }
        }
    }

    pub(super) fn on_result(&mut self, at: &mut At<'_, impl LeafOutput>, header: &Header) {
        self.on_mark(at, header.mark);
        if self.expected(header.seq).is_none() {
            self.hear(at, header.seq);
            return at.out.note(Note::Duplicate);
        }
        let Some(index) = self.index_of(header.seq) else { cannot_happen("a result of no operation") };
        let operation = &mut self.operations[index];
        if !operation.accepts(header) {
            return at.out.note(Note::Violation);
        }
        if let Some(slice) = operation.result_slice(header).filter(|_| !self.had.contains(header.seq)) {
            at.out.deliver(slice);
        }
        operation.done += 1;
        let complete = operation.done == operation.pieces;
        let was_oldest = header.seq == self.oldest();
        self.got.insert(header.seq);
        if was_oldest {
            self.rearm(at.now, at.round_trip);
        }
        if complete && let Some(operation) = self.operations.remove(index) {
            let stable = self.held_by_all();
            self.kept.complete(operation, stable, at.out);
        }
        if !self.strict || complete {
            self.tidings.hold(at.now, self.got.low());
        }
    }

    /// A result has come that nobody waits for. It may be of an operation that was given up.
    fn hear(&mut self, at: &At<'_, impl LeafOutput>, seq: u64) {
        let mut heard = self.heard();
        if seq >= self.sent || heard.contains(seq) || self.index_of(seq).is_some() {
            return;
        }
        let was_oldest = seq == self.oldest();
        heard.insert(seq);
        self.heard = heard;
        if was_oldest {
            self.rearm(at.now, at.round_trip);
        }
    }

    /// The fragments whose results have come in this epoch, those of what was given up included.
    fn heard(&self) -> Delivered {
        let mut heard = self.heard;
        heard.unite(self.got);
        heard
    }

    /// The oldest fragment about which this rank may ask: one whose result it waits for, or else
    /// one that it has given up. Of those that it gives up before it has sent them in this epoch no
    /// result comes, and what has come of the others says nothing of what it waits for.
    #[inline]
    fn oldest(&self) -> u64 {
        let low = self.got.low();
        let has_low = |operation: &Operation| (operation.base..operation.end()).contains(&low);
        // Mostly nothing is given up.
        if low == self.sent || self.operations.front().is_some_and(has_low) {
            return low;
        }
        self.oldest_but_for_given_up(low)
    }

    #[cold]
    fn oldest_but_for_given_up(&self, low: u64) -> u64 {
        let missing = |operation: &Operation| {
            let mut sent = operation.base.max(low)..operation.end().min(self.sent);
            sent.find(|seq| !self.got.contains(*seq))
        };
        let mut begun = self.operations.iter().take_while(|operation| operation.base < self.sent);
        begun.find_map(missing).unwrap_or(self.heard().low())
    }

    /// Every rank has the results below this number. A rank that has sent fragment n has the result
    /// of n - W, and the result of n took all ranks. Under `strict` the group's root alone decides.
    fn held_by_all(&self) -> u64 {
        if self.strict {
            return self.tidings.stable();
        }
        self.tidings.stable().max(self.got.low().saturating_sub(self.window))
    }

    /// The node says to which fragments it has this rank's contribution. Those that it lacks are
    /// sent again. Returns why the group cannot go on, if the node never gets them.
    pub(super) fn on_held(&mut self, at: &mut At<'_, impl LeafOutput>, held: &Held) -> Option<Reason> {
        let (asked, covers) = self.probe.take()?;
        at.round_trip.sample(at.now.since(asked));
        let low = self.oldest();
        let behind = low.checked_sub(held.have_base).filter(|behind| *behind < 64);
        let is_given_up = self.expected(low).is_none();
        let is_there = is_given_up || behind.is_none_or(|behind| held.have >> behind & 1 != 0);
        let verdict = self.questions.answer(at.now, is_there);
        let mut lacking = 0;
        for seq in low.max(held.have_base)..covers.min(self.sent).min(held.have_base.saturating_add(64)) {
            let bit = 1 << (seq - held.have_base);
            if held.have & bit == 0 && self.expected(seq).is_some() {
                lacking |= bit;
            }
        }
        let mut again = self.resends.choose(held.have_base, lacking);
        while again != 0 {
            at.out.note(Note::Resent);
            self.send(at, held.have_base + u64::from(again.trailing_zeros()));
            again &= again - 1;
        }
        verdict
    }

    /// Returns why the group cannot go on, if the node never answers.
    pub(super) fn on_timer(&mut self, at: &mut At<'_, impl LeafOutput>, longest: Nanos) -> Option<Reason> {
        let now = at.now;
        if now < self.deadline {
            return None;
        }
        let seq = self.oldest();
        if seq == self.sent || self.is_idle() {
            self.deadline = Nanos::NEVER;
            return None;
        }
        let header = Header { seq, mark: self.got.low(), ..at.header(Kind::Probe) };
        at.out.transmit(Path::Datagram, &header, Payload::None);
        at.out.note(Note::Probe);
        self.probe = Some((now, self.sent));
        self.pause = Nanos(2 * self.pause.0.max(at.round_trip.timeout().0)).min(longest);
        self.deadline = now + rtt::spread(self.pause, (at.edge.config.rank, at.group), now);
        self.questions.ask(now, at.edge.signs, at.edge.config.limits.heartbeat)
    }

    /// The oldest fragment has changed, so its timer starts anew.
    fn rearm(&mut self, now: Nanos, round_trip: &RoundTrip) {
        self.probe = None;
        self.questions = Questions::default();
        self.pause = round_trip.timeout();
        self.deadline = if self.oldest() == self.sent { Nanos::NEVER } else { now + self.pause };
    }

    fn may_send(&self, seq: u64) -> bool {
        // The node begins anew with each epoch, and so does its window.
        seq.checked_sub(self.window).is_none_or(|before| self.got.contains(before))
    }

    fn send(&mut self, at: &mut At<'_, impl LeafOutput>, seq: u64) {
        // It may have been given up.
        let Some(operation) = self.index_of(seq).and_then(|i| self.operations.get(i)) else { return };
        assert!(self.may_send(seq), "a fragment takes the slot of one whose result is not here");
        let flags = if seq < self.fresh { FLAG_REPLAYED } else { 0 };
        let header = Header { mark: self.got.low(), flags, ..at.header(Kind::Contribution) };
        let (header, slice) = operation.describe(seq, header);
        at.out.transmit(Path::Datagram, &header, slice.map_or(Payload::None, Payload::Data));
        self.tidings.carry(header.mark);
    }

    fn index_of(&self, seq: u64) -> Option<usize> {
        let after = self.operations.partition_point(|o| o.base <= seq);
        let index = after.checked_sub(1)?;
        (seq < self.operations[index].end()).then_some(index)
    }
}
