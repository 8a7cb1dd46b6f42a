//! For which operations a job's tree is predicted to be at least as fast as the hosts alone.
//!
//! The manager predicts when it admits the job, and the ticket brings it to all ranks. What is
//! looked up in it is a function of the ticket and of a communicator's members, in their order: all
//! members come to the same answer.

use alloc::string::String;
use alloc::vec::Vec;

use trib_wire::Rank;

/// What the ranks of a job are told.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Prediction {
    /// The host of each rank, by rank: equal numbers are the same host.
    pub hosts: Vec<u32>,
    /// The whole job's shape first, then those of its parts.
    pub shapes: Vec<ShapePrediction>,
}

/// A communicator's shape, and what its tree should have.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct ShapePrediction {
    /// Hosts.
    pub hosts: u32,
    /// The most ranks of one host.
    pub ranks_per_host: u32,
    /// The most ranks of one host whose next rank, the first following the last, is on another.
    pub streams: u32,
    /// Vectors of an allreduce, ascending.
    pub allreduce: Vec<Range>,
    /// Vectors of a reduce, ascending.
    pub reduce: Vec<Range>,
    /// Barriers.
    pub barrier: bool,
}

/// Sizes of vectors in bytes, both ends included; `u64::MAX` is no end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Range {
    /// The shortest.
    pub from: u64,
    /// The longest.
    pub to: u64,
}

/// What people are told of a job.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct PredictionStatus {
    /// Which constants the model had, and where they are from.
    pub constants: String,
    /// The rate that was assumed for links whose rate the topology does not tell.
    pub assumed_rate: Option<String>,
    /// Worker threads that the model gave the nodes.
    pub workers: u32,
    /// The whole job.
    pub whole: ShapePrediction,
    /// Allreduces of some sizes.
    pub times: Vec<PredictedTime>,
}

/// An allreduce of all ranks.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct PredictedTime {
    /// The vector.
    pub bytes: u64,
    /// How the job's tree does it.
    pub tree: String,
    /// In so many nanoseconds.
    pub tree_ns: u64,
    /// How the hosts alone do it best.
    pub hosts: String,
    /// In so many nanoseconds.
    pub hosts_ns: u64,
}

impl Prediction {
    /// The prediction for a communicator of these ranks of the job, in its order. `None` where one
    /// of them is no rank of the job, or nothing is known of such a communicator.
    pub fn of(&self, members: &[Rank]) -> Option<&ShapePrediction> {
        let shape = self.shape(members)?;
        let is_whole =
            members.len() == self.hosts.len() && members.iter().enumerate().all(|(at, rank)| rank.0 as usize == at);
        if is_whole {
            return self.shapes.first();
        }
        let Shape { hosts, ranks_per_host, streams } = shape;
        let fits = |row: &&ShapePrediction| {
            // Whether a ring leaves a host once or with all its ranks; what is between favours the
            // hosts' own ways as the first.
            let leaves = if streams >= row.ranks_per_host { row.ranks_per_host } else { 1 };
            row.hosts <= hosts && row.ranks_per_host >= ranks_per_host && row.streams == leaves
        };
        let rows = self.shapes.iter().skip(1).filter(fits);
        rows.max_by_key(|row| (row.hosts, core::cmp::Reverse(row.ranks_per_host)))
    }

    /// Whether it can be what a manager made for a job of so many ranks.
    pub fn is_valid(&self, ranks: usize) -> bool {
        let few = |ranges: &[Range]| ranges.len() <= 2 && ranges.iter().all(|range| range.from <= range.to);
        self.hosts.len() == ranks
            && self.hosts.iter().all(|host| (*host as usize) < ranks)
            && self.shapes.len() <= SHAPES_MAX
            && self.shapes.iter().all(|shape| few(&shape.allreduce) && few(&shape.reduce))
    }

    fn shape(&self, members: &[Rank]) -> Option<Shape> {
        let host = |rank: &Rank| self.hosts.get(rank.0 as usize).copied();
        // How many ranks each host has, and how many of them are followed by one of another.
        let mut counts = alloc::collections::BTreeMap::<u32, (u32, u32)>::new();
        for (at, rank) in members.iter().enumerate() {
            let (here, next) = (host(rank)?, host(&members[(at + 1) % members.len()])?);
            let count = counts.entry(here).or_default();
            count.0 += 1;
            count.1 += u32::from(here != next);
        }
        let ranks_per_host = counts.values().map(|count| count.0).max()?;
        let streams = counts.values().map(|count| count.1).max()?;
        Some(Shape { hosts: counts.len() as u32, ranks_per_host, streams })
    }
}

impl ShapePrediction {
    /// Whether the tree should have an allreduce of so many bytes.
    pub fn has_allreduce(&self, bytes: u64) -> bool {
        self.allreduce.iter().any(|range| range.contains(bytes))
    }
}

impl Range {
    /// Whether a vector of so many bytes is in it.
    pub fn contains(self, bytes: u64) -> bool {
        (self.from..=self.to).contains(&bytes)
    }
}

struct Shape {
    hosts: u32,
    ranks_per_host: u32,
    streams: u32,
}

/// Most shapes: of powers of two as many hosts and ranks as a job may have, two ways to leave a
/// host, and the job's own.
pub const SHAPES_MAX: usize = 1 + 2 * 20 * 21;

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn row(hosts: u32, ranks_per_host: u32, streams: u32, to: u64) -> ShapePrediction {
        let range = Range { from: 0, to };
        ShapePrediction { hosts, ranks_per_host, streams, allreduce: vec![range], reduce: vec![], barrier: true }
    }

    // Four hosts with three ranks each, one host after another.
    fn prediction() -> Prediction {
        let hosts = (0..12).map(|rank| rank / 3).collect();
        let mut shapes = vec![row(4, 3, 1, 100)];
        for hosts in [2, 4] {
            for ranks in [1, 2, 4] {
                for streams in [1, ranks] {
                    shapes.push(row(hosts, ranks, streams, u64::from(1000 * hosts + 10 * ranks + streams)));
                }
            }
        }
        Prediction { hosts, shapes }
    }

    fn of(members: &[u32]) -> u64 {
        let members: Vec<Rank> = members.iter().map(|rank| Rank(*rank)).collect();
        prediction().of(&members).unwrap().allreduce[0].to
    }

    #[test]
    fn the_whole_job_has_a_row_of_its_own_and_its_parts_that_of_their_shape() {
        assert_eq!(of(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]), 100);
        assert_eq!(of(&[0, 3, 6, 9]), 4011, "a rank of each host");
        assert_eq!(of(&[0, 1, 3, 4]), 2021, "two of each of two hosts, in blocks");
        assert_eq!(of(&[0, 3, 1, 4]), 2022, "the same, in turn");
        assert_eq!(of(&[0, 3, 6]), 2011, "fewer hosts than there are");
        assert_eq!(of(&[11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]), 4041, "more ranks on each than there are");
        assert!(prediction().of(&[Rank(12)]).is_none(), "no rank of the job");
        assert!(prediction().of(&[Rank(0), Rank(1)]).is_none(), "one host has no tree to be compared");
    }

    #[test]
    fn what_no_manager_made_is_not_taken() {
        let good = prediction();
        assert!(good.is_valid(12) && !good.is_valid(11));
        let many = Prediction { shapes: vec![row(1, 1, 1, 1); SHAPES_MAX + 1], ..good.clone() };
        assert!(!many.is_valid(12));
        let three = ShapePrediction { reduce: vec![Range { from: 0, to: 1 }; 3], ..row(2, 1, 1, 1) };
        assert!(!Prediction { shapes: vec![three], ..good.clone() }.is_valid(12));
        assert!(!Prediction { hosts: vec![12; 12], ..good }.is_valid(12));
    }
}
