//! How long a logical node that has moved took until it folded again.

use std::time::{Duration, Instant};

/// Its stay in one epoch. The first epoch of a job is not measured.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stay {
    /// The job is where it began, or nothing is to be measured any more.
    First,
    /// Nothing was folded since then.
    Still(Instant),
    /// The first fold came after this time.
    Moving(Duration),
}

impl Stay {
    pub(super) fn begin(has_moved: bool) -> Stay {
        if has_moved { Stay::Still(Instant::now()) } else { Stay::First }
    }

    /// Something was folded. It reads the clock once in an epoch.
    pub(super) fn folded(&mut self) {
        if let Stay::Still(since) = *self {
            *self = Stay::Moving(since.elapsed());
        }
    }

    /// How long it took, as far as that is known.
    pub(crate) fn first_fold(&self) -> Option<Duration> {
        match self {
            Stay::Moving(span) => Some(*span),
            Stay::First | Stay::Still(_) => None,
        }
    }
}
