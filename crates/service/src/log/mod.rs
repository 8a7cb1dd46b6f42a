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

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

/// Logging that could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter cannot be understood.
    #[error(
        "the log level `{filter}` makes no sense: {cause}; write error, warn, info, debug, trace, or crate=level,..."
    )]
    Filter {
        /// The text.
        filter: String,
        /// What is wrong with it.
        cause: String,
    },
    /// The log file cannot be written.
    #[error("cannot log to {}: {cause}; name a file that this user may write", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Why it cannot be written.
        cause: io::Error,
    },
}

/// What a filter lets through: a level, or `crate=level,...`, where crates that it does not name
/// log at `info`. The parser of `Targets` would silence these, and take a bare name as `trace`.
///
/// # Errors
/// The filter makes no sense.
pub fn filter(text: &str) -> Result<Targets, LogError> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let mut targets = Targets::new().with_default(LevelFilter::INFO);
    for part in parts {
        let fault = |cause: String| LogError::Filter { filter: text.to_owned(), cause };
        let (target, level) = part.split_once('=').unwrap_or(("", part));
        let level: LevelFilter = level.parse().map_err(|_| fault(format!("`{level}` is no level")))?;
        targets = match target {
            "" => targets.with_default(level),
            name => targets.with_target(name, level),
        };
    }
    Ok(targets)
}

/// Logs from now on, to stderr and to `file`, what `filter` lets through.
///
/// # Errors
/// The filter makes no sense, or the file cannot be opened.
///
/// # Panics
/// If it was called before in this process.
pub fn init(filter: &str, file: Option<&Path>) -> Result<(), LogError> {
    let filter = self::filter(filter)?;
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

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_filter_is_a_level_and_exceptions() {
        let all = filter("").unwrap();
        assert!(all.would_enable("trib_node", &Level::INFO) && !all.would_enable("trib_node", &Level::DEBUG));
        let some = filter("warn, trib_node=debug").unwrap();
        assert!(some.would_enable("trib_node::worker", &Level::DEBUG) && !some.would_enable("rustls", &Level::INFO));
        let only = filter("trib_node=off").unwrap();
        assert!(!only.would_enable("trib_node", &Level::ERROR) && only.would_enable("rustls", &Level::INFO));
        let error = filter("info,trib_node").unwrap_err().to_string();
        assert!(error.contains("`trib_node` is no level") && error.contains("crate=level"), "{error}");
    }
}
