//! What can be broken on purpose while a laboratory runs.
//!
//! - [`Fault`]: what can be wrong with links and hosts; [`Lab::inject`] and [`Lab::clear_faults`]
//! - [`Blow`]: what can be done to a daemon; [`Lab::strike`], and [`Lab::start`] after its end
//! - `rules`: faults as rules for `nft`
//!
//! Not every kernel has netem, so loss and corruption are rules at the *receiving* end of a link.
//! There they come behind its token bucket, so that what is lost has taken its time on the wire, as
//! on a real link. The unit is what crosses the link in one piece: a datagram, or up to 64 KiB of a
//! stream.

mod rules;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::lab::{Context, Lab, LabError, StateFolder};
use crate::network::{Direction, tool};
use crate::process::ProcessId;

/// One fault of the network.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Fault {
    /// Packets of one direction of a link are dropped at random.
    Loss {
        /// The link.
        link: String,
        /// The direction in which packets are lost.
        direction: Direction,
        /// The share of all packets, in per cent: more than 0, at most 100.
        percent: f64,
    },
    /// One byte of the payload is inverted in datagrams that are chosen at random. Packets never
    /// leave the machine, so the kernel neither fills in nor checks their transport checksums, and
    /// the damage reaches the receiving program. Streams are spared: on a real link TCP's checksum
    /// turns damage into loss, and here nothing would.
    Corrupt {
        /// The link.
        link: String,
        /// The direction whose datagrams are damaged.
        direction: Direction,
        /// The share of all datagrams, in per cent: more than 0, at most 100.
        percent: f64,
    },
    /// The link carries nothing, and both ends see it down.
    Cut {
        /// The link.
        link: String,
    },
    /// Switches drop what goes from host to host; hosts and switches still reach each other.
    IsolateHosts,
}

/// What can be done to a daemon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blow {
    /// It freezes, as a machine would: its sockets stay open and fill up.
    Stop,
    /// It goes on after that.
    Continue,
    /// It ends without a warning; [`Lab::start`] starts it again.
    Kill,
}

/// What a daemon does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DaemonState {
    /// It runs.
    Running,
    /// It is stopped.
    Stopped,
    /// It has ended.
    Ended,
}

impl Lab {
    /// Puts a fault in force. A fault that differs from it in the percentage alone is replaced.
    ///
    /// # Errors
    /// [`LabError::Link`] for a link that does not exist, [`LabError::Percent`] for a share out of
    /// range.
    pub fn inject(&self, fault: &Fault) -> Result<(), LabError> {
        let plan = self.outside()?.plan()?;
        fault.check(&plan)?;
        let folder = self.lock()?;
        let mut faults = self.faults()?;
        faults.retain(|other| !other.replaces(fault));
        for (place, script) in fault.rules(&plan) {
            rules::run(&self.entry(&place)?, &script)?;
        }
        if let Fault::Cut { link } = fault {
            self.set_link(link, "down")?;
        }
        faults.push(fault.clone());
        write_faults(&folder, &faults)
    }

    /// Undoes what [`Fault::Cut`] did to a link. A link that is not cut is no error.
    pub fn mend(&self, link: &str) -> Result<(), LabError> {
        self.outside()?;
        let folder = self.lock()?;
        let mut faults = self.faults()?;
        self.set_link(link, "up")?;
        faults.retain(|fault| *fault != Fault::Cut { link: link.to_owned() });
        write_faults(&folder, &faults)
    }

    /// Takes back all faults, and lets stopped daemons go on.
    pub fn clear_faults(&self) -> Result<(), LabError> {
        let plan = self.outside()?.plan()?;
        let folder = self.lock()?;
        for fault in self.faults()? {
            for (place, table) in fault.tables(&plan) {
                rules::run(&self.entry(&place)?, &rules::delete(&table))?;
            }
            if let Fault::Cut { link } = &fault {
                self.set_link(link, "up")?;
            }
        }
        write_faults(&folder, &[])?;
        let stopped: Vec<String> = self
            .daemon_states()?
            .into_iter()
            .filter(|(_, state)| *state == DaemonState::Stopped)
            .map(|(name, _)| name)
            .collect();
        stopped.iter().try_for_each(|daemon| self.strike(daemon, Blow::Continue))
    }

    /// The faults in force.
    pub fn faults(&self) -> Result<Vec<Fault>, LabError> {
        match std::fs::read(self.folder().join(FILE)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(source) => Err(LabError::Io { action: format!("read {FILE}"), source }),
            Ok(text) => serde_json::from_slice(&text)
                .map_err(|error| LabError::Answer { command: FILE.to_owned(), reason: error.to_string() }),
        }
    }

    /// How many packets a fault has dropped or damaged so far, counted in what crosses a link in
    /// one piece. It is `None` for a cut link, where nothing counts.
    pub fn affected(&self, fault: &Fault) -> Result<Option<u64>, LabError> {
        let tables = fault.tables(&self.plan()?);
        let mut counts = tables.iter().map(|(place, table)| rules::count(&self.entry(place)?, table));
        if tables.is_empty() { Ok(None) } else { counts.try_fold(0, |sum, count| Ok(sum + count?)).map(Some) }
    }

    /// Stops, continues or kills a daemon: `manager`, `spine`, `leaf0`, ... It waits until one that
    /// is killed has ended.
    pub fn strike(&self, daemon: &str, blow: Blow) -> Result<(), LabError> {
        use rustix::process::Signal;
        let process = self.outside()?.process(daemon).ok_or_else(|| LabError::Process {
            process: daemon.to_owned(),
            known: self.daemons().into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(", "),
        })?;
        let signal = match blow {
            Blow::Stop => Signal::STOP,
            Blow::Continue => Signal::CONT,
            Blow::Kill => Signal::KILL,
        };
        process.signal(signal).context(|| format!("signal {daemon}"))?;
        if blow == Blow::Kill {
            process.wait(KILL_LIMIT).context(|| format!("wait for the end of {daemon}"))?;
        }
        Ok(())
    }

    /// What every daemon does, the manager first.
    pub fn daemon_states(&self) -> Result<Vec<(String, DaemonState)>, LabError> {
        self.outside()?;
        let state = |daemon: &str| match self.process(daemon).map(|process| process.id()) {
            Some(id) if id.is_running() => {
                if is_stopped(id) {
                    DaemonState::Stopped
                } else {
                    DaemonState::Running
                }
            }
            _ => DaemonState::Ended,
        };
        Ok(self.daemon_names().map(|name| (name.to_owned(), state(name))).collect())
    }

    fn set_link(&self, link: &str, state: &str) -> Result<(), LabError> {
        let plan = self.plan()?;
        let found = plan.link(link).ok_or_else(|| no_link(&plan, link))?;
        // The upper end is a port of a bridge and has no address. If the lower end went down, the
        // routes and neighbours of its address would be lost.
        let arguments = ["link", "set", "dev", &found.upper_device, state];
        tool::run(&self.entry(&found.upper)?, "ip", &arguments, "").map(drop)
    }

    fn outside(&self) -> Result<&Self, LabError> {
        if self.is_around_us() { Err(LabError::Inside) } else { Ok(self) }
    }
}

impl Fault {
    fn check(&self, plan: &crate::topology::Plan) -> Result<(), LabError> {
        if let Some(link) = self.link()
            && plan.link(link).is_none()
        {
            return Err(no_link(plan, link));
        }
        match self {
            // The condition is negated as a whole, so that NaN is refused too.
            Self::Loss { percent, .. } | Self::Corrupt { percent, .. } if !(*percent > 0.0 && *percent <= 100.0) => {
                Err(LabError::Percent(*percent))
            }
            _ => Ok(()),
        }
    }

    fn link(&self) -> Option<&str> {
        match self {
            Self::Loss { link, .. } | Self::Corrupt { link, .. } | Self::Cut { link } => Some(link),
            Self::IsolateHosts => None,
        }
    }

    /// True when only one of the two can be in force.
    fn replaces(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Loss { link, direction, .. }, Self::Loss { link: there, direction: that, .. })
            | (Self::Corrupt { link, direction, .. }, Self::Corrupt { link: there, direction: that, .. }) => {
                (link, direction) == (there, that)
            }
            _ => self == other,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loss { link, direction, percent } => write!(f, "loss {percent} % on {link} {}", direction.name()),
            Self::Corrupt { link, direction, percent } => {
                write!(f, "corrupt {percent} % on {link} {}", direction.name())
            }
            Self::Cut { link } => write!(f, "cut {link}"),
            Self::IsolateHosts => f.write_str("isolate-hosts"),
        }
    }
}

fn write_faults(folder: &StateFolder, faults: &[Fault]) -> Result<(), LabError> {
    folder.write(FILE, &serde_json::to_vec(faults).expect("names and numbers only"))
}

fn no_link(plan: &crate::topology::Plan, link: &str) -> LabError {
    let known = plan.links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>().join(", ");
    LabError::Link { link: link.to_owned(), known }
}

fn is_stopped(id: ProcessId) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", id.pid)).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with(['T', 't']))
}

/// How long the kernel may take to end a process.
const KILL_LIMIT: Duration = Duration::from_secs(5);
const FILE: &str = "faults.json";
