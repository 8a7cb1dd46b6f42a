//! What a measurement runs on.

use std::time::Duration;

use crate::network::Network;
use crate::system::Programs;

/// A fabric that is up, the programs that are started on it, and how long they may take.
#[derive(Clone, Copy)]
pub struct Testbed<'a> {
    /// The fabric.
    pub network: &'a dyn Network,
    /// Where the programs are.
    pub programs: &'a Programs,
    /// The longest that each step may take.
    pub limits: Limits,
}

/// Time limits of a launch.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The time from the start to the first cell's end.
    pub start: Duration,
    /// The time from one cell's end to the next one's, in addition to the cell's time budget.
    pub cell: Duration,
    /// The time of the whole comparison for waiting until the machine is steady, and for measuring
    /// again what was disturbed.
    pub patience: Duration,
}
