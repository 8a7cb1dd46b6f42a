//! The trace of a run: one aligned line per event, and a hash that says whether two runs were the
//! same.

use std::fmt::Arguments;
use std::io::Write;

use trib_proto::Nanos;

use crate::random::mix;

/// Collects the events of a run.
#[derive(Debug, Default)]
pub struct Trace {
    printing: bool,
    hash: u64,
    events: u64,
}

impl Trace {
    /// A trace that prints its lines on stdout, or only hashes them.
    pub fn new(printing: bool) -> Trace {
        Trace { printing, hash: 0, events: 0 }
    }

    /// Whether lines are printed; if not, there is no use in formatting them.
    pub fn is_printing(&self) -> bool {
        self.printing
    }

    /// Adds an event, given as numbers for the hash and as a line for the reader.
    pub fn event(&mut self, now: Nanos, numbers: [u64; 3], line: Arguments<'_>) {
        self.events += 1;
        for number in numbers {
            self.hash = mix(self.hash ^ number).rotate_left(9);
        }
        self.hash = mix(self.hash ^ now.0);
        if self.printing {
            // A reader that has gone away ends the output, not the run.
            let _ = writeln!(std::io::stdout().lock(), "{:>9}.{:06} {line}", now.0 / 1_000_000, now.0 % 1_000_000);
        }
    }

    /// Hash of all events so far.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Number of events so far.
    pub fn events(&self) -> u64 {
        self.events
    }
}
