//! What the comparison needs of a fabric: hosts on which ranks run, and counters to read.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// The MPI whose launcher is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mpi {
    /// Open MPI.
    OpenMpi,
    /// MPICH.
    Mpich,
}

/// Ranks of an MPI program, one per host.
#[derive(Clone, Debug)]
pub struct MpiJob {
    /// The MPI whose launcher is used.
    pub mpi: Mpi,
    /// How many ranks.
    pub ranks: u32,
    /// The order in which they fill the hosts.
    pub map: Map,
    /// Variables that every rank gets.
    pub environment: Vec<(String, String)>,
    /// More options of the launcher.
    pub options: Vec<String>,
    /// The program and its arguments.
    pub program: Vec<OsString>,
}

/// Which rank runs on which host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Map {
    /// Neighbouring ranks below the same leaf: rank i on host i.
    ByLeaf,
    /// Neighbouring ranks below different leaves.
    Interleaved,
}

impl Map {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::ByLeaf => "by leaf",
            Self::Interleaved => "interleaved",
        }
    }

    /// The host of every rank, for `ranks` of `hosts` hosts on leaves of `leaf_ports` each.
    pub fn hosts(self, ranks: u32, hosts: u16, leaf_ports: u16) -> Vec<u16> {
        let order: Vec<u16> = match self {
            Self::ByLeaf => (0..hosts).collect(),
            Self::Interleaved => {
                let ports = leaf_ports.max(1);
                (0..ports).flat_map(|port| (port..hosts).step_by(usize::from(ports))).collect()
            }
        };
        (0..ranks as usize).map(|rank| order[rank % order.len().max(1)]).collect()
    }
}

/// What one direction of one link has carried since the fabric was started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkBytes {
    /// `h3` for a host's link, `leaf1` for the trunk above a leaf.
    pub link: String,
    /// Towards the root.
    pub up: bool,
    /// Bytes, every segment's headers counted.
    pub bytes: u64,
    /// Packets, every segment counted.
    pub packets: u64,
}

/// A fabric that runs.
pub trait Network {
    /// Hosts, named h0, h1, ...
    fn hosts(&self) -> u16;
    /// Hosts below one leaf.
    fn leaf_ports(&self) -> u16;
    /// Rate of a host's link, Mbit/s.
    fn rate_mbit(&self) -> f64;
    /// The address of its manager.
    fn manager(&self) -> String;
    /// A command that runs `program` on a host.
    fn command(&self, host: &str, program: &Path) -> Command;
    /// A command that starts an MPI job.
    fn mpirun(&self, job: &MpiJob) -> Result<Command, String>;
    /// What the links have carried; empty where nothing counts it.
    fn counters(&self) -> Vec<LinkBytes>;
    /// Manager and nodes: name and process id.
    fn daemons(&self) -> Vec<(String, u32)>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interleaved_ranks_go_round_the_leaves() {
        assert_eq!(Map::ByLeaf.hosts(4, 4, 2), [0, 1, 2, 3]);
        assert_eq!(Map::Interleaved.hosts(8, 8, 4), [0, 4, 1, 5, 2, 6, 3, 7]);
        assert_eq!(Map::Interleaved.hosts(5, 5, 2), [0, 2, 4, 1, 3]);
        assert_eq!(Map::ByLeaf.hosts(3, 2, 2), [0, 1, 0]);
    }
}
