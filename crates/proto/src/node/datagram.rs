//! LLT at a node: a window of slots with two banks, and no timers.
//!
//! Fragment n lives in record n mod 2W. A child sends n only when it holds the result of n - W, so the first
//! contribution to n proves that n - W is complete everywhere and that every child holds the result of n - 2W, the
//! record's last tenant. Two banks are therefore enough, and one is not: its result would have to go while a child that
//! lost it still asks.
//!
//! ```text
//!   Empty --contribution--> Filling --last contribution--> Sent --result from above--> Done
//!                             |  ^                           |                          |
//!                          HELD to who asks               HELD + asks upward     result to who asks
//!   Done(n) --first contribution to n + 2W--> Filling(n + 2W)
//! ```
//! At the group's root the last contribution leads straight to Done.

use trib_wire::body::Held;
use trib_wire::{Body, ChildIndex, Fault, Header, Kind};

use super::group::{Duty, GroupInfo, Posted, mismatch};
use super::output::{NodeOutput, Note, Part, Payload, Stage, Target};
use super::parts;
use super::place::Place;
use super::report::Folded;
use super::results::spread;
use crate::time::Nanos;
use crate::{Path, Token};

/// An aggregate or probe goes up again at most this often per fragment.
const ASK_UP_INTERVAL: Nanos = Nanos::from_millis(1);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Empty,
    Filling,
    Sent,
    Done,
}

#[derive(Clone, Copy)]
struct Record {
    state: State,
    /// First contribution: what the fragment is.
    head: Header,
    /// Children whose contribution is here.
    contributed: u64,
    /// Sent: the aggregate. Done: the result.
    buffer: Option<Part>,
    /// Filling: when the first contribution came. Sent: when the last did.
    since: Nanos,
    /// When the aggregate or a probe last went up.
    asked: Nanos,
    /// What the parent last said about the fragment.
    above: Option<Held>,
}

/// The slots of one group.
pub(super) struct Datagrams {
    /// W.
    window: u64,
    /// 2 W of them: two banks.
    records: Vec<Record>,
    /// W x members: contributions of the bank that is filling.
    pieces: Vec<Option<Part>>,
    /// What each member's ranks all hold, by position.
    marks: Vec<u64>,
    /// What all ranks of the group hold.
    stable: u64,
    folded: Folded,
}

impl Datagrams {
    pub(super) fn new(place: &Place, info: &GroupInfo) -> Datagrams {
        let window = place.config.limits.window as usize;
        let empty = Record {
            state: State::Empty,
            head: place.down(Kind::Contribution, ChildIndex::ALL),
            contributed: 0,
            buffer: None,
            since: Nanos(0),
            asked: Nanos(0),
            above: None,
        };
        Datagrams {
            window: window as u64,
            records: vec![empty; 2 * window],
            pieces: vec![None; window * info.members.len()],
            marks: vec![0; info.members.len()],
            stable: 0,
            folded: Folded::default(),
        }
    }

    /// What was folded so far.
    pub(super) fn folded(&self) -> Folded {
        self.folded
    }

    /// The fragment of this operation that still waits for contributions, if there is one.
    pub(super) fn filling(&self, op_seq: u64) -> Option<&Header> {
        self.records.iter().find(|r| r.state == State::Filling && r.head.op_seq == op_seq).map(|r| &r.head)
    }

    /// A fragment that waits for this child, if there is one.
    pub(super) fn waits_for(&self, child: ChildIndex) -> Option<&Header> {
        let bit = 1u64 << child.0;
        self.records.iter().find(|r| r.state == State::Filling && r.contributed & bit == 0).map(|r| &r.head)
    }

    /// Since when somebody waits for this child to contribute to a fragment.
    pub(super) fn waits_since(&self, child: ChildIndex) -> Option<Nanos> {
        let bit = 1u64 << child.0;
        let waits = |r: &&Record| r.state == State::Filling && r.contributed & bit == 0;
        self.records.iter().filter(waits).map(|r| r.since).min()
    }

    /// Returns whether the contribution opened a new fragment.
    pub(super) fn on_contribution(
        &mut self,
        place: &Place,
        info: &GroupInfo,
        now: Nanos,
        position: usize,
        header: &Header,
        data: Option<Token>,
        out: &mut impl NodeOutput,
    ) -> Result<bool, Fault> {
        let child = info.members[position].child;
        let bit = 1u64 << child.0;
        self.marks[position] = self.marks[position].max(header.mark);
        let at = self.record_at(header.seq);
        let opens = match self.age(header.seq) {
            Age::Current => false,
            Age::Next => true,
            Age::Old => {
                drop_data(data, Note::Stale, out);
                return Ok(false);
            }
            Age::Beyond => {
                drop_data(data, Note::Violation, out);
                return Ok(false);
            }
        };
        if !opens && self.records[at].contributed & bit != 0 {
            drop_data(data, Note::Duplicate, out);
            self.answer(place, info, now, position, at, header.seq, out);
            return Ok(false);
        }
        if !opens && !same_operation(&self.records[at].head, header) {
            drop_data(data, Note::Disagreement, out);
            return Err(mismatch(place, Posted::from(&self.records[at].head), Posted::from(header)));
        }
        if !info.allows(header, place.config.limits.payload) || !info.gives(position, header) {
            drop_data(data, Note::Violation, out);
            return Ok(false);
        }
        if opens {
            self.open(at, now, header, out);
        }
        let piece = data.map(|token| Part { token, window: header.window, len: header.payload_len });
        let slot = self.piece_at(header.seq, position);
        self.pieces[slot] = piece;
        let record = &mut self.records[at];
        record.contributed |= bit;
        if record.contributed == info.all {
            self.complete(place, info, now, at, out);
        }
        Ok(opens)
    }

    pub(super) fn on_probe(
        &mut self,
        place: &Place,
        info: &GroupInfo,
        now: Nanos,
        position: usize,
        header: &Header,
        out: &mut impl NodeOutput,
    ) {
        self.marks[position] = self.marks[position].max(header.mark);
        out.note(Note::Probe);
        match self.age(header.seq) {
            Age::Current | Age::Next => {
                self.answer(place, info, now, position, self.record_at(header.seq), header.seq, out);
            }
            Age::Old => out.note(Note::Stale),
            Age::Beyond => out.note(Note::Violation),
        }
    }

    /// The result came from the parent.
    pub(super) fn on_result(
        &mut self,
        place: &Place,
        info: &GroupInfo,
        now: Nanos,
        header: &Header,
        data: Option<Token>,
        out: &mut impl NodeOutput,
    ) {
        let at = self.record_at(header.seq);
        let record = &mut self.records[at];
        if record.state == State::Empty || record.head.seq != header.seq {
            return drop_data(data, Note::Stale, out);
        }
        match record.state {
            State::Sent if same_operation(&record.head, header) && info.gets(header) => {}
            State::Done => return drop_data(data, Note::Duplicate, out),
            _ => return drop_data(data, Note::Violation, out),
        }
        if let Some(aggregate) = record.buffer.take() {
            out.release(aggregate.token);
        }
        record.buffer = data.map(|token| Part { token, window: header.window, len: header.payload_len });
        record.state = State::Done;
        out.took(Path::Datagram, Stage::Answer, now.since(record.since));
        self.stable = self.stable.max(header.mark);
        let record = self.records[at];
        spread(place, info, &record.head, record.buffer, info.all, self.stable, Path::Datagram, out);
    }

    /// The parent says what it knows of a fragment that we asked about.
    pub(super) fn on_held(
        &mut self,
        place: &Place,
        info: &GroupInfo,
        now: Nanos,
        header: &Header,
        held: Held,
        out: &mut impl NodeOutput,
    ) {
        let at = self.record_at(header.seq);
        let record = &mut self.records[at];
        if record.state != State::Sent || record.head.seq != header.seq || held.have_base != header.seq {
            return out.note(Note::Stale);
        }
        record.above = Some(held);
        if held.have & 1 == 0 {
            record.asked = now;
            out.note(Note::Resent);
            self.send_up(place, info, at, out);
        }
    }

    pub(super) fn drop_buffers(&mut self, out: &mut impl NodeOutput) {
        let records = self.records.iter_mut().filter_map(|r| r.buffer.take());
        for part in records.chain(self.pieces.iter_mut().filter_map(Option::take)) {
            out.release(part.token);
        }
    }

    pub(super) fn tokens_held(&self) -> usize {
        self.records.iter().filter(|r| r.buffer.is_some()).count() + self.pieces.iter().flatten().count()
    }

    fn record_at(&self, seq: u64) -> usize {
        (seq % (2 * self.window)) as usize
    }

    fn piece_at(&self, seq: u64, position: usize) -> usize {
        (seq % self.window) as usize * self.marks.len() + position
    }

    /// Where a fragment stands relative to its record's tenant.
    fn age(&self, seq: u64) -> Age {
        let record = &self.records[self.record_at(seq)];
        let next = match record.state {
            State::Empty => seq % (2 * self.window),
            _ if record.head.seq == seq => return Age::Current,
            State::Done => record.head.seq + 2 * self.window,
            _ => return if seq < record.head.seq { Age::Old } else { Age::Beyond },
        };
        if seq < next {
            return Age::Old;
        }
        let before_is_done = seq < self.window || {
            let before = &self.records[self.record_at(seq - self.window)];
            before.state == State::Done && before.head.seq == seq - self.window
        };
        if seq == next && before_is_done { Age::Next } else { Age::Beyond }
    }

    fn open(&mut self, at: usize, now: Nanos, header: &Header, out: &mut impl NodeOutput) {
        let record = &mut self.records[at];
        if let Some(result) = record.buffer.take() {
            out.release(result.token);
        }
        *record = Record {
            state: State::Filling,
            head: *header,
            contributed: 0,
            buffer: None,
            since: now,
            asked: Nanos(0),
            above: None,
        };
    }

    fn complete(&mut self, place: &Place, info: &GroupInfo, now: Nanos, at: usize, out: &mut impl NodeOutput) {
        let head = self.records[at].head;
        let first = self.piece_at(head.seq, 0);
        let pieces = &mut self.pieces[first..first + info.members.len()];
        let folded = parts::fold(&head, pieces.iter_mut().map(Option::take), out);
        let gathered = now.since(self.records[at].since);
        out.note(Note::FragmentFolded);
        out.took(Path::Datagram, Stage::Gather, gathered);
        self.folded.add(&head, gathered);
        let mark = self.marks.iter().copied().min().unwrap_or(0);
        let record = &mut self.records[at];
        record.buffer = folded;
        if info.duty == Duty::Root {
            record.state = State::Done;
            self.stable = self.stable.max(mark);
            spread(place, info, &head, folded, info.all, self.stable, Path::Datagram, out);
        } else {
            record.state = State::Sent;
            record.since = now;
            record.asked = now;
            self.send_up(place, info, at, out);
        }
    }

    fn send_up(&self, place: &Place, info: &GroupInfo, at: usize, out: &mut impl NodeOutput) {
        let record = &self.records[at];
        let Some(header) = self.header_up(place, info, Kind::Contribution, &record.head) else { return };
        match record.buffer {
            Some(part) => {
                let header = Header { window: part.window, payload_len: part.len, ..header };
                let payload = Payload::Data { token: part.token, from: 0 };
                out.transmit(Target::Parent, Path::Datagram, &header, payload);
            }
            None => out.transmit(Target::Parent, Path::Datagram, &header, Payload::None),
        }
    }

    fn header_up(&self, place: &Place, info: &GroupInfo, kind: Kind, head: &Header) -> Option<Header> {
        let up = info.up(place, kind)?;
        let mark = self.marks.iter().copied().min().unwrap_or(0);
        Some(Header {
            flags: head.flags,
            lane: head.lane,
            signature: head.signature,
            witness: head.witness,
            op_seq: head.op_seq,
            seq: head.seq,
            offset: head.offset,
            extent: head.extent,
            mark,
            ..up
        })
    }

    /// Answers a child that repeats itself or asks: with the result, or with what is missing.
    fn answer(
        &mut self,
        place: &Place,
        info: &GroupInfo,
        now: Nanos,
        position: usize,
        at: usize,
        seq: u64,
        out: &mut impl NodeOutput,
    ) {
        let child = info.members[position].child;
        let record = &self.records[at];
        let current = record.state != State::Empty && record.head.seq == seq;
        if current && record.state == State::Done {
            let (head, buffer) = (record.head, record.buffer);
            return spread(place, info, &head, buffer, 1 << child.0, self.stable, Path::Datagram, out);
        }
        let (node, missing) = match (current, record.state, record.above) {
            (true, State::Sent, Some(above)) => (above.node, above.missing),
            (true, State::Sent, None) => (place.config.node, 0),
            (true, _, _) => (place.config.node, info.all & !record.contributed),
            (false, _, _) => (place.config.node, info.all),
        };
        let ask_up = current && record.state == State::Sent && now.since(record.asked) >= ASK_UP_INTERVAL;
        let held = Held { node, missing, have: self.have(child, seq), have_base: seq };
        let header = Header { seq, ..info.down(place, Kind::Held, child) };
        out.transmit(Target::Child(child), Path::Datagram, &header, Payload::Body(&Body::Held(held)));
        if ask_up {
            self.records[at].asked = now;
            let head = self.records[at].head;
            if let Some(header) = self.header_up(place, info, Kind::Probe, &head) {
                out.transmit(Target::Parent, Path::Datagram, &header, Payload::None);
            }
        }
    }

    /// Which of the fragments from `base` on this child has contributed to.
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
    /// The record's tenant.
    Current,
    /// May move in now.
    Next,
    /// Before the tenant.
    Old,
    /// After what any correct child may send.
    Beyond,
}

fn same_operation(a: &Header, b: &Header) -> bool {
    let place = |header: &Header| (header.op_seq, header.lane, header.offset, header.extent);
    a.signature == b.signature && place(a) == place(b)
}

fn drop_data(data: Option<Token>, note: Note, out: &mut impl NodeOutput) {
    if let Some(token) = data {
        out.release(token);
    }
    out.note(note);
}
