//! Fabrics of real processes: one manager and its aggregation nodes, as daemons that outlive the command that starts them.
//!
//! - [`Shape`] says what a fabric is made of and writes its topology file.
//! - [`Fabric`] is one that runs: [`Fabric::up`], [`Fabric::find`], [`Fabric::down`].
//!
//! `up` may be repeated: a fabric that runs is found again, what a crash left behind is cleared away first. Every daemon is
//! found through its pid file, which the daemon's own process writes before it becomes the daemon; the pid file holds its
//! start time too, so that a process id that was handed out again is never taken for the daemon.

mod daemon;
mod error;
mod folder;
mod readiness;
mod shape;

#[cfg(test)]
mod scratch;
#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tracing::{info, warn};
use trib_control::{Credentials, ManagerUrl};

pub use error::FabricError;
pub use folder::{FabricName, default_base};
pub use shape::Shape;

use crate::namespace::Namespace;
use crate::process::{self, Process};
use daemon::Starting;
use error::Context;
use folder::{Record, StateFolder};

/// How to start a fabric.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// The folder of all fabrics, see [`default_base`].
    pub base: &'a Path,
    /// Which of them.
    pub name: &'a FabricName,
    /// What it is made of.
    pub shape: &'a Shape,
    /// The `trib` binary that the daemons run.
    pub program: &'a Path,
    /// Where the daemons live; `None` for the namespace we are in.
    pub namespace: Option<&'a Namespace>,
    /// How long all daemons together may take until they are ready.
    pub limit: Duration,
}

/// A fabric that runs.
#[derive(Debug)]
pub struct Fabric {
    manager: String,
    shape: Shape,
    daemons: Vec<(String, Process)>,
    folder: PathBuf,
}

impl Fabric {
    /// Starts the fabric and waits until every daemon is ready; one that runs already is found again.
    ///
    /// # Errors
    /// [`FabricError::Different`] when it runs in another shape. When a daemon fails, those already started are ended and
    /// the logs stay where the error says until the next `up` or `down`.
    pub fn up(launch: &Launch<'_>) -> Result<Self, FabricError> {
        launch.shape.check()?;
        let folder = StateFolder::lock(launch.base, launch.name)?;
        if let Some(running) = Self::running(&folder)? {
            return running.of_shape(launch);
        }
        if end_all(&folder)? {
            info!("cleared what was left of an earlier fabric {:?}", launch.name.as_str());
        }
        folder.create()?;
        let started = Self::start(launch, &folder);
        if started.is_err() {
            end_processes(&folder)?;
        }
        started
    }

    /// The fabric, if all of it runs.
    pub fn find(base: &Path, name: &FabricName) -> Result<Option<Self>, FabricError> {
        if !base.join(name.as_str()).exists() {
            return Ok(None);
        }
        Self::running(&StateFolder::lock(base, name)?)
    }

    /// Ends every process of the fabric and removes its folder; tells whether there was anything.
    pub fn down(base: &Path, name: &FabricName) -> Result<bool, FabricError> {
        if !base.exists() {
            return Ok(false);
        }
        let folder = StateFolder::lock(base, name)?;
        let something = end_all(&folder)?;
        folder.vanish();
        Ok(something)
    }

    /// What ranks and tools need in `TRIB_MANAGER`.
    pub fn manager(&self) -> &str {
        &self.manager
    }

    /// What it is made of.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// A daemon by its name: `manager`, `root`, `leaf0`, ...
    pub fn process(&self, daemon: &str) -> Option<&Process> {
        self.daemons.iter().find_map(|(name, process)| (name == daemon).then_some(process))
    }

    /// Names of the daemons, the manager first.
    pub fn daemons(&self) -> impl Iterator<Item = &str> {
        self.daemons.iter().map(|(name, _)| name.as_str())
    }

    /// Where a daemon's output goes.
    pub fn log(&self, daemon: &str) -> PathBuf {
        self.folder.join(format!("{daemon}.log"))
    }

    fn running(folder: &StateFolder) -> Result<Option<Self>, FabricError> {
        let Some(Record { manager, shape, daemons: names }) = folder.record()? else {
            return Ok(None);
        };
        let mut daemons = Vec::new();
        for name in names {
            match folder.process(&name)? {
                Some(process) => daemons.push((name, process)),
                None => {
                    warn!("{name} has ended; its log is {}", folder.path().join(format!("{name}.log")).display());
                    return Ok(None);
                }
            }
        }
        Ok(Some(Self { manager, shape, daemons, folder: folder.path().to_owned() }))
    }

    fn of_shape(self, launch: &Launch<'_>) -> Result<Self, FabricError> {
        if self.shape == *launch.shape {
            return Ok(self);
        }
        Err(FabricError::Different {
            name: launch.name.as_str().to_owned(),
            running: self.shape.to_string(),
            asked: launch.shape.to_string(),
        })
    }

    fn start(launch: &Launch<'_>, folder: &StateFolder) -> Result<Self, FabricError> {
        let deadline = Instant::now() + launch.limit;
        folder.write("topology.toml", launch.shape.topology(launch.name.as_str()).as_bytes())?;
        let credentials = folder.path().join("credentials");
        Credentials::create(&credentials).map_err(|error| FabricError::Credentials(error.to_string()))?;
        let manager = start_manager(launch, folder, &credentials, deadline)?;
        let manager = ManagerUrl::new(manager.ip().to_string(), manager.port(), credentials).to_string();
        let nodes = start_nodes(launch, folder, &manager, deadline)?;
        let daemons: Vec<String> = std::iter::once(MANAGER.to_owned()).chain(nodes).collect();
        folder.write_record(&Record { manager, shape: launch.shape.clone(), daemons })?;
        let gone = || io::Error::other("a daemon ended as soon as it was ready");
        Self::running(folder)?.ok_or_else(gone).context(|| "start the fabric".to_owned())
    }
}

fn start_manager(
    launch: &Launch<'_>,
    folder: &StateFolder,
    credentials: &Path,
    deadline: Instant,
) -> Result<SocketAddr, FabricError> {
    let mut command = Command::new(launch.program);
    command.arg("am").arg("--topology").arg(folder.path().join("topology.toml"));
    command.arg("--credentials").arg(credentials).arg("--listen").arg(any_port(launch));
    let starting = start_daemon(launch, folder, MANAGER, &mut command)?;
    let address = starting.ready(deadline, launch.limit)?;
    info!("{MANAGER} listens on {address}");
    Ok(address)
}

/// All nodes are started before the first is waited for: they find each other in their own time.
fn start_nodes(
    launch: &Launch<'_>,
    folder: &StateFolder,
    manager: &str,
    deadline: Instant,
) -> Result<Vec<String>, FabricError> {
    let mut starting = Vec::new();
    for name in launch.shape.nodes() {
        let mut command = Command::new(launch.program);
        command.args(["an", "--name", &name, "--manager", manager, "--listen", &any_port(launch)]);
        command.args(["--workers", &launch.shape.workers.to_string()]);
        starting.push((name.clone(), start_daemon(launch, folder, &name, &mut command)?));
    }
    let mut names = Vec::new();
    for (name, node) in starting {
        let address = node.ready(deadline, launch.limit)?;
        info!("{name} listens on {address}");
        names.push(name);
    }
    Ok(names)
}

fn start_daemon(
    launch: &Launch<'_>,
    folder: &StateFolder,
    name: &str,
    command: &mut Command,
) -> Result<Starting, FabricError> {
    if let Some(namespace) = launch.namespace {
        namespace.enter(command);
    }
    // A daemon reports to us alone, and takes its manager from its arguments.
    command.env_remove("TRIB_MANAGER");
    Starting::launch(folder.path(), name, command)
}

fn any_port(launch: &Launch<'_>) -> String {
    SocketAddr::new(launch.shape.listen, 0).to_string()
}

/// Ends what runs and removes the folder; tells whether there was one.
fn end_all(folder: &StateFolder) -> Result<bool, FabricError> {
    if !folder.path().exists() {
        return Ok(false);
    }
    end_processes(folder)?;
    folder.clear()
}

fn end_processes(folder: &StateFolder) -> Result<(), FabricError> {
    let processes = folder.processes()?;
    process::end_all(&processes, GRACE).context(|| format!("end the processes of {}", folder.path().display()))
}

const MANAGER: &str = "manager";
/// From SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(3);
