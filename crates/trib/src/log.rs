//! Diagnostics. They always go to stderr, so that stdout has only what was asked for.

use std::fmt;
use std::io;
use std::path::Path;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use trib_service::log::LogError;

use crate::failure::{Failure, PREFIX, tell};

/// Sets logging up for a daemon: every line says where in the code it comes from, in the form that
/// the terminal, the journal or the file needs.
pub fn init_daemon(filter: &str, file: Option<&Path>) -> Result<(), Failure> {
    trib_service::log::init(filter, file).map_err(|error| match error {
        LogError::Filter(_) => Failure::Usage(error.to_string()),
        LogError::File { .. } => Failure::environment(error),
    })
}

/// Sets logging up for a tool: each line has the text only, with the tool's name in front.
pub fn init_tool() {
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(false).event_format(Words);
    tracing_subscriber::registry().with(filter()).with(lines).init();
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

/// The filter of `TRIB_LOG`, or `info` if that is not set. One that makes no sense is reported and
/// not used, because it should not stop a tool.
fn filter() -> Targets {
    let text = std::env::var("TRIB_LOG").unwrap_or_default();
    trib_log::filter(&text).unwrap_or_else(|error| {
        tell(format_args!("warning: TRIB_LOG: {error}"));
        Targets::new().with_default(LevelFilter::INFO)
    })
}
