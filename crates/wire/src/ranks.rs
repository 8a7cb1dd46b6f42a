//! Lists of ranks as strided runs (rule R22: a group consists of ranges, not of listed members).

use alloc::vec::Vec;
use core::fmt;

use crate::bytes::{Reader, Writer};
use crate::error::ParseError;
use crate::ids::Rank;

/// `count` ranks: `first`, `first + stride`, `first + 2 stride`, ...
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Run {
    /// First rank of the run.
    pub first: u32,
    /// Ranks in the run, at least 1.
    pub count: u32,
    /// Step to the next rank, never 0 for two ranks or more.
    pub stride: i32,
}

impl Run {
    fn nth(&self, i: u32) -> Rank {
        Rank((i64::from(self.first) + i64::from(i) * i64::from(self.stride)) as u32)
    }

    fn position(&self, rank: Rank) -> Option<u32> {
        let distance = i64::from(rank.0) - i64::from(self.first);
        if self.count == 1 || self.stride == 0 {
            return (distance == 0).then_some(0);
        }
        let stride = i64::from(self.stride);
        let steps = distance / stride;
        (distance % stride == 0 && steps >= 0 && steps < i64::from(self.count)).then_some(steps as u32)
    }

    fn last(&self) -> i64 {
        i64::from(self.first) + i64::from(self.count - 1) * i64::from(self.stride)
    }
}

/// An ordered list of different ranks; the index of one is its rank inside the group.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RankList {
    runs: Vec<Run>,
}

/// The largest number of runs that one frame may carry; a permutation that needs more is refused
/// with a reason.
pub const RUNS_MAX: usize = 65_535;
/// The largest number of ranks of a job.
pub const WORLD_MAX: u32 = 1 << 20;

impl RankList {
    /// No ranks.
    pub const EMPTY: RankList = RankList { runs: Vec::new() };

    /// Ranks `0..size` in order.
    pub fn world(size: u32) -> Self {
        RankList { runs: if size == 0 { Vec::new() } else { alloc::vec![Run { first: 0, count: size, stride: 1 }] } }
    }

    /// The same list as runs; each run is made as long as possible, from the first rank on.
    pub fn from_ranks(ranks: impl IntoIterator<Item = u32>) -> Self {
        let mut runs: Vec<Run> = Vec::new();
        for rank in ranks {
            if let Some(run) = runs.last_mut() {
                let step = i64::from(rank) - run.last();
                let fits = i32::try_from(step).is_ok() && step != 0;
                if fits && run.count == 1 {
                    *run = Run { count: 2, stride: step as i32, ..*run };
                    continue;
                }
                if fits && step == i64::from(run.stride) {
                    run.count += 1;
                    continue;
                }
            }
            runs.push(Run { first: rank, count: 1, stride: 1 });
        }
        RankList { runs }
    }

    /// How many ranks.
    pub fn len(&self) -> u32 {
        self.runs.iter().map(|r| r.count).sum()
    }

    /// Whether there is no rank at all.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The runs, in order.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The rank at `position`.
    pub fn nth(&self, position: u32) -> Option<Rank> {
        let mut left = position;
        for run in &self.runs {
            if left < run.count {
                return Some(run.nth(left));
            }
            left -= run.count;
        }
        None
    }

    /// The index of `rank` in the list.
    pub fn position(&self, rank: Rank) -> Option<u32> {
        let mut before = 0;
        for run in &self.runs {
            if let Some(i) = run.position(rank) {
                return Some(before + i);
            }
            before += run.count;
        }
        None
    }

    /// Whether `rank` is in the list.
    pub fn contains(&self, rank: Rank) -> bool {
        self.position(rank).is_some()
    }

    /// All ranks in order.
    pub fn iter(&self) -> impl Iterator<Item = Rank> + '_ {
        self.runs.iter().flat_map(|run| (0..run.count).map(move |i| run.nth(i)))
    }

    /// Whether every rank is below `world` and none is in the list twice.
    pub fn is_valid(&self, world: u32) -> bool {
        let total: u64 = self.runs.iter().map(|r| u64::from(r.count)).sum();
        if total == 0 || total > u64::from(world) {
            return false;
        }
        let inside = self.runs.iter().all(|r| {
            let moves = r.count == 1 || (r.count > 1 && r.stride != 0);
            moves && r.first < world && (0..i64::from(world)).contains(&r.last())
        });
        if !inside {
            return false;
        }
        let mut seen = alloc::vec![0u64; world.div_ceil(64) as usize];
        self.iter().all(|rank| {
            let (word, bit) = ((rank.0 / 64) as usize, 1u64 << (rank.0 % 64));
            let fresh = seen[word] & bit == 0;
            seen[word] |= bit;
            fresh
        })
    }

    /// Bytes that `emit` writes.
    pub fn wire_len(&self) -> usize {
        4 + 12 * self.runs.len()
    }

    pub(crate) fn emit(&self, w: &mut Writer<'_>) {
        w.u32(self.runs.len() as u32);
        for run in &self.runs {
            w.u32(run.first);
            w.u32(run.count);
            w.u32(run.stride as u32);
        }
    }

    pub(crate) fn parse(r: &mut Reader<'_>) -> Result<Self, ParseError> {
        let runs = r.u32()? as usize;
        if runs > RUNS_MAX || runs * 12 > r.left() {
            return Err(ParseError::BadField("rank runs"));
        }
        let mut list = RankList { runs: Vec::with_capacity(runs) };
        let mut total = 0u64;
        for _ in 0..runs {
            let run = Run { first: r.u32()?, count: r.u32()?, stride: r.u32()? as i32 };
            total += u64::from(run.count);
            let stands_still = run.count > 1 && run.stride == 0;
            if run.count == 0 || stands_still || total > u64::from(WORLD_MAX) {
                return Err(ParseError::BadField("rank runs"));
            }
            list.runs.push(run);
        }
        Ok(list)
    }
}

impl fmt::Display for RankList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, run) in self.runs.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            match (run.count, run.stride) {
                (1, _) => write!(f, "{}", run.first)?,
                (_, 1) => write!(f, "{}-{}", run.first, run.last())?,
                (_, stride) => write!(f, "{}-{}/{}", run.first, run.last(), stride)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn lists_keep_order_and_position() {
        for ranks in
            [alloc::vec![0u32, 1, 2, 3], alloc::vec![7, 5, 3, 1], alloc::vec![4], alloc::vec![9, 0, 1, 2, 8, 6, 4, 5]]
        {
            let list = RankList::from_ranks(ranks.iter().copied());
            assert_eq!(list.len() as usize, ranks.len());
            assert!(list.iter().map(|r| r.0).eq(ranks.iter().copied()));
            for (i, rank) in ranks.iter().enumerate() {
                assert_eq!(list.nth(i as u32), Some(Rank(*rank)));
                assert_eq!(list.position(Rank(*rank)), Some(i as u32));
            }
            assert_eq!(list.nth(ranks.len() as u32), None);
            assert!(!list.contains(Rank(1000)));
            assert!(list.is_valid(10));
        }
    }

    #[test]
    fn a_rank_twice_or_outside_the_world_is_not_valid() {
        assert!(!RankList::from_ranks([1, 2, 1]).is_valid(4));
        assert!(!RankList::from_ranks([1, 2, 4]).is_valid(4));
        assert!(!RankList::default().is_valid(4));
        let wild = RankList { runs: alloc::vec![Run { first: 3, count: u32::MAX, stride: i32::MIN }] };
        assert!(!wild.is_valid(1000));
        let hollow = Run { first: 0, count: 0, stride: 1 };
        let with_hollow = RankList { runs: alloc::vec![hollow, Run { count: 1, ..hollow }] };
        assert!(!with_hollow.is_valid(1000));
    }

    #[test]
    fn runs_print_short() {
        assert_eq!(RankList::from_ranks([0, 1, 2, 3]).to_string(), "0-3");
        assert_eq!(RankList::from_ranks([8, 6, 4, 1]).to_string(), "8-4/-2,1");
    }
}
