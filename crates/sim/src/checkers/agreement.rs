//! Under `strict` all ranks agree on how an operation ends: it succeeds at a rank only when every
//! rank of its group holds the result, and no rank reports an error for what has succeeded at
//! another.
//!
//! What a rank reports that dies, or that others take for dead because it stands still for too
//! long, binds nobody: a rank may be the only one that was told, and the root may die with it. But
//! what it held when others succeeded counts.

use trib_wire::Fault;

use super::Checkers;

const NAME: &str = "agreement";

impl Checkers {
    /// The operation is over at this rank.
    pub(super) fn check_agreement(&mut self, operation: usize, rank: u32, fault: Option<Fault>) {
        if !self.strict || self.is_out(rank) {
            return;
        }
        let members = &self.operations[operation].members;
        let others = members.iter().filter(|m| m.rank != rank && !self.is_out(m.rank));
        let wrong = match fault {
            Some(fault) => {
                let mut succeeded = others.filter(|m| matches!(m.outcome, Some(Ok(_))));
                succeeded.next().map(|m| format!("fails at rank {rank} ({fault}) and succeeded at rank {}", m.rank))
            }
            None => {
                let lacking = members.iter().find(|m| !m.posted || self.lacks_any(operation, m).is_some());
                let mut failed = others.filter(|m| matches!(m.outcome, Some(Err(_))));
                let lacking =
                    lacking.map(|m| format!("succeeds at rank {rank} while rank {} lacks the result", m.rank));
                lacking.or_else(|| {
                    failed.next().map(|m| format!("succeeds at rank {rank} and has failed at rank {}", m.rank))
                })
            }
        };
        if let Some(wrong) = wrong {
            self.fail(NAME, format!("{} {wrong}", self.name(operation)));
        }
    }

    /// Whether a rank is dead, or may be taken for dead.
    fn is_out(&self, rank: u32) -> bool {
        self.dead[rank as usize] || self.stopped[rank as usize]
    }
}
