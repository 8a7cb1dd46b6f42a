//! Diagnostics: always on stderr, so that stdout holds nothing but what was asked for.

use std::io::{self, IsTerminal};
use std::path::Path;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use trib_service::log::LogError;

use crate::failure::Failure;

/// For daemons: every line with where in the code it comes from, in the form that the terminal, the journal and the file
/// want it.
pub fn init_daemon(filter: &str, file: Option<&Path>) -> Result<(), Failure> {
    trib_service::log::init(filter, file).map_err(|error| match error {
        LogError::Filter { .. } => Failure::Usage(error.to_string()),
        LogError::File { .. } => Failure::environment(error),
    })
}

/// For tools: just the words.
pub fn init_tool() {
    tracing_subscriber::fmt()
        .with_env_filter(filter(LevelFilter::INFO))
        .with_writer(io::stderr)
        .with_ansi(is_terminal())
        .with_target(false)
        .without_time()
        .init();
}

/// `TRIB_LOG`, or `level` where it is silent. A directive that makes no sense is reported and left out: a tool is not
/// stopped by it.
fn filter(level: LevelFilter) -> EnvFilter {
    EnvFilter::builder().with_default_directive(level.into()).with_env_var("TRIB_LOG").from_env_lossy()
}

fn is_terminal() -> bool {
    io::stderr().is_terminal()
}
