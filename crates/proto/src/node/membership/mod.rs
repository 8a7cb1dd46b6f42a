//! How groups come into being and go.
//!
//! Map: `stage` (the table of a creation), `pending` (one creation), `creation` (joins gather
//! upward, the verdict travels down), `resuming` (groups of an earlier epoch), `ending` (by a
//! fault, or when all have left), `departed` (groups that all have left), `loss` (what ends with a
//! connection).

mod creation;
mod departed;
mod ending;
mod loss;
mod pending;
mod resuming;
mod stage;
#[cfg(test)]
mod tests;

pub(super) use departed::Departed;
pub(super) use ending::check_left;
pub(super) use pending::{Join, Pending};
