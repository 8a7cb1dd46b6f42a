//! The systems that are compared, and how each is started.
//!
//! Every system runs a program that reads the same command line and prints the same lines;
//! `commands` makes the processes of one launch. The first of them speaks for all: it prints the
//! lines to its stdout, and its stdin opens the gates.

mod direct;
mod mpich;
mod openmpi;
mod peers;
mod pingpong;

use std::path::{Path, PathBuf};
use std::process::Command;

use trib_wire::Collective;

use crate::cell::{Cell, Mode};
use crate::network::{Map, Network};

/// How ranks of a system are started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The native interface.
    Tributary,
    /// An Open MPI program with the interposer preloaded.
    TributaryMpi,
    /// Open MPI with these options of its launcher.
    OpenMpi(Vec<String>),
    /// MPICH.
    Mpich {
        /// Whether the shim that yields instead of spinning is preloaded.
        polite: bool,
    },
    /// Gloo through torch.distributed.
    Gloo,
    /// One TCP connection between the two hosts that are farthest apart.
    PingPong,
    /// A program given on the command line, started like Gloo's ranks.
    Other(String),
}

/// One system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct System {
    /// Its name in rows, tables and plots.
    pub name: String,
    /// How it is started.
    pub kind: Kind,
    /// Additional variables of its ranks.
    pub environment: Vec<(String, String)>,
}

/// The paths of the programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Programs {
    /// The `trib` binary.
    pub trib: PathBuf,
    /// Folder of the peers' programs, as bench/peers/Makefile fills it.
    pub peers: PathBuf,
    /// What they are built from, for an installation.
    pub sources: Option<PathBuf>,
    /// The interposer.
    pub interposer: PathBuf,
}

impl Programs {
    /// The programs of the build or installation to which `trib` belongs.
    pub fn beside(trib: &Path) -> Programs {
        let folder = trib.parent().unwrap_or(Path::new("."));
        let installed = folder.join("../lib/libtrib_mpi.so");
        let built = folder.join("libtrib_mpi.so");
        let (peers, sources) = peers::locate(trib);
        Programs { trib: trib.to_owned(), peers, sources, interposer: if built.exists() { built } else { installed } }
    }

    /// Builds the peers' programs where an installation has only their sources.
    ///
    /// # Errors
    /// One line that says why not, and how to.
    pub fn build_peers(&self) -> Result<(), String> {
        self.sources.as_ref().map_or(Ok(()), |sources| peers::build(sources, &self.peers))
    }

    fn peer(&self, name: &str) -> PathBuf {
        self.peers.join(name)
    }
}

/// One launch.
#[derive(Clone, Debug)]
pub struct Job {
    /// Ranks, one per host until hosts run out.
    pub ranks: u32,
    /// The order in which they fill the hosts.
    pub map: Map,
    /// The measuring program's arguments.
    pub arguments: Vec<String>,
    /// A name that no other launch has.
    pub token: String,
}

impl System {
    /// The native interface.
    pub fn tributary() -> System {
        System::new("tributary", Kind::Tributary)
    }

    /// The native interface with other limits, as `TRIB_QUOTA` states them.
    pub fn tributary_with(name: &str, quota: &str) -> System {
        let environment = vec![("TRIB_QUOTA".to_owned(), quota.to_owned())];
        System { environment, ..System::new(name, Kind::Tributary) }
    }

    /// The native interface on a fabric whose links go by UCX.
    pub fn tributary_over_ucx() -> System {
        System::new("tributary-ucx", Kind::Tributary)
    }

    /// Ping-pong.
    pub fn ping_pong() -> System {
        System::new("pingpong", Kind::PingPong)
    }

    /// Open MPI with the settings that free its exchanges.
    pub fn openmpi_tuned() -> System {
        System::new("openmpi-tuned", Kind::OpenMpi(openmpi::tuned()))
    }

    /// Open MPI with `han`, whose collectives combine the ranks of a host before they leave it.
    pub fn openmpi_han() -> System {
        System::new("openmpi-han", Kind::OpenMpi(openmpi::han()))
    }

    /// Open MPI with `sm`, whose collectives write into memory that all ranks of a host map.
    pub fn openmpi_sm() -> System {
        System::new("openmpi-sm", Kind::OpenMpi(openmpi::sm()))
    }

    /// Open MPI's ring, which is its best for long vectors.
    pub fn openmpi_ring() -> System {
        System::openmpi_algorithms().swap_remove(openmpi::RING)
    }

    /// Every allreduce algorithm of Open MPI's tuned collectives.
    pub fn openmpi_algorithms() -> Vec<System> {
        openmpi::ALGORITHMS
            .iter()
            .map(|(number, name)| {
                System::new(&format!("openmpi-{name}"), Kind::OpenMpi(openmpi::with_algorithm(*number)))
            })
            .collect()
    }

    /// Gloo.
    pub fn gloo() -> System {
        System::new("gloo", Kind::Gloo)
    }

    /// MPICH that yields.
    pub fn mpich() -> System {
        System::new("mpich", Kind::Mpich { polite: true })
    }

    /// All systems with their usual settings, without the single algorithms.
    pub fn usual() -> Vec<System> {
        vec![
            System::tributary(),
            System::new("tributary-mpi", Kind::TributaryMpi),
            System::new("openmpi", Kind::OpenMpi(Vec::new())),
            System::openmpi_tuned(),
            System::mpich(),
            System::new("mpich-spin", Kind::Mpich { polite: false }),
            System::gloo(),
            System::ping_pong(),
        ]
    }

    fn new(name: &str, kind: Kind) -> System {
        System { name: name.to_owned(), kind, environment: Vec::new() }
    }

    /// A program given as `NAME=COMMAND`.
    pub fn other(text: &str) -> Result<System, String> {
        match text.split_once('=') {
            Some((name, command)) if !name.is_empty() && !command.is_empty() => {
                Ok(System::new(name, Kind::Other(command.to_owned())))
            }
            _ => Err("a peer is NAME=COMMAND".to_owned()),
        }
    }

    /// Whether it is ours.
    pub fn is_tributary(&self) -> bool {
        matches!(self.kind, Kind::Tributary | Kind::TributaryMpi)
    }

    /// Whether the cell makes sense for this system.
    pub fn has(&self, cell: &Cell) -> bool {
        match self.kind {
            Kind::PingPong => {
                cell.collective == Collective::Allreduce && cell.mode == Mode::Sustained && cell.bytes > 0
            }
            Kind::OpenMpi(_) if self.is_one_algorithm() => cell.collective == Collective::Allreduce,
            _ => true,
        }
    }

    /// Whether it is Open MPI, restricted to one algorithm of its allreduce.
    pub fn is_one_algorithm(&self) -> bool {
        matches!(&self.kind, Kind::OpenMpi(options) if openmpi::has_algorithm(options))
    }

    /// What is missing on this machine, if something is.
    pub fn missing(&self, programs: &Programs) -> Option<String> {
        let file = |path: PathBuf, how: &str| (!path.exists()).then(|| format!("{} is missing: {how}", path.display()));
        let tool = |name: &str, package: &str| {
            let found = std::env::var_os("PATH")
                .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).exists()));
            (!found).then(|| {
                format!("not installed: {name} is not on PATH (scripts/install-dependencies --bench, {package})")
            })
        };
        let peers = "make -C bench/peers";
        match self.kind {
            Kind::Tributary | Kind::PingPong | Kind::Other(_) => None,
            Kind::TributaryMpi => tool("mpirun.openmpi", "openmpi-bin")
                .or_else(|| file(programs.interposer.clone(), "make build"))
                .or_else(|| file(programs.peer("collectives.openmpi"), peers)),
            Kind::OpenMpi(_) => {
                tool("mpirun.openmpi", "openmpi-bin").or_else(|| file(programs.peer("collectives.openmpi"), peers))
            }
            Kind::Mpich { .. } => {
                tool("mpirun.mpich", "mpich").or_else(|| file(programs.peer("collectives.mpich"), peers))
            }
            Kind::Gloo => file(programs.peer("gloo.py"), peers).or_else(torch_missing),
        }
    }

    /// The processes of one launch; the first one speaks for all.
    pub fn commands(&self, network: &dyn Network, programs: &Programs, job: &Job) -> Result<Vec<Command>, String> {
        let mut commands = match &self.kind {
            Kind::Tributary => direct::tributary(self, network, programs, job),
            Kind::Gloo => direct::gloo(self, network, programs, job),
            Kind::Other(command) => direct::other(self, network, command, job),
            Kind::PingPong => pingpong::commands(network, programs, job),
            Kind::TributaryMpi => vec![openmpi::interposed(self, network, programs, job)?],
            Kind::OpenMpi(options) => vec![openmpi::command(self, network, programs, job, options)?],
            Kind::Mpich { polite } => vec![mpich::command(self, network, programs, job, *polite)?],
        };
        for command in &mut commands {
            command.env(TOKEN_ENV, &job.token);
        }
        Ok(commands)
    }
}

/// Whether Debian's Python has torch; found without starting it, since an import takes seconds.
fn torch_missing() -> Option<String> {
    let folders = ["/usr/lib/python3/dist-packages/torch", "/usr/local/lib/python3/dist-packages/torch"];
    let found = folders.iter().any(|folder| Path::new(folder).exists());
    (!found).then(|| "not installed: python3-torch (scripts/install-dependencies --bench)".to_owned())
}

/// Marks the processes of one launch, so that all of them can be found and ended, no matter which
/// process started them.
pub(crate) const TOKEN_ENV: &str = "TRIB_COMPARE_RUN";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_has_a_name_of_its_own() {
        let mut names: Vec<String> =
            System::usual().into_iter().chain(System::openmpi_algorithms()).map(|system| system.name).collect();
        names.extend([System::openmpi_han(), System::openmpi_sm()].map(|system| system.name));
        names.sort();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
        assert_eq!(System::openmpi_ring().name, "openmpi-ring");
    }

    #[test]
    fn a_peer_has_a_name_and_a_command() {
        assert_eq!(System::other("x=./a b=c").unwrap().kind, Kind::Other("./a b=c".to_owned()));
        for nonsense in ["", "x", "=a", "x="] {
            assert!(System::other(nonsense).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn what_is_missing_says_how_to_get_it() {
        let nowhere = Programs::beside(Path::new("/nonexistent/trib"));
        assert!(System::tributary().missing(&nowhere).is_none());
        let text = System::gloo().missing(&nowhere).unwrap();
        assert!(text.contains("make -C bench/peers"), "{text}");
    }
}
