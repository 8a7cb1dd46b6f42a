//! The gate before and after the operations of a cell.

use std::io::BufRead as _;

use trib_client::Group;

use crate::failure::Failure;

/// Rank 0 prints where it is and goes on when it reads an answer; the others wait for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gate {
    pub(super) is_used: bool,
    /// Whether this rank prints and reads.
    pub(super) speaks: bool,
}

impl Gate {
    /// Waits at the gate of `event`.
    pub(super) fn pass(self, group: &Group, event: &str) -> Result<(), Failure> {
        if !self.is_used {
            return Ok(());
        }
        if self.speaks {
            let mut line = String::new();
            say!("{{\"event\":\"{event}\"}}")?;
            if std::io::stdin().lock().read_line(&mut line).map_err(Failure::environment)? == 0 {
                return Err(Failure::Environment("--gate: stdin ended, so nobody opens the gate".into()));
            }
        }
        group.barrier().map_err(Failure::operation)
    }
}
