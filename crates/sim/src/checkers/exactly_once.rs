//! Every element is contributed once and received once: nothing is read after it may be gone,
//! nothing is delivered twice or outside its range, and nothing is complete before all of it has
//! come.

use std::ops::Range;

use trib_proto::window;
use trib_wire::{Collective, Fault, Header};

use super::{Checkers, Ending, Piece};
use crate::symbol::Value;

const NAME: &str = "exactly_once";

impl Checkers {
    /// The rank sends these elements of its input as the fragment or segment that the header names.
    pub fn reads(&mut self, operation: usize, rank: u32, range: Range<u64>, header: &Header) {
        let group = self.operations[operation].group;
        let (size, position) = (self.size(group), self.position(group, rank));
        let is_kept = self.keeps(operation, rank, &range);
        let recovers = self.recovers;
        let member = self.member(operation, rank);
        let over = member.outcome.is_some() && !is_kept;
        let given = member.signature.map_or(0..0, |s| window::given(&s, size, position));
        let computes = member.signature.is_some_and(|s| s.collective.computes());
        // A job that recovers may need the input again until the operation is over: its driver has
        // results put aside.
        let overwritten = computes && !recovers && member.delivered.meets(&range);
        let wrong = if over {
            "after the operation is complete"
        } else if range.start < given.start || range.end > given.end {
            "outside what the rank gives"
        } else if overwritten {
            "after the result was delivered there (it may be in place)"
        } else {
            self.check_sent(rank, group, header);
            let piece = Piece { operation, range: header.piece() };
            return self.check_piece((group, header.is_stream(), header.seq), piece);
        };
        let what = format!("{}: rank {rank} reads elements {range:?} of its input {wrong}", self.name(operation));
        self.fail(NAME, what);
    }

    /// A frame's payload has been read straight into the result.
    pub fn placed(&mut self, operation: usize, rank: u32, from: u64, value: &Value) {
        let range = from..from + u64::from(value.len());
        if self.member(operation, rank).outcome.is_some() {
            let what = format!(
                "{}: a frame is read into elements {range:?} of rank {rank}'s result after completion",
                self.name(operation)
            );
            return self.fail(NAME, what);
        }
        self.check_inside(operation, rank, &range);
        self.check_value(operation, rank, from, value);
    }

    /// The rank receives these elements.
    pub fn delivered(&mut self, operation: usize, rank: u32, from: u64, value: &Value) {
        let range = from..from + u64::from(value.len());
        self.check_inside(operation, rank, &range);
        let member = self.member(operation, rank);
        let over = member.outcome.is_some();
        let fresh = member.delivered.add(range.clone());
        if over || !fresh {
            let how = if over { "after completion" } else { "twice" };
            let what = format!("{}: elements {range:?} are delivered to rank {rank} {how}", self.name(operation));
            self.fail(NAME, what);
        }
        self.check_value(operation, rank, from, value);
        self.progress(rank);
    }

    /// The operation is over at this rank; `queued` says that elements of its input still wait to
    /// be written.
    pub fn completed(&mut self, operation: usize, rank: u32, outcome: Result<Range<u64>, Fault>, queued: bool) {
        if let Err(fault) = &outcome {
            self.check_soon(self.operations[operation].group, fault);
        }
        self.progress(rank);
        let signature = self.work.operations[operation].signature;
        let missing = self.operations[operation].members.iter().find(|m| m.rank == rank);
        let missing = missing.and_then(|member| self.lacks_any(operation, member));
        let member = self.member(operation, rank);
        let twice = member.outcome.is_some();
        member.outcome = Some(outcome.clone());
        if twice {
            let what = format!("{} completes twice at rank {rank}", self.name(operation));
            return self.fail(NAME, what);
        }
        let ending = Ending { rank, at: self.now, fault: outcome.as_ref().err().copied() };
        self.operations[operation].endings.push(ending);
        self.check_agreement(operation, rank, ending.fault);
        match outcome {
            Err(fault) => self.check_fault(operation, rank, &fault),
            Ok(kept) => {
                self.check_success(operation, rank, missing, queued);
                if signature.collective == Collective::Barrier {
                    self.check_barrier(operation, rank);
                }
                self.check_kept(operation, rank, &kept);
            }
        }
    }

    /// A number means the same piece to all ranks, in all epochs.
    fn check_piece(&mut self, (group, stream, seq): (usize, bool, u64), piece: Piece) {
        let signature = self.work.operations[piece.operation].signature;
        if window::vector_elements(&signature, self.size(group)).is_none_or(|total| total == piece.range.end) {
            self.operations[piece.operation].end = Some((stream, seq + 1));
        }
        let is_new = *self.pieces.entry((group, stream, seq)).or_insert_with(|| piece.clone()) == piece;
        if !is_new && self.work.groups[group].disturbed.is_none() {
            let what = format!("number {seq} of group {group} is {piece:?}, and was another piece");
            self.fail(NAME, what);
        }
    }

    fn check_success(&mut self, operation: usize, rank: u32, missing: Option<Range<u64>>, queued: bool) {
        if self.work.operations[operation].odd.is_some() {
            return self.check_odd_success(operation, rank);
        }
        if let Some(missing) = missing {
            let what = format!("{} is complete at rank {rank} without elements {missing:?}", self.name(operation));
            self.fail(NAME, what);
        }
        if queued {
            let what =
                format!("{} is complete at rank {rank} while its input still waits to be sent", self.name(operation));
            self.fail(NAME, what);
        }
    }

    fn check_barrier(&mut self, operation: usize, rank: u32) {
        let members = &self.operations[operation].members;
        if let Some(absent) = members.iter().find(|m| !m.posted) {
            let what = format!("{} ends at rank {rank} before rank {} has entered", self.name(operation), absent.rank);
            self.fail(NAME, what);
        }
    }

    fn check_inside(&mut self, operation: usize, rank: u32, range: &Range<u64>) {
        let gotten = self.gotten(operation, rank);
        let odd = self.work.operations[operation].odd.is_some();
        if !odd && (range.start < gotten.start || range.end > gotten.end) {
            let what = format!("{}: rank {rank} gets elements {range:?}, its part is {gotten:?}", self.name(operation));
            self.fail(NAME, what);
        }
    }
}
