//! Why a laboratory could not be started, found, used or taken down.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// What went wrong, whose fault it is, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The name cannot be a file name.
    #[error("{0:?} is no name for a laboratory: 1 to 32 of a-z, 0-9 and '-', beginning with a letter")]
    Name(String),
    /// A laboratory of this shape cannot exist.
    #[error("{what}: {least} to {most}, not {given}")]
    Shape {
        /// What is out of bounds.
        what: &'static str,
        /// What was asked for.
        given: u64,
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
    /// This is no limit of the topology file.
    #[error("{0:?} is no limit with its value, a number or a name; docs/topology.md lists them")]
    Limit(String),
    /// This machine or this user cannot have a laboratory with links.
    #[error("a laboratory with links cannot be built here: {0}")]
    Unavailable(String),
    /// It runs already, and differs from what is asked for.
    #[error("{name:?} is already running with {running}, not {asked}; take it down first, or choose another --name")]
    Different {
        /// The laboratory.
        name: String,
        /// What runs.
        running: String,
        /// What is asked for.
        asked: String,
    },
    /// A laboratory of this name runs already, so the caller cannot own it.
    #[error("{0:?} is already running; take it down first, or choose another --name")]
    Running(String),
    /// Its record cannot be read.
    #[error(
        "{} was written by another version of trib, and something of it runs: take it down and up again \
         (`trib lab down --name NAME`, `trib fabric down --name NAME`)",
        .0.display()
    )]
    Record(PathBuf),
    /// Daemons that had ended could not be started again.
    #[error(
        "had ended and cannot be started again: {daemons}. What runs was left as it is; to build everything anew, take it down \
         and up. {cause}"
    )]
    Repair {
        /// The daemons.
        daemons: String,
        /// Why they could not be started.
        cause: Box<LabError>,
    },
    /// Nothing runs under this name.
    #[error("no laboratory {0:?} is running; `trib lab up` starts one, TRIB_LAB or --name names it")]
    Unknown(String),
    /// A parameter of Open MPI that the laboratory sets itself.
    #[error(
        "--mca {name} {value}: the laboratory starts Open MPI's daemons by {name}={needs} and cannot do without; leave it out"
    )]
    Parameter {
        /// The parameter.
        name: String,
        /// What the user wants.
        value: String,
        /// What it has to be.
        needs: String,
    },
    /// It has no such host or switch.
    #[error("no place {place:?} in the laboratory: it has {known}")]
    Place {
        /// What was asked for.
        place: String,
        /// What there is.
        known: String,
    },
    /// It has no such link.
    #[error("no link {link:?} in the laboratory: a link has the name of its lower end, and there are {known}")]
    Link {
        /// What was asked for.
        link: String,
        /// What there is.
        known: String,
    },
    /// It has no such process.
    #[error("no process {process:?} in the laboratory: it has {known}")]
    Process {
        /// What was asked for.
        process: String,
        /// What there is.
        known: String,
    },
    /// A daemon that is to be started has not ended.
    #[error("{0} has not ended, so it cannot be started; `trib lab fault continue` wakes one that is stopped")]
    Runs(String),
    /// This cannot be done from inside the laboratory.
    #[error("this cannot be done from inside the laboratory, where the machine's processes cannot be seen")]
    Inside,
    /// Its processes are in another PID namespace.
    #[error(
        "{} belongs to processes that cannot be seen from here: they run in another PID namespace, outside of this \
         laboratory or container, or inside of one. Do this where they were started",
        .0.display()
    )]
    Elsewhere(PathBuf),
    /// A percentage that makes no sense.
    #[error("{0} is no percentage of packets: more than 0, at most 100")]
    Percent(f64),
    /// The state folder belongs to somebody else, or others may write to it.
    #[error("{} must be a folder of user {uid} with mode 0700; remove it, or set XDG_RUNTIME_DIR to a folder of your own", path.display())]
    Unsafe {
        /// The folder.
        path: PathBuf,
        /// The user it has to belong to.
        uid: u32,
    },
    /// A tool failed.
    #[error("`{command}` failed: {answer}")]
    Tool {
        /// The command line.
        command: String,
        /// What it printed.
        answer: String,
    },
    /// A tool's answer was not what we know how to read.
    #[error("cannot read the answer of `{command}`: {reason}")]
    Answer {
        /// The command line.
        command: String,
        /// What is missing in it.
        reason: String,
    },
    /// A file or process operation failed.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was tried, with the path.
        action: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The keys of the fabric could not be made.
    #[error("cannot create the fabric's credentials: {0}")]
    Credentials(String),
    /// A daemon ended before it was ready.
    #[error("{daemon} ended before it was ready; the end of {} says:\n{tail}", log.display())]
    Ended {
        /// The daemon.
        daemon: String,
        /// Its log.
        log: PathBuf,
        /// The log's last lines.
        tail: String,
    },
    /// A daemon was not ready in time.
    #[error("{daemon} was not ready within {limit:?}; the end of {} says:\n{tail}", log.display())]
    NotReady {
        /// The daemon.
        daemon: String,
        /// How long it had.
        limit: Duration,
        /// Its log.
        log: PathBuf,
        /// The log's last lines.
        tail: String,
    },
    /// A daemon said that it is ready, but not where.
    #[error("{daemon} is ready but gave no usable X_TRIB_ADDRESS ({given:?}); this is a bug in it")]
    NoAddress {
        /// The daemon.
        daemon: String,
        /// What it gave.
        given: Option<String>,
    },
}

/// Puts what was tried beside the system's answer.
pub(crate) trait Context<T> {
    /// Turns an error into a [`LabError::Io`] whose sentence begins "cannot `action`".
    fn context(self, action: impl FnOnce() -> String) -> Result<T, LabError>;
}

impl<T, E: Into<io::Error>> Context<T> for Result<T, E> {
    fn context(self, action: impl FnOnce() -> String) -> Result<T, LabError> {
        self.map_err(|error| LabError::Io { action: action(), source: error.into() })
    }
}
