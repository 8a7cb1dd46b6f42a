//! Where a daemon's diagnostics go: to stderr in the form its reader wants, and to a file as well.
//!
//! ```text
//!   stderr is a terminal or a file    2026-01-01T00:00:00Z  INFO trib_node: registered ...
//!   stderr is the journal             <6>trib_node: registered ...     (sd-daemon(3))
//!   a file                            as the first, without colours
//! ```
//!
//! Map: `journal` (the prefixes, and whether they are wanted), `file` (a file that may be rotated
//! under us).

mod file;
mod journal;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};
use trib_log::FilterError;

/// Logging that could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter cannot be understood.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// The log file cannot be written.
    #[error("cannot log to {}: {cause}; name a file that this user may write", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Why it cannot be written.
        cause: io::Error,
    },
}

/// Logs from now on, to stderr and to `file`, what `filter` lets through.
///
/// # Errors
/// The filter makes no sense, or the file cannot be opened.
///
/// # Panics
/// If it was called before in this process.
pub fn init(filter: &str, file: Option<&Path>) -> Result<(), LogError> {
    let filter = trib_log::filter(filter)?;
    let stderr = if journal::is_wanted() {
        fmt::layer().event_format(journal::Journal::default()).with_ansi(false).with_writer(io::stderr).boxed()
    } else {
        fmt::layer().with_ansi(io::stderr().is_terminal()).with_writer(io::stderr).boxed()
    };
    let file = match file {
        Some(path) => {
            let file = file::LogFile::open(path).map_err(|cause| LogError::File { file: path.to_owned(), cause })?;
            Some(fmt::layer().with_ansi(false).with_writer(file))
        }
        None => None,
    };
    tracing_subscriber::registry().with(filter).with(stderr).with(file).init();
    Ok(())
}
