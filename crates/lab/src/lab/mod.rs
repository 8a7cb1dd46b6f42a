//! A laboratory that runs: manager and nodes as daemons, on loopback or on a fat tree of
//! namespaces.
//!
//! - [`Lab::up`] starts one, [`Lab::attach`] finds it from another process, [`Lab::down`] ends it.
//! - `start`: the way from a topology to daemons that are ready
//! - `view`: what can be done with one that runs
//! - `daemon`, `readiness`: starting one process that outlives us, and hearing that it is ready
//! - `folder`, `record`: what is on disk about it
//!
//! `up` may be repeated: it finds what runs, and starts a daemon that has ended again as it was. It
//! never ends anything that runs. If nothing of a laboratory runs any more, `up` first clears away
//! what a crash left of it. Every daemon is found through its pid file, which the daemon's own
//! process writes before it becomes the daemon. The pid file holds its start time too, so that
//! another process to which the kernel has given the same id is never taken for the daemon.

mod daemon;
mod error;
mod folder;
mod readiness;
mod record;
mod start;
mod view;

#[cfg(test)]
mod scratch;
#[cfg(test)]
mod tests;

use std::io::PipeWriter;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

pub use error::LabError;
pub use folder::{LabName, default_base};

use crate::namespace::Doors;
use crate::process::{self, Process};
use crate::topology::Topology;
pub(crate) use error::Context;
use folder::OWNER;
pub(crate) use folder::StateFolder;
use record::{Daemon, Record};

/// How to start a laboratory.
#[derive(Clone, Debug)]
pub struct LabLaunch<'a> {
    /// The folder of all laboratories, see [`default_base`].
    pub base: &'a Path,
    /// The name of this laboratory.
    pub name: &'a LabName,
    /// What it is made of.
    pub topology: &'a Topology,
    /// The `trib` binary that keeper and daemons run.
    pub program: &'a Path,
    /// How long the start may take until everything is ready.
    pub limit: Duration,
    /// When it ends.
    pub lifetime: Lifetime,
}

/// When a laboratory ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifetime {
    /// It ends with the value that [`Lab::up`] returns, or with the process that holds this value,
    /// however that process ends. A [`Topology::Local`] whose process was killed before it could
    /// drop the value is ended by the next `up` of any laboratory.
    Owned,
    /// It ends when a process calls [`Lab::down`].
    Detached,
}

/// A laboratory that runs.
#[derive(Debug)]
pub struct Lab {
    name: LabName,
    folder: PathBuf,
    record: Record,
    daemons: Vec<(String, Option<Process>)>,
    keeper: Option<Keeper>,
    owned: bool,
}

/// The process that holds the places, as this process sees it.
#[derive(Debug)]
struct Keeper {
    /// Its process id in our PID namespace, if we are outside.
    pid: u32,
    doors: Doors,
    /// Whether we are inside.
    inside: bool,
    /// Closing this ends an owned laboratory.
    _lifeline: Option<PipeWriter>,
}

impl Lab {
    /// Starts the laboratory and waits until every daemon is ready. A laboratory that runs already
    /// is found again, and those of its daemons that have ended are started again as they were, so
    /// that the address that others know stays right.
    ///
    /// # Errors
    /// [`LabError::Different`] when it runs with another topology, [`LabError::Running`] when it
    /// runs and the caller wanted to own it, [`LabError::Elsewhere`] when it runs in another PID
    /// namespace. When something fails, `up` ends what this call has
    /// started and nothing that ran before. The logs stay where the error says until the next `up`
    /// or `down`.
    pub fn up(launch: &LabLaunch<'_>) -> Result<Self, LabError> {
        launch.topology.check()?;
        sweep(launch.base)?;
        let folder = StateFolder::lock(launch.base, launch.name)?;
        folder.check_in_sight()?;
        if let Some(found) = Self::worth_keeping(&folder, launch)? {
            found.check_as_asked(launch)?;
            return if found.ended().is_empty() { Ok(found) } else { start::repair(launch, &folder, found) };
        }
        if end_all(&folder)? {
            info!("cleared what was left of an earlier laboratory {:?}", launch.name.as_str());
        }
        folder.create()?;
        if launch.lifetime == Lifetime::Owned {
            folder.write_owner()?;
        }
        let started = start::start(launch, &folder);
        if started.is_err() {
            end_processes(&folder)?;
        }
        started
    }

    /// Starts a daemon that has ended where it ran before, and waits until it is ready. A manager
    /// knows the jobs that ran when it ended.
    ///
    /// # Errors
    /// [`LabError::Process`] for a name that no daemon has, [`LabError::Runs`] when it has not
    /// ended, [`LabError::Repair`] when it does not come up; then it is not left half-way.
    pub fn start(&mut self, daemon: &str, limit: Duration) -> Result<(), LabError> {
        if self.is_around_us() {
            return Err(LabError::Inside);
        }
        let Some(at) = self.daemons.iter().position(|(name, _)| name == daemon) else {
            let known = self.daemon_names().collect::<Vec<_>>().join(", ");
            return Err(LabError::Process { process: daemon.to_owned(), known });
        };
        // Another command may be starting it, and then its file tells.
        let folder = self.lock()?;
        folder.check_in_sight()?;
        if folder.process(daemon)?.is_some() {
            return Err(LabError::Runs(daemon.to_owned()));
        }
        let Record { topology, program, lifetime, .. } = &self.record;
        let base = self.folder.parent().expect("the folder of a laboratory is in a base");
        let launch = LabLaunch { base, name: &self.name, topology, program, limit, lifetime: *lifetime };
        start::start_again(&launch, &folder, self, &[daemon])?;
        self.daemons[at].1 = folder.process(daemon)?;
        Ok(())
    }

    /// The laboratory, if it came up and was not taken down since. Some of its daemons may have
    /// ended.
    pub fn find(base: &Path, name: &LabName) -> Result<Option<Self>, LabError> {
        if !base.join(name.as_str()).exists() {
            return Ok(None);
        }
        Self::of_folder(&StateFolder::lock(base, name)?, name)
    }

    /// A running laboratory, by its name or, as `TRIB_LAB` says it inside, by the path of its state
    /// folder. Some of its daemons may have ended.
    ///
    /// # Errors
    /// [`LabError::Unknown`] when there is none.
    pub fn attach(name: &str) -> Result<Self, LabError> {
        let (base, plain) = match name.rsplit_once('/') {
            Some((base, plain)) => (PathBuf::from(base), plain),
            None => (default_base(), name),
        };
        let plain = LabName::new(plain)?;
        let found = Self::of_folder(&StateFolder::look_at(&base, &plain), &plain)?;
        found.ok_or_else(|| LabError::Unknown(name.to_owned()))
    }

    /// Ends every process of the laboratory and removes its folder. Returns whether there was
    /// anything.
    ///
    /// # Errors
    /// [`LabError::Elsewhere`] when it runs in another PID namespace.
    pub fn down(base: &Path, name: &LabName) -> Result<bool, LabError> {
        if !base.exists() {
            return Ok(false);
        }
        let folder = StateFolder::lock(base, name)?;
        folder.check_in_sight()?;
        let something = end_all(&folder)?;
        folder.vanish();
        Ok(something)
    }

    /// The laboratory that is in the folder; `None` if nothing of it runs and another topology is
    /// asked for, because then nothing is lost by making it anew.
    fn worth_keeping(folder: &StateFolder, launch: &LabLaunch<'_>) -> Result<Option<Self>, LabError> {
        let idle = folder.processes()?.is_empty();
        match Self::of_folder(folder, launch.name) {
            Err(LabError::Record(_)) if idle => Ok(None),
            Ok(Some(lab)) if idle && lab.check_as_asked(launch).is_err() => Ok(None),
            found => found,
        }
    }

    /// The daemons that have ended, the manager first.
    fn ended(&self) -> Vec<&str> {
        let ended = self.daemons.iter().filter(|(_, process)| process.is_none());
        ended.map(|(name, _)| name.as_str()).collect()
    }

    /// What the folder's record says, if the keeper lives.
    fn of_folder(folder: &StateFolder, name: &LabName) -> Result<Option<Self>, LabError> {
        let Some(record) = folder.record()? else { return Ok(None) };
        let keeper = match record.topology {
            Topology::Local(_) => None,
            Topology::FatTree(_) => match find_keeper(folder)? {
                None => return Ok(None),
                keeper => keeper,
            },
        };
        // Process ids in the pid files are those that processes outside the laboratory see.
        let inside = keeper.as_ref().is_some_and(|keeper| keeper.inside);
        let process = |name: &String| if inside { Ok(None) } else { folder.process(name) };
        let daemons = record.daemons.iter().map(|Daemon { name, .. }| Ok((name.clone(), process(name)?)));
        let daemons = daemons.collect::<Result<_, LabError>>()?;
        Ok(Some(Self { name: name.clone(), folder: folder.path().to_owned(), record, daemons, keeper, owned: false }))
    }

    fn check_as_asked(&self, launch: &LabLaunch<'_>) -> Result<(), LabError> {
        let name = launch.name.as_str().to_owned();
        if launch.lifetime == Lifetime::Owned {
            return Err(LabError::Running(name));
        }
        if self.record.topology == *launch.topology {
            return Ok(());
        }
        let (running, asked) = (self.record.topology.to_string(), launch.topology.to_string());
        Err(LabError::Different { name, running, asked })
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if !self.owned {
            return;
        }
        let base = self.folder.parent().expect("the folder of a laboratory is in a base");
        if let Err(error) = Self::down(base, &self.name) {
            warn!("laboratory {:?} stays behind: {error}", self.name.as_str());
        }
    }
}

fn find_keeper(folder: &StateFolder) -> Result<Option<Keeper>, LabError> {
    let Ok(doors) = Doors::read(folder.path()) else { return Ok(None) };
    if doors.are_around_us() {
        return Ok(Some(Keeper { pid: 0, doors, inside: true, _lifeline: None }));
    }
    let process = folder.process(KEEPER)?;
    Ok(process.map(|process| Keeper { pid: process.id().pid, doors, inside: false, _lifeline: None }))
}

/// Removes what is left of laboratories whose keeper or owner was killed.
fn sweep(base: &Path) -> Result<(), LabError> {
    for entry in std::fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name().to_str().and_then(|name| LabName::new(name).ok());
        let has_keeper = entry.path().join(format!("{KEEPER}.pid")).exists();
        let Some(name) = name.filter(|_| has_keeper || entry.path().join(OWNER).exists()) else { continue };
        let Some(folder) = StateFolder::try_lock(base, &name)? else { continue };
        let is_left_over = has_keeper && folder.process(KEEPER)?.is_none() || folder.has_lost_its_owner()?;
        if is_left_over && !folder.runs_elsewhere()? {
            end_all(&folder)?;
            folder.vanish();
            info!("cleared what was left of laboratory {:?}", name.as_str());
        }
    }
    Ok(())
}

/// Ends what runs and removes the folder. Returns whether there was one.
fn end_all(folder: &StateFolder) -> Result<bool, LabError> {
    if !folder.path().exists() {
        return Ok(false);
    }
    end_processes(folder)?;
    folder.clear()
}

fn end_processes(folder: &StateFolder) -> Result<(), LabError> {
    let context = || format!("end the processes of {}", folder.path().display());
    if let Some(keeper) = folder.process(KEEPER)? {
        // When the keeper is killed, the kernel ends everything inside before it reports the
        // keeper's own end.
        keeper.signal(Signal::KILL).context(context)?;
        keeper.wait(GRACE).context(context)?;
    }
    process::end_all(&folder.processes()?, GRACE).context(context)
}

const MANAGER: &str = "manager";
const KEEPER: &str = "keeper";
/// The time from SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(3);
