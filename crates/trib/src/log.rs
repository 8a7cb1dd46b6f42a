//! Diagnostics: always on stderr, so that stdout holds nothing but what was asked for.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// For daemons: every line with its time and where in the code it comes from.
pub fn init_daemon() {
    tracing_subscriber::fmt()
        .with_env_filter(filter(LevelFilter::INFO))
        .with_writer(io::stderr)
        .with_ansi(is_terminal())
        .init();
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

/// `TRIB_LOG`, or `level` where it is silent. A directive that makes no sense is reported and left out.
fn filter(level: LevelFilter) -> EnvFilter {
    EnvFilter::builder().with_default_directive(level.into()).with_env_var("TRIB_LOG").from_env_lossy()
}

fn is_terminal() -> bool {
    io::stderr().is_terminal()
}
