//! LLT at a node: a window of slots with two banks, and no timers.
//!
//! Fragment n lives in record n mod 2W. A child sends n only when it holds the result of n - W, so
//! the first contribution to n proves that n - W is complete everywhere and that every child holds
//! the result of n - 2W, which was in this record before. Two banks are therefore enough. One bank
//! is not: the result in it would have to go while a child that has lost that result still asks for
//! it.
//!
//! ```text
//!   Empty --contribution--> Filling --last contribution--> Sent --result from above--> Done
//!                             |  ^                           |                          |
//!                       a child asks:                  a child asks:             a child asks:
//!                           HELD                     HELD, and asks upward         the result
//!   Done(n) --first contribution to n + 2W--> Filling(n + 2W)
//! ```
//! At the group's root the last contribution leads straight to Done. `slot` is this diagram as a
//! table.

mod slot;

use trib_wire::body::Held;
use trib_wire::header::FLAG_REPLAYED;
use trib_wire::{Body, ChildIndex, Fault, Header, Kind};

use crate::Path;
use crate::node::at::At;
use crate::node::frame::{Frame, about_piece};
use crate::node::identity::Identity;
use crate::node::info::{Duty, GroupInfo, Posted};
use crate::node::link::Link;
use crate::node::marks::Marks;
use crate::node::output::{NodeOutput, Note, Part, Payload, Stage, Target};
use crate::node::parts::{self, Hull};
use crate::node::report::{self, Folded};
use crate::node::results::{Outcome, spread};
use crate::passage::{Answers, Questions};
use crate::surprise::cannot_happen;
use crate::time::Nanos;
use slot::{Event, State, transition};

/// An aggregate, or a probe about it, goes up again at most this often for each fragment.
const ASK_UP_INTERVAL: Nanos = Nanos::from_millis(1);

struct Record<B> {
    state: State,
    /// The header of the first contribution, which says what the fragment is; and whether any
    /// contribution was sent in an earlier epoch, too.
    head: Header,
    /// A bit for each child whose contribution is here.
    contributed: u64,
    /// In state Sent the aggregate, in state Done the result.
    part: Option<Part<B>>,
    /// In state Filling when the first contribution came, in state Sent when the last one came.
    since: Nanos,
    /// When the aggregate or a probe was last sent up.
    asked: Nanos,
    /// What the parent last said that it has of the fragment.
    above: Option<Held>,
    /// Probes to the parent, and what became of them.
    questions: Questions,
}

impl<B> Record<B> {
    fn new(state: State, head: Header, since: Nanos) -> Record<B> {
        Record {
            state,
            head,
            contributed: 0,
            part: None,
            since,
            asked: Nanos(0),
            above: None,
            questions: Questions::default(),
        }
    }
}

/// What a record takes, and what a slot takes for each child, in bytes.
#[cfg(test)]
pub(in crate::node) fn record_bytes<B>() -> (usize, usize) {
    (size_of::<Record<B>>(), size_of::<Option<Part<B>>>())
}

/// The slots of one group.
pub(in crate::node) struct Datagrams<B> {
    /// The size of the window in fragments: W.
    window: u64,
    /// The first fragment of this epoch.
    start: u64,
    /// 2W records, which are two banks.
    records: Vec<Record<B>>,
    /// W x members: the contributions to the bank that is filling.
    parts: Vec<Option<Part<B>>>,
    /// Who holds which results.
    pub(in crate::node) marks: Marks,
    /// The results for which each member asks, by position.
    answers: Vec<Answers>,
    folded: Folded,
}

impl<B> Datagrams<B> {
    pub(in crate::node) fn new(identity: &Identity, info: &GroupInfo) -> Datagrams<B> {
        let window = identity.config.limits.window as usize;
        let head = identity.down(Kind::Contribution, ChildIndex::ALL);
        Datagrams {
            window: window as u64,
            start: info.start.fragments,
            records: (0..2 * window).map(|_| Record::new(State::Empty, head, Nanos(0))).collect(),
            parts: (0..window * info.members.len()).map(|_| None).collect(),
            marks: Marks::new(Path::Datagram, identity, (info.members.len(), info.start.fragments)),
            answers: vec![Answers::default(); info.members.len()],
            folded: Folded::default(),
        }
    }

    /// What has been folded so far.
    pub(in crate::node) fn folded(&self) -> Folded {
        self.folded
    }

    /// The fragment of this operation that still waits for contributions, if there is one.
    pub(in crate::node) fn filling(&self, op_seq: u64) -> Option<&Header> {
        self.records.iter().find(|r| r.state == State::Filling && r.head.op_seq == op_seq).map(|r| &r.head)
    }

    /// A fragment that waits for this child, if there is one.
    pub(in crate::node) fn waits_for(&self, child: ChildIndex) -> Option<&Header> {
        let bit = 1u64 << child.0;
        self.records.iter().find(|r| r.state == State::Filling && r.contributed & bit == 0).map(|r| &r.head)
    }

    /// Since when others wait for this child to contribute to a fragment.
    pub(in crate::node) fn waits_since(&self, child: ChildIndex) -> Option<Nanos> {
        let bit = 1u64 << child.0;
        let waits = |r: &&Record<B>| r.state == State::Filling && r.contributed & bit == 0;
        self.records.iter().filter(waits).map(|r| r.since).min()
    }

    /// Takes a contribution. Returns whether it opened a new fragment.
    pub(in crate::node) fn on_contribution(
        &mut self,
        at: &mut At<'_, impl NodeOutput<Buffer = B>>,
        position: usize,
        frame: Frame<'_, B>,
    ) -> Result<bool, Fault> {
        let (info, header) = (at.info, frame.header);
        let child = info.members[position].child;
        let bit = 1u64 << child.0;
        self.marks.hold(position, header.mark);
        let slot = self.record_at(header.seq);
        let opens = match self.age(header.seq) {
            Age::Current => false,
            Age::Next => true,
            Age::Old => {
                at.out.note(Note::Stale);
                return Ok(false);
            }
            Age::Beyond => {
                at.out.note(Note::Violation);
                return Ok(false);
            }
        };
        if !opens && self.records[slot].contributed & bit != 0 {
            at.out.note(Note::Duplicate);
            self.answer(at, position, header.seq)?;
            return Ok(false);
        }
        if !opens && !same_operation(&self.records[slot].head, header) {
            at.out.note(Note::Disagreement);
            return Err(at.identity.mismatch(Posted::from(&self.records[slot].head), Posted::from(header)));
        }
        let Some(elements) = info.given(position, header, at.identity.config.limits.payload) else {
            at.out.note(Note::Violation);
            return Ok(false);
        };
        if opens {
            self.open(at, slot, header);
        }
        let part_at = self.part_at(header.seq, position);
        self.parts[part_at] = frame.into_part(elements);
        let record = &mut self.records[slot];
        record.contributed |= bit;
        record.head.flags |= header.flags & FLAG_REPLAYED;
        if record.contributed == info.all {
            self.complete(at, slot);
        }
        Ok(opens)
    }

    /// There is a fault if the child never gets the result for which it asks.
    pub(in crate::node) fn on_probe(
        &mut self,
        at: &mut At<'_, impl NodeOutput<Buffer = B>>,
        position: usize,
        header: &Header,
    ) -> Result<(), Fault> {
        self.marks.hold(position, header.mark);
        at.out.note(Note::Probe);
        match self.age(header.seq) {
            Age::Current | Age::Next => {
                if self.is_done(header.seq)
                    && let Some(reason) = self.answers[position].give(at.now, header.seq, at.identity.patience_below())
                {
                    return Err(at.identity.between(reason, Link::Child(at.info.members[position].child)));
                }
                return self.answer(at, position, header.seq);
            }
            Age::Old => at.out.note(Note::Stale),
            Age::Beyond => at.out.note(Note::Violation),
        }
        Ok(())
    }

    /// The result came from the parent.
    pub(in crate::node) fn on_result(&mut self, at: &mut At<'_, impl NodeOutput<Buffer = B>>, frame: Frame<'_, B>) {
        let header = frame.header;
        let slot = self.record_at(header.seq);
        let record = &mut self.records[slot];
        if record.state == State::Empty || record.head.seq != header.seq {
            return at.out.note(Note::Stale);
        }
        let next = transition(record.state, Event::Result).filter(|_| same_operation(&record.head, header));
        let Some((next, elements)) = next.and_then(|next| Some((next, at.info.gotten(header)?))) else {
            let note = if record.state == State::Done { Note::Duplicate } else { Note::Violation };
            return at.out.note(note);
        };
        record.part = frame.into_part(elements);
        record.state = next;
        at.out.took(Path::Datagram, Stage::Answer, at.now.since(record.since));
        self.marks.settle(header.mark);
        self.spread(at, slot, at.info.all);
    }

    /// The parent says what it has of the fragments that this node asked about. There is a fault
    /// if the parent never gets what this node sends.
    pub(in crate::node) fn on_held(
        &mut self,
        at: &mut At<'_, impl NodeOutput<Buffer = B>>,
        header: &Header,
        held: Held,
    ) -> Result<(), Fault> {
        let slot = self.record_at(header.seq);
        let record = &mut self.records[slot];
        if record.state != State::Sent || record.head.seq != header.seq || held.have_base != header.seq {
            at.out.note(Note::Stale);
            return Ok(());
        }
        record.above = Some(held);
        let is_there = held.have & 1 != 0;
        if let Some(reason) = record.questions.answer(at.now, is_there) {
            return Err(at.identity.between(reason, Link::Parent));
        }
        if !is_there {
            record.asked = at.now;
            at.out.note(Note::Resent);
            self.send_up(at, slot);
        }
        Ok(())
    }

    pub(in crate::node) fn buffers_held(&self) -> usize {
        self.records.iter().filter(|r| r.part.is_some()).count() + self.parts.iter().flatten().count()
    }

    fn record_at(&self, seq: u64) -> usize {
        (seq % (2 * self.window)) as usize
    }

    fn part_at(&self, seq: u64, position: usize) -> usize {
        (seq % self.window) as usize * self.marks.members() + position
    }

    /// Where a fragment stands relative to the one in its record.
    fn age(&self, seq: u64) -> Age {
        let record = &self.records[self.record_at(seq)];
        let next = match record.state {
            // The first fragment from `start` on that belongs into this record.
            State::Empty => self.start + seq.wrapping_sub(self.start) % (2 * self.window),
            _ if record.head.seq == seq => return Age::Current,
            State::Done => record.head.seq + 2 * self.window,
            _ => return if seq < record.head.seq { Age::Old } else { Age::Beyond },
        };
        if seq < next {
            return Age::Old;
        }
        let before_is_done = seq < self.start + self.window || {
            let before = &self.records[self.record_at(seq - self.window)];
            before.state == State::Done && before.head.seq == seq - self.window
        };
        if seq == next && before_is_done { Age::Next } else { Age::Beyond }
    }

    fn open(&mut self, at: &mut At<'_, impl NodeOutput<Buffer = B>>, slot: usize, header: &Header) {
        let Some(state) = transition(self.records[slot].state, Event::First) else {
            cannot_happen("a record is opened twice")
        };
        let bank = header.seq.checked_sub(self.window).map(|before| self.record_at(before));
        let is_free = |before: usize| matches!(self.records[before].state, State::Empty | State::Done);
        assert!(bank.is_none_or(is_free), "a fragment takes the slot of one that is not done");
        self.records[slot] = Record::new(state, *header, at.now);
    }

    fn complete(&mut self, at: &mut At<'_, impl NodeOutput<Buffer = B>>, slot: usize) {
        let Record { head, state, .. } = self.records[slot];
        let is_root = at.info.duty == Duty::Root;
        let Some(next) = transition(state, if is_root { Event::LastAtRoot } else { Event::Last }) else {
            cannot_happen("a record is complete twice")
        };
        let first = self.part_at(head.seq, 0);
        let parts = &mut self.parts[first..first + at.info.members.len()];
        let hull = Hull::of(parts.iter().flatten());
        let folded =
            parts::fold(&head, hull, parts.iter_mut().filter_map(Option::take), at.info.way_of_folds(), at.out);
        let gathered = at.now.since(self.records[slot].since);
        at.out.note(Note::FragmentFolded);
        at.out.took(Path::Datagram, Stage::Gather, gathered);
        self.folded.add(&head, gathered);
        if is_root && head.is_replayed() {
            at.out.replayed(Path::Datagram, report::result_bytes(&head));
        }
        let record = &mut self.records[slot];
        (record.part, record.state) = (folded, next);
        if is_root {
            self.marks.settle(self.marks.least());
            self.spread(at, slot, at.info.all);
        } else {
            record.since = at.now;
            record.asked = at.now;
            self.send_up(at, slot);
        }
    }

    fn send_up(&mut self, at: &mut At<'_, impl NodeOutput<Buffer = B>>, slot: usize) {
        let header = self.header_up(at, Kind::Contribution, slot);
        match &self.records[slot].part {
            Some(part) => {
                let header = header.carrying(&part.elements, part.bytes);
                let payload = Payload::Data { buffer: &part.buffer, from: 0 };
                at.out.transmit(Target::Parent, Path::Datagram, &header, payload);
            }
            None => at.out.transmit(Target::Parent, Path::Datagram, &header, Payload::None),
        }
    }

    fn header_up(&mut self, at: &At<'_, impl NodeOutput<Buffer = B>>, kind: Kind, slot: usize) -> Header {
        let Some(up) = at.up(kind) else { cannot_happen("nothing is above an inner node") };
        let mark = self.marks.carry();
        about_piece(&self.records[slot].head, mark, up)
    }

    /// Whether there is a contribution to a fragment whose result this member does not hold.
    pub(in crate::node) fn outruns(&self, position: usize) -> bool {
        let held = self.marks.held_by(position);
        self.records.iter().any(|record| record.state != State::Empty && record.head.seq >= held)
    }

    /// Whether the fragment has its result.
    fn is_done(&self, seq: u64) -> bool {
        let record = &self.records[self.record_at(seq)];
        record.state == State::Done && record.head.seq == seq
    }

    /// Answers a child that repeats itself or asks: with the result, or with what this node has.
    /// There is a fault if the parent, which is asked then, never answers.
    fn answer(&mut self, at: &mut At<'_, impl NodeOutput<Buffer = B>>, position: usize, seq: u64) -> Result<(), Fault> {
        let (node, all, child) = (at.identity.config.node, at.info.all, at.info.members[position].child);
        let slot = self.record_at(seq);
        let record = &self.records[slot];
        let current = record.state != State::Empty && record.head.seq == seq;
        if self.is_done(seq) {
            self.spread(at, slot, 1 << child.0);
            return Ok(());
        }
        let (node, missing) = match (current, record.state, record.above) {
            (true, State::Sent, Some(above)) => (above.node, above.missing),
            (true, State::Sent, None) => (node, 0),
            (true, _, _) => (node, all & !record.contributed),
            (false, _, _) => (node, all),
        };
        let ask_up = current && record.state == State::Sent && at.now.since(record.asked) >= ASK_UP_INTERVAL;
        let held = Held { node, missing, have: self.have(child, seq), have_base: seq };
        let header = Header { seq, ..at.down(Kind::Held, child) };
        at.out.transmit(Target::Child(child), Path::Datagram, &header, Payload::Body(&Body::Held(held)));
        if ask_up { self.ask_up(at, slot) } else { Ok(()) }
    }

    fn ask_up(&mut self, at: &mut At<'_, impl NodeOutput<Buffer = B>>, slot: usize) -> Result<(), Fault> {
        let record = &mut self.records[slot];
        record.asked = at.now;
        let verdict = record.questions.ask(at.now, at.identity.signs_from_above, at.identity.config.limits.heartbeat);
        let header = self.header_up(at, Kind::Probe, slot);
        at.out.transmit(Target::Parent, Path::Datagram, &header, Payload::None);
        verdict.map_or(Ok(()), |reason| Err(at.identity.between(reason, Link::Parent)))
    }

    /// Hands the result of a record in state Done to these children.
    fn spread(&self, at: &mut At<'_, impl NodeOutput<Buffer = B>>, slot: usize, targets: u64) {
        let Record { head, part, .. } = &self.records[slot];
        let outcome = Outcome { path: Path::Datagram, head, part: part.as_ref(), stable: self.marks.stable() };
        spread(at, &outcome, targets);
    }

    /// To which of the fragments from `base` on this child has contributed; bit i stands for
    /// fragment `base + i`.
    fn have(&self, child: ChildIndex, base: u64) -> u64 {
        let bit = 1u64 << child.0;
        (0..self.window.min(64)).fold(0, |have, i| {
            let record = &self.records[self.record_at(base + i)];
            let here = record.state != State::Empty && record.head.seq == base + i && record.contributed & bit != 0;
            have | u64::from(here) << i
        })
    }
}

enum Age {
    /// It is the fragment in the record.
    Current,
    /// It is the next one, which may replace that fragment now.
    Next,
    /// It came before that fragment.
    Old,
    /// No correct child may send it yet.
    Beyond,
}

fn same_operation(a: &Header, b: &Header) -> bool {
    let coordinates = |header: &Header| (header.op_seq, header.lane, header.piece());
    a.signature == b.signature && coordinates(a) == coordinates(b)
}

#[cfg(test)]
mod tests;
