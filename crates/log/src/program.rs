//! The log of a program that links the library: lines on its stderr, if it asks for them.
//!
//! `tracing-subscriber` has a subscriber that writes lines, too. It keeps buffers in thread-local
//! values, whose destructors would keep the library from being unloaded while a thread lives that
//! has logged.

use std::fmt::{self, Write as _};
use std::io::{self, Write as _};
use std::sync::Once;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber, dispatcher};
use tracing_subscriber::filter::Targets;

use crate::filter::filter;

/// Begins the log of this process, where it has none yet: what the filter `text` lets through goes
/// to stderr, each line behind `who` and its level. Where the filter makes no sense, a line says
/// so and `info` is used, because a log should not stop a program.
pub fn begin_in_program(text: &str, who: &str) {
    // One thread begins it, and others wait here. Inside `tracing` they would wait by
    // `std::thread::park`, which leaves a destructor with a program's thread: it would run when
    // that thread ends, wherever the library is by then.
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| begin(text, who));
}

fn begin(text: &str, who: &str) {
    if dispatcher::has_been_set() {
        return;
    }
    let (targets, fault) = match filter(text) {
        Ok(targets) => (targets, None),
        Err(fault) => (Targets::new().with_default(LevelFilter::INFO), Some(fault)),
    };
    // A program in Rust may begin a log of its own meanwhile, which is as good.
    let begun = tracing::subscriber::set_global_default(Lines { targets, who: who.to_owned() }).is_ok();
    if let Some(fault) = fault.filter(|_| begun) {
        say(&line(who, Level::WARN, &format!("TRIB_LOG: {fault}")));
    }
}

/// Writes events as lines. Spans are not followed: the library has none.
struct Lines {
    targets: Targets,
    who: String,
}

impl Subscriber for Lines {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.enabled(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && self.targets.would_enable(metadata.target(), metadata.level())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let named = self.targets.iter().map(|(_, level)| level);
        named.chain(self.targets.default_level()).max()
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut words = Words::default();
        event.record(&mut words);
        say(&line(&self.who, *event.metadata().level(), &(words.message + &words.fields)));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// An event's text, and its other fields behind it.
#[derive(Default)]
struct Words {
    message: String,
    fields: String,
}

impl Visit for Words {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let written = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
        written.expect("writing to memory cannot fail");
    }
}

/// One line, whatever is in the text.
fn line(who: &str, level: Level, text: &str) -> String {
    let level = match level {
        Level::ERROR => "error",
        Level::WARN => "warning",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    };
    format!("{who} tributary {level}: {}\n", text.replace('\n', " "))
}

/// Writes a line as one, so that those of many ranks do not mix. Nobody is to be told if it cannot
/// be written.
fn say(line: &str) {
    let _ = io::stderr().write_all(line.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Lines {
        Lines { targets: filter(text).unwrap(), who: "h0:7 [1]".into() }
    }

    #[test]
    fn the_most_detailed_level_of_any_crate_is_the_hint() {
        assert_eq!(lines("warn").max_level_hint(), Some(LevelFilter::WARN));
        assert_eq!(lines("warn,trib_client=debug").max_level_hint(), Some(LevelFilter::DEBUG));
        assert_eq!(lines("trib_client=error").max_level_hint(), Some(LevelFilter::INFO));
    }

    #[test]
    fn an_event_is_one_line_with_who_level_text_and_fields() {
        let text = "the node\nis not there cause=refused";
        assert_eq!(
            line("h0:7 [1]", Level::WARN, text),
            "h0:7 [1] tributary warning: the node is not there cause=refused\n"
        );
    }
}
