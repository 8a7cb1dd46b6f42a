//! A result that some live rank still lacks can be folded again: the ranks that are done were told
//! to keep their contributions to it, until all members are known to have it.

use std::ops::Range;

use trib_proto::{Nanos, Path, window};
use trib_wire::{Header, Way};

use super::{Checkers, streams};

const NAME: &str = "recovery";

impl Checkers {
    /// Whether the rank keeps its contribution to these elements of an operation that is over.
    pub(super) fn keeps(&self, operation: usize, rank: u32, range: &Range<u64>) -> bool {
        let members = &self.operations[operation].members;
        members.iter().find(|m| m.rank == rank).is_some_and(|m| {
            let kept = m.kept.as_ref();
            kept.is_some_and(|kept| kept.start <= range.start && range.end <= kept.end)
        })
    }

    /// What a rank keeps at the end.
    pub fn check_nothing_kept(&mut self, rank: u32) {
        let of_rank = |o: &super::Operation| o.members.iter().any(|m| m.rank == rank && m.kept.is_some());
        let kept = (0..self.operations.len()).find(|op| of_rank(&self.operations[*op]));
        if let Some(operation) = kept.filter(|_| !self.may_fail()) {
            let what = format!("{} is kept by rank {rank} after all have freed its group", self.name(operation));
            self.fail(NAME, what);
        }
    }

    /// A rank frees a group. If all its members have rested for a while, with everything that was
    /// posted complete everywhere, they know it of each other and keep nothing.
    pub(super) fn check_rested(&mut self, group: usize, rank: u32) {
        if self.is_disturbed(group) || !self.recovers {
            return;
        }
        let own = || self.operations.iter().filter(|operation| operation.group == group);
        let is_over = |operation: &super::Operation| {
            operation.members.iter().all(|m| m.outcome.is_some()) || operation.members.iter().all(|m| !m.posted)
        };
        let last = own().flat_map(|operation| &operation.endings).map(|ending| ending.at).max();
        // A node that dies silently is missed later than others. The process that is to take the
        // place of a dead one may be dead itself, and is asked in vain first.
        let rest = if self.moved || self.dies_silently || self.bereft { REST_AFTER_MOVE } else { REST };
        let rests = last.is_some_and(|last| self.now >= last.max(self.calm_at) + rest);
        if !rests || !self.groups[group].freed.is_empty() || !own().all(is_over) {
            return;
        }
        let keeps = |operation: &super::Operation| operation.members.iter().any(|m| m.rank == rank && m.kept.is_some());
        let kept = self.operations.iter().position(|operation| operation.group == group && keeps(operation));
        if let Some(operation) = kept {
            let what =
                format!("{} is kept by rank {rank} though its group has rested for {rest} s", self.name(operation));
            self.fail(NAME, what);
        }
    }

    /// The rank is done and keeps its contribution to `kept`.
    pub(super) fn check_kept(&mut self, operation: usize, rank: u32, kept: &Range<u64>) {
        let group = self.operations[operation].group;
        self.keep(operation, rank, (!kept.is_empty()).then(|| kept.clone()));
        self.check_bound(group, rank);
        if self.is_disturbed(group) || !self.recovers {
            return;
        }
        let given = self.given(operation, rank);
        let lacking = self.operations[operation].members.iter().filter(|m| m.outcome.is_none()).find_map(|m| {
            let needed = self.lacks(operation, m, &given)?;
            let covered = kept.start <= needed.start && needed.end <= kept.end;
            (!covered).then_some((m.rank, needed))
        });
        if let Some((other, missing)) = lacking {
            let what = format!(
                "{} is complete at rank {rank}, which keeps {kept:?}, but rank {other} lacks {missing:?}",
                self.name(operation)
            );
            self.fail(NAME, what);
        }
    }

    fn keep(&mut self, operation: usize, rank: u32, kept: Option<Range<u64>>) {
        let layout = self.work.operations[operation].signature.layout();
        let bytes = |range: Option<&Range<u64>>| range.map_or(0, |range| layout.bytes(range, Way::FromRank));
        let before = std::mem::replace(&mut self.member(operation, rank).kept, kept.clone());
        let room = &mut self.rooms[rank as usize];
        room.kept = room.kept - bytes(before.as_ref()) + bytes(kept.as_ref());
    }

    /// The rank sends a piece of a group, and says whether an earlier epoch has sent it. While
    /// it keeps as much as it may it sends no fragment for the first time. Segments are another
    /// matter: room is asked for with the lock.
    pub(super) fn check_sent(&mut self, rank: u32, group: usize, header: &Header) {
        let room = &mut self.rooms[rank as usize];
        let sent = room.sent.entry((group, header.is_stream())).or_default();
        if header.epoch.0 != sent.epoch {
            (sent.epoch, sent.before) = (header.epoch.0, sent.end);
        }
        let (is_new, is_replayed) = (header.seq >= sent.end, header.seq < sent.before);
        sent.end = sent.end.max(header.seq + 1);
        if header.is_replayed() != is_replayed {
            let what = format!("rank {rank} sends {header}, and has sent what lies below {} before", sent.before);
            return self.fail(NAME, what);
        }
        if is_new && !header.is_stream() && room.kept >= room.most {
            let what = format!(
                "rank {rank} sends number {} of group {group}, and keeps {} of {} bytes for others",
                header.seq, room.kept, room.most
            );
            self.fail(NAME, what);
        }
    }

    /// What a rank keeps of a group is bounded. What an operation is kept for when it ends lies
    /// within the last window or flight, and ends there or later. Results of fragments come in any
    /// order within a window. An operation is kept as a whole until nothing of it is needed.
    fn check_bound(&mut self, group: usize, rank: u32) {
        let limits = self.limits;
        let (mut fragments, mut segments) = (0, 0);
        for (number, operation) in self.operations.iter().enumerate().filter(|(_, o)| o.group == group) {
            let kept = operation.members.iter().find(|m| m.rank == rank).and_then(|m| m.kept.clone());
            let Some(kept) = kept.filter(|kept| !kept.is_empty()) else { continue };
            let signature = self.work.operations[number].signature;
            let Some(total) = window::vector_elements(&signature, self.size(group)) else { continue };
            let layout = signature.layout();
            if layout.most(&(0..total)) > limits.stream_threshold {
                segments += (kept.end - kept.start).div_ceil(u64::from(limits.segment_for(total, layout)));
            } else {
                fragments += (kept.end - kept.start).div_ceil(u64::from(limits.fragment_for(layout)));
            }
        }
        if fragments > 3 * u64::from(limits.window) || segments > 2 * u64::from(limits.flight) {
            let what = format!("rank {rank} keeps {fragments} fragments and {segments} segments of group {group}");
            self.fail(NAME, what);
        }
    }

    /// The rank was told that nobody needs its contribution any more.
    pub fn forgotten(&mut self, operation: usize, rank: u32) {
        let group = self.operations[operation].group;
        self.keep(operation, rank, None);
        if self.is_disturbed(group) {
            return;
        }
        let members = &self.operations[operation].members;
        let lacking = members.iter().find_map(|m| Some((m.rank, self.lacks_any(operation, m)?)));
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
        self.heard.push((group, streams(path), rank, seq));
        let from = (group, streams(path), before);
        let to = (group, streams(path), seq);
        let lacking = self.pieces.range(from..to).find_map(|((_, _, number), piece)| {
            let operation = &self.operations[piece.operation];
            operation.members.iter().find_map(|m| {
                let missing = self.lacks(piece.operation, m, &piece.range)?;
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

    /// What a rank keeps is empty of all that it has just heard to be stable.
    pub(super) fn check_forgotten(&mut self) {
        for (group, stream, rank, seq) in std::mem::take(&mut self.heard) {
            let is_stable = |end: Option<(bool, u64)>| end.is_some_and(|end| end.0 == stream && end.1 <= seq);
            let keeps = |operation: &super::Operation| {
                operation.members.iter().any(|member| member.rank == rank && member.kept.is_some())
            };
            let left = self.operations.iter().position(|o| o.group == group && is_stable(o.end) && keeps(o));
            if let Some(operation) = left {
                let what = format!("{} is kept by rank {rank}, which knows that all have it", self.name(operation));
                self.fail(NAME, what);
            }
        }
    }
}

/// How long a group has rested when all its members know that they have everything.
const REST: Nanos = Nanos::from_millis(1_000);
/// The same where nodes may have to be found first.
const REST_AFTER_MOVE: Nanos = Nanos::from_millis(25_000);
