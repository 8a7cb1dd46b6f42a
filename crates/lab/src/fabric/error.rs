//! Why a fabric could not be started, found or taken down.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// What went wrong, whose fault it is, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum FabricError {
    /// The name would not do as a file name.
    #[error("{0:?} is no name for a fabric: 1 to 32 of a-z, 0-9 and '-', beginning with a letter")]
    Name(String),
    /// A fabric of this shape cannot exist.
    #[error("a fabric has 1 to {max} leaf nodes and 1 to {max} workers per node, not {leaves} and {workers}", max = super::shape::COUNT_MAX)]
    Shape {
        /// Leaf nodes asked for.
        leaves: u16,
        /// Workers asked for.
        workers: u16,
    },
    /// It runs already, and differs from what is asked for.
    #[error(
        "fabric {name:?} is already running with {running}, not {asked}; take it down first, or choose another --name"
    )]
    Different {
        /// The fabric.
        name: String,
        /// What runs.
        running: String,
        /// What is asked for.
        asked: String,
    },
    /// The state folder belongs to somebody else, or others may write to it.
    #[error("{} must be a folder of user {uid} with mode 0700; remove it, or set XDG_RUNTIME_DIR to a folder of your own", path.display())]
    Unsafe {
        /// The folder.
        path: PathBuf,
        /// The user it has to belong to.
        uid: u32,
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
    /// Turns an error into a [`FabricError::Io`] whose sentence begins "cannot `action`".
    fn context(self, action: impl FnOnce() -> String) -> Result<T, FabricError>;
}

impl<T, E: Into<io::Error>> Context<T> for Result<T, E> {
    fn context(self, action: impl FnOnce() -> String) -> Result<T, FabricError> {
        self.map_err(|error| FabricError::Io { action: action(), source: error.into() })
    }
}
