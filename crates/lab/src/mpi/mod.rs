//! Starting the ranks of an MPI program on a laboratory's hosts.
//!
//! The MPI's own launcher runs on `h0` and reaches the other hosts through `trib lab remote`, which
//! stands in for ssh. Hosts have names and memory of their own, so an MPI sees that ranks on
//! different hosts share no memory.

mod mca;
mod mpich;
mod open_mpi;

use std::ffi::OsString;
use std::process::Command;

use crate::lab::{Lab, LabError};
use crate::topology::{FatTree, Topology};

/// An MPI that can start ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mpi {
    /// Open MPI, found as `mpirun.openmpi` or `mpirun`.
    OpenMpi,
    /// MPICH, found as `mpirun.mpich` or `mpiexec.hydra`.
    Mpich,
}

/// The order in which hosts get ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Map {
    /// h0, h1, h2, ...: neighbours in rank are below the same leaf.
    ByLeaf,
    /// h0, h4, h1, h5, ... where leaves have four ports: neighbours in rank are below different
    /// leaves.
    Interleaved,
}

/// Which ranks a host gets if it gets several.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// Ranks are dealt out: each host gets one in turn, and after the last host the first one gets
    /// the next.
    Cyclic,
    /// Neighbours in rank share a host: the first host gets the first ranks, as many as it is to
    /// have, and so on.
    Block,
}

/// What to start, and how.
#[derive(Clone, Debug)]
pub struct MpiLaunch {
    /// The MPI that starts the ranks.
    pub mpi: Mpi,
    /// The number of ranks.
    pub ranks: u32,
    /// The order in which hosts get ranks.
    pub map: Map,
    /// How many ranks each host gets; the last hosts get none if there are more hosts than that
    /// takes. `None`: ranks are spread evenly over all hosts.
    pub ranks_per_host: Option<u32>,
    /// Which ranks share a host.
    pub placement: Placement,
    /// Variables that the ranks find in their environment besides those of the launcher.
    pub env: Vec<(String, String)>,
    /// More options for the launcher.
    pub options: Vec<String>,
    /// Program and arguments.
    pub program: Vec<OsString>,
}

impl Lab {
    /// The command that starts the ranks and ends when they have ended. When it is killed,
    /// everything that it started is killed too. [`crate::run::run`] does the same after a time
    /// limit.
    ///
    /// # Errors
    /// [`LabError::Unavailable`] when the MPI is not installed, or when the laboratory has no
    /// hosts.
    pub fn mpirun(&self, launch: &MpiLaunch) -> Result<Command, LabError> {
        let Topology::FatTree(tree) = self.topology() else {
            return Err(LabError::Unavailable("it runs on loopback, without hosts".to_owned()));
        };
        let (hosts, slots) = launch.hosts(order(tree, launch.map))?;
        let (names, arguments, environment) = match launch.mpi {
            Mpi::OpenMpi => {
                let arguments = open_mpi::arguments(self.trib(), &hosts, slots, launch)?;
                (open_mpi::LAUNCHERS, arguments, open_mpi::ENVIRONMENT)
            }
            Mpi::Mpich => (mpich::LAUNCHERS, mpich::arguments(self.trib(), &hosts, slots, launch), mpich::ENVIRONMENT),
        };
        let launcher = names.iter().find(|name| is_installed(name)).ok_or_else(|| {
            LabError::Unavailable(format!(
                "{} is not installed; Debian has it as {}",
                launch.mpi.name(),
                launch.mpi.package()
            ))
        })?;
        // A launcher may hand on all of its own environment, and with it the name of the one host
        // on which it runs. A rank without this variable goes by its own host's name.
        let mut command = self.command("h0", "env");
        command
            .args(["-u", "TRIB_HOST", launcher])
            .args(arguments)
            .args(&launch.program)
            .envs(environment.iter().copied());
        Ok(command)
    }
}

impl MpiLaunch {
    /// The hosts that get ranks, and the largest number of ranks on one of them.
    fn hosts(&self, mut hosts: Vec<String>) -> Result<(Vec<String>, u32), LabError> {
        let there = u32::try_from(hosts.len()).unwrap_or(u32::MAX);
        let slots = self.ranks_per_host.unwrap_or_else(|| self.ranks.div_ceil(there)).max(1);
        let used = self.ranks.div_ceil(slots);
        if used > there {
            let (ranks, most) = (self.ranks.into(), u64::from(there) * u64::from(slots));
            return Err(LabError::Shape { what: "ranks, at so many a host,", given: ranks, least: 1, most });
        }
        let used = if self.ranks_per_host.is_some() || self.placement == Placement::Block { used } else { self.ranks };
        hosts.truncate(usize::try_from(used).unwrap_or(usize::MAX));
        Ok((hosts, slots))
    }
}

impl Mpi {
    /// The name as its developers write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenMpi => "Open MPI",
            Self::Mpich => "MPICH",
        }
    }

    fn package(self) -> &'static str {
        match self {
            Self::OpenMpi => "openmpi-bin",
            Self::Mpich => "mpich",
        }
    }
}

/// The hosts in the order in which they get ranks.
fn order(tree: &FatTree, map: Map) -> Vec<String> {
    let FatTree { hosts, leaf_ports: ports, .. } = *tree;
    let name = crate::topology::host_name;
    match map {
        Map::ByLeaf => (0..hosts).map(name).collect(),
        Map::Interleaved => {
            let by_port = (0..ports).flat_map(|port| (0..tree.leaves()).map(move |leaf| leaf * ports + port));
            by_port.filter(|host| *host < hosts).map(name).collect()
        }
    }
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interleaved_neighbours_are_below_different_leaves() {
        let tree = FatTree { hosts: 7, ..FatTree::default() };
        assert_eq!(order(&tree, Map::Interleaved), ["h0", "h4", "h1", "h5", "h2", "h6", "h3"]);
        assert_eq!(order(&tree, Map::ByLeaf).join(" "), "h0 h1 h2 h3 h4 h5 h6");
    }

    fn launch(ranks: u32, ranks_per_host: Option<u32>, placement: Placement, options: &[&str]) -> MpiLaunch {
        MpiLaunch {
            mpi: Mpi::OpenMpi,
            ranks,
            map: Map::ByLeaf,
            ranks_per_host,
            placement,
            env: Vec::new(),
            options: options.iter().map(|&word| word.to_owned()).collect(),
            program: vec!["true".into()],
        }
    }

    fn hosts(launch: &MpiLaunch) -> Option<(usize, u32)> {
        let all = (0..4).map(crate::topology::host_name).collect();
        launch.hosts(all).ok().map(|(hosts, slots)| (hosts.len(), slots))
    }

    #[test]
    fn ranks_find_hosts_and_hosts_are_not_asked_for_more_than_they_take() {
        assert_eq!(hosts(&launch(4, None, Placement::Cyclic, &[])), Some((4, 1)));
        assert_eq!(hosts(&launch(2, None, Placement::Cyclic, &[])), Some((2, 1)));
        assert_eq!(hosts(&launch(6, None, Placement::Cyclic, &[])), Some((4, 2)));
        assert_eq!(hosts(&launch(6, None, Placement::Block, &[])), Some((3, 2)));
        assert_eq!(hosts(&launch(6, Some(3), Placement::Cyclic, &[])), Some((2, 3)));
        assert_eq!(hosts(&launch(9, Some(2), Placement::Block, &[])), None);
    }

    #[test]
    fn both_launchers_are_told_of_the_placement() {
        let hosts = ["h0".to_owned(), "h1".to_owned()];
        let trib = std::path::Path::new("/trib");
        for (placement, open_mpi_says, mpich_says) in
            [(Placement::Cyclic, "--map-by node", "-ppn 1"), (Placement::Block, "--map-by slot", "-ppn 2")]
        {
            let launch = launch(4, Some(2), placement, &[]);
            let words = open_mpi::arguments(trib, &hosts, 2, &launch).unwrap().join(" ");
            assert!(words.contains(open_mpi_says) && words.contains("--host h0:2,h1:2"), "{words}");
            let words = mpich::arguments(trib, &hosts, 2, &launch).join(" ");
            assert!(words.contains(mpich_says), "{words}");
        }
    }
}
