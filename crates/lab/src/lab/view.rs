//! What can be done with a laboratory that runs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::{Context, LabError};
use super::folder::StateFolder;
use super::{Lab, LabName};
use crate::namespace::Entry;
use crate::network::counters::buckets;
use crate::network::{Direction, LinkCounters, tool};
use crate::process::Process;
use crate::topology::{Link, PlaceKind, Plan, Topology};

impl Lab {
    /// Its name.
    pub fn name(&self) -> &LabName {
        &self.name
    }

    /// The folder of its state, which is what `TRIB_LAB` holds inside the laboratory.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What ranks and tools need in `TRIB_MANAGER`.
    pub fn manager(&self) -> &str {
        &self.record.manager
    }

    /// What it is made of.
    pub fn topology(&self) -> &Topology {
        &self.record.topology
    }

    /// Number of hosts, `h0` and on; none in a local one.
    pub fn hosts(&self) -> u16 {
        self.record.topology.hosts()
    }

    /// A daemon by its name, `manager`, `spine`, `leaf0`, ..., if it runs and we are not inside the
    /// laboratory.
    pub fn process(&self, daemon: &str) -> Option<&Process> {
        self.daemons.iter().find_map(|(name, process)| (name == daemon).then_some(process.as_ref())?)
    }

    /// Names of the daemons, the manager first.
    pub fn daemon_names(&self) -> impl Iterator<Item = &str> {
        self.daemons.iter().map(|(name, _)| name.as_str())
    }

    /// The daemons that run, with their process ids as seen from outside, the manager first.
    pub fn daemons(&self) -> Vec<(String, u32)> {
        let running = self.daemons.iter().filter_map(|(name, process)| Some((name, process.as_ref()?.id())));
        running.filter(|(_, id)| id.is_running()).map(|(name, id)| (name.clone(), id.pid)).collect()
    }

    /// Where a daemon's output goes.
    pub fn log(&self, daemon: &str) -> PathBuf {
        self.folder.join(format!("{daemon}.log"))
    }

    /// The command that runs `program` in a host or switch; [`crate::visit::visit`] says what the
    /// program finds there. Arguments, environment and streams can be added as usual. The command's
    /// process passes signals on, ends as the program does, and takes the program with it when it
    /// is killed.
    pub fn command(&self, place: &str, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(&self.record.program);
        command.args(["lab", "exec", "--name"]).arg(&self.folder).args([place, "--"]).arg(program);
        command
    }

    /// What both directions of each link have carried, in the order of the plan.
    pub fn counters(&self) -> Result<Vec<LinkCounters>, LabError> {
        let plan = self.plan()?;
        let mut counters = Vec::new();
        let mut by_place = std::collections::BTreeMap::new();
        for place in &plan.places {
            let answer = tool::run(&self.entry(&place.name)?, "tc", &["-s", "-j", "qdisc", "show"], "")?;
            by_place.insert(place.name.as_str(), buckets(&answer)?);
        }
        for Link { name, lower, upper, lower_device, upper_device, rate } in &plan.links {
            for (direction, place, device) in
                [(Direction::Up, lower, lower_device), (Direction::Down, upper, upper_device)]
            {
                let bucket = by_place[place.as_str()].iter().find(|bucket| bucket.dev == *device);
                let bucket = bucket.ok_or_else(|| LabError::Answer {
                    command: "tc -s -j qdisc show".to_owned(),
                    reason: format!("no token bucket on {device} of {place}"),
                })?;
                let (wire_bytes, packets, drops) = (bucket.bytes, bucket.packets, bucket.drops);
                counters.push(LinkCounters { link: name.clone(), direction, rate: *rate, wire_bytes, packets, drops });
            }
        }
        Ok(counters)
    }

    /// The places and links.
    ///
    /// # Errors
    /// [`LabError::Unavailable`] for a laboratory on loopback, which has no links of its own.
    pub fn plan(&self) -> Result<Plan, LabError> {
        let none = || LabError::Unavailable("it runs on loopback, without hosts and links".to_owned());
        self.record.topology.plan().ok_or_else(none)
    }

    /// What kind of place this is.
    ///
    /// # Errors
    /// [`LabError::Place`] when there is no place of this name.
    pub fn place_kind(&self, place: &str) -> Result<PlaceKind, LabError> {
        Ok(self.plan()?.place(place).ok_or_else(|| self.no_place(place))?.kind)
    }

    /// The way into a place.
    pub(crate) fn entry(&self, place: &str) -> Result<Entry, LabError> {
        let keeper = self.keeper.as_ref().ok_or_else(|| self.no_place(place))?;
        if keeper.inside {
            return Err(LabError::Inside);
        }
        let entry = keeper.doors.entry(keeper.pid, place).context(|| format!("enter {place}"))?;
        entry.ok_or_else(|| self.no_place(place))
    }

    /// The `trib` binary.
    pub(crate) fn trib(&self) -> &Path {
        &self.record.program
    }

    /// Keeps other commands from changing the laboratory while the value lives.
    pub(crate) fn lock(&self) -> Result<StateFolder, LabError> {
        let base = self.folder.parent().expect("the folder of a laboratory is in a base");
        StateFolder::lock(base, &self.name)
    }

    /// True for a process inside the laboratory, which cannot see its daemons.
    pub fn is_around_us(&self) -> bool {
        self.keeper.as_ref().is_some_and(|keeper| keeper.inside)
    }

    fn no_place(&self, place: &str) -> LabError {
        let known = match &self.keeper {
            Some(keeper) => keeper.doors.names().collect::<Vec<_>>().join(", "),
            None => "none: it runs on loopback".to_owned(),
        };
        LabError::Place { place: place.to_owned(), known }
    }
}
