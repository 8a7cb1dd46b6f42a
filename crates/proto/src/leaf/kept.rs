//! Operations that are over for this rank's program while other ranks may lack results of them. If
//! a node dies now, their last pieces are folded anew, and that takes this rank's contributions.

use core::ops::Range;
use std::collections::VecDeque;

use super::operation::Operation;
use super::output::LeafOutput;

/// The operations of one group on one path, by the numbers of their pieces.
#[derive(Default)]
pub(super) struct Kept {
    operations: VecDeque<Operation>,
}

impl Kept {
    /// Keeps an operation of which some rank may lack the results from piece `from` on. Returns the
    /// bytes of this rank's contribution that may be needed again.
    pub(super) fn keep(&mut self, mut operation: Operation, from: u64) -> Range<u64> {
        operation.over = true;
        let needed = operation.given_from(from);
        let at = self.operations.partition_point(|other| other.base < operation.base);
        self.operations.insert(at, operation);
        needed
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
