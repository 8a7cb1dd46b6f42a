//! Operations that are over for this rank's program while other ranks may lack results of them. If
//! a node dies now, their last pieces are folded anew, and that takes this rank's contributions.

use std::collections::VecDeque;

use super::operation::Operation;
use super::output::LeafOutput;

/// The operations of one group on one path, by the numbers of their pieces.
pub(super) struct Kept {
    /// Whether the job goes on in another epoch. If it does not, nothing is kept.
    recovers: bool,
    operations: VecDeque<Operation>,
}

impl Kept {
    /// Nothing yet.
    pub(super) fn new(recovers: bool) -> Kept {
        Kept { recovers, operations: VecDeque::new() }
    }

    /// All results of an operation are here, and every rank has those of the pieces below `stable`.
    /// The driver is told, unless the operation is over for the program already, and which elements
    /// of this rank's contribution may be needed again.
    pub(super) fn complete(&mut self, mut operation: Operation, stable: u64, out: &mut impl LeafOutput) {
        let (id, was_over) = (operation.id, core::mem::replace(&mut operation.over, true));
        let needed = if self.recovers { operation.given_from(stable) } else { 0..0 };
        if self.recovers {
            let at = self.operations.partition_point(|other| other.base < operation.base);
            self.operations.insert(at, operation);
        }
        if !was_over {
            out.complete(id, Ok(needed));
        }
        self.release(stable, out);
    }

    /// Every rank has the results of all pieces below this number.
    pub(super) fn release(&mut self, below: u64, out: &mut impl LeafOutput) {
        while let Some(first) = self.operations.front().filter(|first| first.end() <= below) {
            out.forget(first.id);
            self.operations.pop_front();
        }
    }

    /// All that is kept, in order. Nothing is left.
    pub(super) fn take(&mut self) -> VecDeque<Operation> {
        core::mem::take(&mut self.operations)
    }
}
