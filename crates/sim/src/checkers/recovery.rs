//! A result that some live rank still lacks can be folded again: the ranks that are done were told
//! to keep their contributions to it, until all members are known to have it.

use std::ops::Range;

use trib_proto::Path;

use super::{Checkers, streams};

const NAME: &str = "recovery";

impl Checkers {
    /// The rank is done and keeps its contribution to `kept`.
    pub(super) fn check_kept(&mut self, operation: usize, rank: u32, kept: &Range<u64>) {
        let group = self.operations[operation].group;
        if self.is_disturbed(group) || !self.recovers {
            return;
        }
        let given = self.given(operation, rank);
        let lacking = self.operations[operation].members.iter().filter(|m| m.outcome.is_none()).find_map(|m| {
            let missing = m.delivered.missing(&self.gotten(operation, m.rank))?;
            let needed = missing.start.max(given.start)..missing.end.min(given.end);
            let covered = needed.is_empty() || (kept.start <= needed.start && needed.end <= kept.end);
            (!covered).then_some((m.rank, missing))
        });
        if let Some((other, missing)) = lacking {
            let what = format!(
                "{} is complete at rank {rank}, which keeps {kept:?}, but rank {other} lacks {missing:?}",
                self.name(operation)
            );
            self.fail(NAME, what);
        }
    }

    /// The rank was told that nobody needs its contribution any more.
    pub fn forgotten(&mut self, operation: usize, rank: u32) {
        let group = self.operations[operation].group;
        if self.is_disturbed(group) {
            return;
        }
        let members = &self.operations[operation].members;
        let lacking =
            members.iter().find_map(|m| Some((m.rank, m.delivered.missing(&self.gotten(operation, m.rank))?)));
        if let Some((other, missing)) = lacking {
            let what =
                format!("{} is forgotten by rank {rank}, but rank {other} lacks {missing:?}", self.name(operation));
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
