//! The comparison: Tributary and its peers on the same fabric, measured the same way.
//!
//! Map: `cell` (what is measured at a time), `line` (what measuring programs print), `system` (how
//! each peer is started), `testbed` and `network` (what is needed of a fabric), `lab` (the
//! laboratory as such a fabric), `launch` (processes of one launch), `study` and `schedule` (which
//! system measures what and when), `counters` (what does not depend on the machine's noise),
//! `result` and `statistics` (rows), `scenario` (what the comparison consists of), `comparison`
//! (all of it), `machine` and `pace` (where it ran, and how fast that was at the time), `targets`
//! (what is required and what was measured), `gain` (ours beside the best peer's), `report` (JSON,
//! tables, CSV, plots), `calibrate` (what one host and one node cost, for predictions).
//!
//! Invariant: whatever a system does becomes a row, even if it hangs, fails or gives a wrong
//! result. Nothing is left out.

pub mod calibrate;
pub mod cell;
mod comparison;
mod counters;
mod gain;
pub mod lab;
mod launch;
mod line;
pub mod machine;
pub mod network;
pub mod pace;
pub mod report;
pub mod result;
pub mod scenario;
mod schedule;
pub mod statistics;
pub mod study;
pub mod system;
pub mod targets;
pub mod testbed;

pub use cell::{Cell, Mode};
pub use comparison::{Up, compare};
pub use line::{Latencies, WorkerRow};
pub use scenario::Wishes;
