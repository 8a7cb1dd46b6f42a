//! Once nothing disturbs a run any more, everything in it ends within bounded time, and what does
//! not is named.

use std::fmt::Write;

use trib_proto::Nanos;

use super::Checkers;

const NAME: &str = "liveness";

impl Checkers {
    /// When anything last made progress.
    pub fn last_progress(&self) -> Nanos {
        self.progress
    }

    /// Nothing makes progress any more: says which operations are stuck, and which rank waits for
    /// which.
    pub fn stuck(&mut self, why: &str, details: &str) {
        let mut what = format!("{why}; ");
        let mut open = 0;
        for (number, operation) in self.operations.iter().enumerate() {
            let lacking: Vec<u32> = operation
                .members
                .iter()
                .filter(|m| m.posted && m.outcome.is_none() && !self.dead[m.rank as usize])
                .map(|m| m.rank)
                .collect();
            if lacking.is_empty() {
                continue;
            }
            open += 1;
            if open <= 4 {
                let absent: Vec<u32> = operation.members.iter().filter(|m| !m.posted).map(|m| m.rank).collect();
                let missing =
                    operation.members.iter().find(|m| m.rank == lacking[0]).and_then(|m| self.lacks_any(number, m));
                let _ = write!(
                    what,
                    "{}: ranks {lacking:?} wait (rank {} lacks {missing:?}), ranks {absent:?} have not posted; ",
                    self.name(number),
                    lacking[0]
                );
            }
        }
        let _ = write!(what, "{open} operations open; {details}");
        self.fail(NAME, what);
    }
}
