//! The options of subcommands that can look again and again.

use std::time::Duration;

use clap::Args;

use super::units::some_seconds;

/// Whether to look again, and how often.
#[derive(Args, Debug)]
pub struct Watching {
    /// Show it again and again until Ctrl-C: on a terminal in place, else one block after another,
    /// with --json one line each
    #[arg(long)]
    watch: bool,
    /// With --watch: how often, seconds [default: 1]
    #[arg(long, value_name = "SECONDS", requires = "watch", value_parser = some_seconds)]
    interval: Option<Duration>,
}

impl Watching {
    /// The time from one look to the next, if there is to be more than one look.
    pub(super) fn interval(&self) -> Option<Duration> {
        self.watch.then(|| self.interval.unwrap_or(Duration::from_secs(1)))
    }
}
