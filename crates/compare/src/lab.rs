//! A laboratory as the comparison sees it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use trib_lab::{BitRate, Direction, FatTree, Lab, LabError, LabLaunch, LabName, Lifetime, Topology, default_base};

use crate::network::{LinkBytes, Map, Mpi, MpiJob, Network};
use crate::study::Shape;

/// A fat tree of namespaces, which ends when this is dropped.
#[derive(Debug)]
pub struct LabNetwork {
    lab: Lab,
    shape: Shape,
}

impl LabNetwork {
    /// Builds one; `program` is the `trib` binary that its daemons run.
    pub fn up(shape: Shape, program: &Path) -> Result<LabNetwork, LabError> {
        let topology = Topology::FatTree(FatTree {
            hosts: shape.hosts,
            leaf_ports: shape.leaf_ports,
            rate: BitRate::mbit(shape.rate_mbit.into()),
            rails: shape.rails,
            uplink: shape.uplink.unwrap_or(shape.leaf_ports),
            pinned: shape.pinned,
            ucx: shape.ucx,
            ..FatTree::default()
        });
        let base = default_base();
        // The process id keeps two comparisons apart.
        let name = LabName::new(&format!("compare-{}", std::process::id()))?;
        let (limit, lifetime) = (READY, Lifetime::Owned);
        let launch = LabLaunch { base: &base, name: &name, topology: &topology, program, limit, lifetime };
        Ok(LabNetwork { lab: Lab::up(&launch)?, shape })
    }
}

impl Network for LabNetwork {
    fn hosts(&self) -> u16 {
        self.shape.hosts
    }

    fn leaf_ports(&self) -> u16 {
        self.shape.leaf_ports
    }

    fn rate_mbit(&self) -> f64 {
        f64::from(self.shape.rate_mbit)
    }

    fn manager(&self) -> String {
        self.lab.manager().to_owned()
    }

    fn command(&self, host: &str, program: &Path) -> Command {
        self.lab.command(host, program)
    }

    fn mpirun(&self, job: &MpiJob) -> Result<Command, String> {
        let launch = trib_lab::MpiLaunch {
            mpi: match job.mpi {
                Mpi::OpenMpi => trib_lab::Mpi::OpenMpi,
                Mpi::Mpich => trib_lab::Mpi::Mpich,
            },
            ranks: job.ranks,
            map: match job.map {
                Map::ByLeaf => trib_lab::Map::ByLeaf,
                Map::Interleaved => trib_lab::Map::Interleaved,
            },
            ranks_per_host: None,
            placement: trib_lab::Placement::Cyclic,
            env: job.environment.clone(),
            options: job.options.clone(),
            program: job.program.clone(),
        };
        self.lab.mpirun(&launch).map_err(|error| error.to_string())
    }

    fn counters(&self) -> Vec<LinkBytes> {
        let links = self.lab.counters().unwrap_or_default();
        let bytes = |link: trib_lab::LinkCounters| LinkBytes {
            up: link.direction == Direction::Up,
            link: link.link,
            bytes: link.wire_bytes,
            packets: link.packets,
        };
        links.into_iter().map(bytes).collect()
    }

    fn daemons(&self) -> Vec<(String, u32)> {
        self.lab.daemons()
    }
}

/// How long manager and nodes may take to start.
const READY: Duration = Duration::from_secs(30);
