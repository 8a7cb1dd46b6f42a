//! Lines for the journal: each begins with `<N>`, its level, by which the journal sorts and colours
//! lines.

use std::fmt;
use std::io;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Whether stderr is the journal. `$JOURNAL_STREAM` names the device and inode of what systemd
/// connected; a stderr that was redirected since has others.
pub(super) fn is_wanted() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    rustix::fs::fstat(io::stderr()).is_ok_and(|stat| stream == format!("{}:{}", stat.st_dev, stat.st_ino))
}

/// The usual line without time and level, behind its prefix.
pub(super) struct Journal {
    line: Format<Full, ()>,
}

impl Default for Journal {
    fn default() -> Self {
        Journal { line: tracing_subscriber::fmt::format().without_time().with_level(false).with_ansi(false) }
    }
}

impl<S, N> FormatEvent<S, N> for Journal
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut text = String::new();
        self.line.format_event(context, Writer::new(&mut text), event)?;
        let priority = priority(event.metadata().level());
        // A line break begins another entry in the journal, which needs a prefix of its own.
        text.lines().try_for_each(|line| writeln!(out, "<{priority}>{}", line.trim_start()))
    }
}

/// The level as syslog(3) counts.
fn priority(level: &Level) -> u8 {
    match *level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::layer::SubscriberExt;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_line_begins_with_its_level_and_nothing_else_stands_before_the_words() {
        let page = Page::default();
        let writer = page.clone();
        let layer = tracing_subscriber::fmt::layer()
            .event_format(Journal::default())
            .with_ansi(false)
            .with_writer(move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::error!(target: "t", "broken");
            tracing::warn!(target: "t", job = 7, "odd");
            tracing::info!(target: "t", "first\nsecond");
            tracing::debug!(target: "t", "detail");
        });
        let text = String::from_utf8(page.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text, "<3>t: broken\n<4>t: odd job=7\n<6>t: first\n<6>second\n<7>t: detail\n");
    }
}
