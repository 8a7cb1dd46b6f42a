//! The comparison: Tributary and its peers on the same fabric, measured the same way.
//!
//! Map: `cell` (what is measured at once), `line` (what measuring programs print), `system` (how
//! each peer is started), `network` (what is needed of a fabric), `lab` (the laboratory as one),
//! `launch` (processes of one launch), `study` and `schedule` (who measures what and when),
//! `counters` (what is free of the machine's noise), `result` and `statistics` (rows), `scenario`
//! (what the comparison consists of), `comparison` (all of it), `machine` and `pace` (where it ran,
//! and how fast that was just then), `targets` (what is required and what came out), `report`
//! (JSON, tables, CSV, plots).
//!
//! Invariant: whatever a system does, hang, fail, or give a wrong result, becomes a row; nothing is
//! left out.

pub mod cell;
mod comparison;
mod counters;
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

pub use cell::{Cell, Mode};
pub use comparison::{Up, compare};
pub use line::{Latencies, WorkerRow};
pub use scenario::Wishes;
