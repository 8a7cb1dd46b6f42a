//! The core's own time: nanoseconds since a start that the driver chooses.

use core::fmt;
use core::ops::{Add, Sub};

/// A reading of the driver's monotonic clock, or a span between two readings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Further away than any deadline.
    pub const NEVER: Nanos = Nanos(u64::MAX);

    /// A span of milliseconds.
    pub const fn from_millis(ms: u64) -> Nanos {
        Nanos(ms * 1_000_000)
    }

    /// A span of microseconds.
    pub const fn from_micros(us: u64) -> Nanos {
        Nanos(us * 1_000)
    }

    /// The span since `earlier`, or zero if `earlier` is later than this.
    pub const fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, span: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(span.0))
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, span: Nanos) -> Nanos {
        self.since(span)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}
