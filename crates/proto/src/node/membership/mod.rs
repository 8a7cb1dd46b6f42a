//! How groups come into being and go.
//!
//! Map: `stage` (the table of a creation), `pending` (one creation), `creation` (joins gather
//! upward, the verdict travels down), `ending` (by a fault, or when all have left), `loss` (what
//! ends with a connection).

mod creation;
mod ending;
mod loss;
mod pending;
mod stage;
#[cfg(test)]
mod tests;

pub(super) use ending::check_left;
pub(super) use pending::{Join, Pending};
