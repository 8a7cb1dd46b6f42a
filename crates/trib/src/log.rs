//! Diagnostics. They always go to stderr, so that stdout has only what was asked for.

use std::fmt;
use std::io;
use std::path::Path;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;
use trib_service::log::LogError;

use crate::failure::{Failure, PREFIX};

/// Sets logging up for a daemon: every line says where in the code it comes from, in the form that
/// the terminal, the journal or the file needs.
pub fn init_daemon(filter: &str, file: Option<&Path>) -> Result<(), Failure> {
    trib_service::log::init(filter, file).map_err(|error| match error {
        LogError::Filter { .. } => Failure::Usage(error.to_string()),
        LogError::File { .. } => Failure::environment(error),
    })
}

/// Sets logging up for a tool: each line has the text only, with the tool's name in front.
pub fn init_tool() {
    tracing_subscriber::fmt()
        .with_env_filter(filter(LevelFilter::INFO))
        .with_writer(io::stderr)
        .with_ansi(false)
        .event_format(Words)
        .init();
}

/// Writes `trib: TEXT`, with `warning: ` or `debug: ` before the text of these levels.
struct Words;

impl<S, N> FormatEvent<S, N> for Words
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut to: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let level = match *event.metadata().level() {
            Level::WARN => "warning: ",
            Level::DEBUG | Level::TRACE => "debug: ",
            Level::INFO | Level::ERROR => "",
        };
        write!(to, "{PREFIX}{level}")?;
        context.field_format().format_fields(to.by_ref(), event)?;
        writeln!(to)
    }
}

/// The filter of `TRIB_LOG`, or `level` if that is not set. A directive that makes no sense is
/// reported and left out, because it should not stop a tool.
fn filter(level: LevelFilter) -> EnvFilter {
    EnvFilter::builder().with_default_directive(level.into()).with_env_var("TRIB_LOG").from_env_lossy()
}
