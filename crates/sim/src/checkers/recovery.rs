//! A result that some live rank still lacks can be had from the ranks that are done: it lies in the
//! tail that each of them was told to keep, until all members are known to have it.

use std::ops::Range;

use trib_proto::Path;

use super::{Checkers, streams};

const NAME: &str = "recovery";

impl Checkers {
    /// The rank is done and keeps `tail`.
    pub(super) fn check_tail(&mut self, operation: usize, rank: u32, tail: &Range<u64>) {
        let group = self.operations[operation].group;
        if self.is_disturbed(group) {
            return;
        }
        let lacking = self.operations[operation].members.iter().filter(|m| m.outcome.is_none()).find_map(|m| {
            let missing = m.delivered.missing(&self.gotten(operation, m.rank))?;
            let covered = tail.start <= missing.start && missing.end <= tail.end;
            (!covered).then_some((m.rank, missing))
        });
        if let Some((other, missing)) = lacking {
            let what = format!(
                "{} is complete at rank {rank}, which keeps {tail:?}, but rank {other} lacks {missing:?}",
                self.name(operation)
            );
            self.fail(NAME, what);
        }
    }

    /// The rank was told that every member holds everything below `seq`.
    pub fn stable(&mut self, group: usize, rank: u32, path: Path, seq: u64) {
        if self.is_disturbed(group) {
            return;
        }
        let before = self.stable.insert((group, streams(path), rank), seq).unwrap_or(0);
        if seq < before {
            let what = format!("group {group}: rank {rank} hears of mark {seq} after {before}");
            return self.fail(NAME, what);
        }
        let from = (group, streams(path), before);
        let to = (group, streams(path), seq);
        let lacking = self.pieces.range(from..to).find_map(|((_, _, number), piece)| {
            let operation = &self.operations[piece.operation];
            operation.members.iter().find_map(|m| {
                let gotten = self.gotten(piece.operation, m.rank);
                let wanted = gotten.start.max(piece.range.start)..gotten.end.min(piece.range.end);
                let missing = m.delivered.missing(&wanted)?;
                Some((*number, piece.operation, m.rank, missing))
            })
        });
        if let Some((number, operation, other, missing)) = lacking {
            let what = format!(
                "rank {rank} hears that all have what lies below {seq}, but of number {number}, {}, rank {other} lacks {missing:?}",
                self.name(operation)
            );
            self.fail(NAME, what);
        }
    }
}
