//! Which elements of an operation's vector a rank gives and gets.
//!
//! Every collective is one fold over a vector: what differs is which part of it each rank gives and
//! which part each rank gets. A node only ever asks for the hull over the ranks below a child.
//!
//! | collective     | vector      | a rank gives        | a rank gets         |
//! |----------------|-------------|---------------------|---------------------|
//! | barrier        | empty       | nothing             | nothing             |
//! | allreduce      | count       | all                 | all                 |
//! | reduce         | count       | all                 | root: all           |
//! | bcast          | count       | root: all           | all but root: all   |
//! | reduce-scatter | size x count| all                 | block of its rank   |
//! | allgather      | size x count| block of its rank   | all                 |
//!
//! Pieces of an allgather that lie inside a rank's own block it has already, and does not get.

use core::ops::Range;

use trib_wire::{Collective, RankList, Signature};

/// The elements of the vector, in a group of `size` ranks; `None` if they take 2^63 bytes or more.
#[inline]
pub fn vector_elements(signature: &Signature, size: u32) -> Option<u64> {
    let block = signature.count;
    let elements = match signature.collective {
        Collective::Barrier => 0,
        Collective::Allreduce | Collective::Reduce | Collective::Bcast => block,
        Collective::ReduceScatter | Collective::Allgather => block.checked_mul(u64::from(size))?,
    };
    let bytes = signature.layout().most(&(0..elements.max(block)));
    (bytes < 1 << 63).then_some(elements)
}

/// The bytes that the vector takes on the wire; `None` if they are 2^63 or more.
pub fn vector_bytes(signature: &Signature, size: u32) -> Option<u64> {
    vector_elements(signature, size).map(|elements| signature.layout().most(&(0..elements)))
}

/// The elements of the vector that group rank `rank` gives, and those that it gets.
#[inline]
pub fn shares(signature: &Signature, size: u32, rank: u32) -> (Range<u64>, Range<u64>) {
    if signature.collective == Collective::Barrier {
        return (0..0, 0..0);
    }
    let len = vector_elements(signature, size).unwrap_or(0);
    (given_of(signature, len, rank), gotten_of(signature, len, rank))
}

/// The elements of the vector that group rank `rank` gives.
#[inline]
pub fn given(signature: &Signature, size: u32, rank: u32) -> Range<u64> {
    given_of(signature, vector_elements(signature, size).unwrap_or(0), rank)
}

/// The same of a vector of `len` elements.
#[inline]
fn given_of(signature: &Signature, len: u64, rank: u32) -> Range<u64> {
    match signature.collective {
        Collective::Bcast if rank != signature.root => 0..0,
        Collective::Allgather => block_range(signature.count, rank),
        _ => 0..len,
    }
}

/// The elements of the vector that group rank `rank` gets.
#[inline]
pub fn gotten(signature: &Signature, size: u32, rank: u32) -> Range<u64> {
    gotten_of(signature, vector_elements(signature, size).unwrap_or(0), rank)
}

/// The same of a vector of `len` elements.
#[inline]
fn gotten_of(signature: &Signature, len: u64, rank: u32) -> Range<u64> {
    match signature.collective {
        Collective::Reduce if rank != signature.root => 0..0,
        Collective::Bcast if rank == signature.root => 0..0,
        Collective::ReduceScatter => block_range(signature.count, rank),
        _ => 0..len,
    }
}

/// The hull, inside `piece`, of what the group ranks in `ranks` give; empty if they give
/// nothing.
pub fn given_by(signature: &Signature, ranks: &RankList, piece: &Range<u64>) -> Range<u64> {
    match signature.collective {
        Collective::Bcast if !ranks.iter_contains(signature.root) => empty(piece),
        Collective::Allgather => blocks_hull(signature, ranks, piece),
        _ => piece.clone(),
    }
}

/// The hull, inside `piece`, of what the group ranks in `ranks` get; empty if they get nothing.
pub fn gotten_by(signature: &Signature, ranks: &RankList, piece: &Range<u64>) -> Range<u64> {
    match signature.collective {
        Collective::Reduce if !ranks.iter_contains(signature.root) => empty(piece),
        Collective::Bcast if ranks.len() == 1 && ranks.iter_contains(signature.root) => empty(piece),
        Collective::ReduceScatter => blocks_hull(signature, ranks, piece),
        Collective::Allgather if ranks.len() == 1 => {
            let own = ranks.nth(0).map(|rank| block_range(signature.count, rank.0));
            if own.is_some_and(|own| has(signature, &own, piece)) { empty(piece) } else { piece.clone() }
        }
        _ => piece.clone(),
    }
}

/// Whether a rank that gives the elements `own` has a piece of the result already: of an allgather
/// what lies inside its block.
pub fn has(signature: &Signature, own: &Range<u64>, piece: &Range<u64>) -> bool {
    signature.collective == Collective::Allgather && own.start <= piece.start && piece.end <= own.end
}

fn block_range(block: u64, rank: u32) -> Range<u64> {
    let start = block * u64::from(rank);
    start..start + block
}

fn empty(piece: &Range<u64>) -> Range<u64> {
    piece.start..piece.start
}

fn blocks_hull(signature: &Signature, ranks: &RankList, piece: &Range<u64>) -> Range<u64> {
    let block = signature.count;
    if block == 0 || piece.is_empty() {
        return empty(piece);
    }
    let first = piece.start / block;
    let last = (piece.end - 1) / block;
    let mut hull: Option<(u64, u64)> = None;
    for run in ranks.runs() {
        if let Some((low, high)) = run_span(run, first, last) {
            let (a, b) = hull.unwrap_or((low, high));
            hull = Some((a.min(low), b.max(high)));
        }
    }
    match hull {
        None => empty(piece),
        Some((low, high)) => (low * block).max(piece.start)..((high + 1) * block).min(piece.end),
    }
}

/// The smallest and the largest member of a run that are in `first..=last`.
fn run_span(run: &trib_wire::ranks::Run, first: u64, last: u64) -> Option<(u64, u64)> {
    let stride = i64::from(run.stride);
    let (start, steps) = (i64::from(run.first), i64::from(run.count) - 1);
    let (low, high, step) = match stride {
        0 => (start, start, 1),
        s if s > 0 => (start, start + steps * s, s),
        s => (start + steps * s, start, -s),
    };
    let (first, last) = (i64::try_from(first).ok()?, i64::try_from(last).unwrap_or(i64::MAX));
    let from = if first <= low { low } else { low + (first - low + step - 1) / step * step };
    let to = if last >= high { high } else { low + (last - low).div_euclid(step) * step };
    (from <= to && from >= first && to >= low && to <= last).then_some((from as u64, to as u64))
}

/// Whether a list of group ranks has one of them.
trait IterContains {
    fn iter_contains(&self, rank: u32) -> bool;
}

impl IterContains for RankList {
    fn iter_contains(&self, rank: u32) -> bool {
        self.contains(trib_wire::Rank(rank))
    }
}

#[cfg(test)]
mod tests;
