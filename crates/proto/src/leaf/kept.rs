//! Operations that are over for this rank's program while other ranks may lack results of them. If
//! a node dies now, their last pieces are folded anew, and that takes this rank's contributions.
//!
//! Under `strict` an operation is not over for the program either until every rank has its results.
//! Till then it is *undecided* here: this rank has said that it holds them, others may have heard
//! that all do, and so it cannot fail the operation by itself any more.

use std::collections::VecDeque;

use trib_wire::Way;

use super::config::LeafConfig;
use super::operation::Operation;
use super::output::{LeafOutput, OpId};

/// The operations of one group on one path, by the numbers of their pieces.
pub(super) struct Kept {
    /// Whether the job goes on in another epoch. If it does not, nothing is kept.
    recovers: bool,
    /// Whether an operation is over for the program only when every rank has its results.
    strict: bool,
    operations: VecDeque<Operation>,
    /// The bytes that the driver has copied, also of operations that are sent again now.
    bytes: u64,
}

impl Kept {
    /// Nothing yet.
    pub(super) fn new(config: &LeafConfig) -> Kept {
        Kept { recovers: config.recovers, strict: config.strict, operations: VecDeque::new(), bytes: 0 }
    }

    /// The bytes of contributions that the driver keeps.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All results of an operation are here, and every rank has those of the pieces below `stable`.
    /// The driver is told, unless the operation is over for the program already, and which elements
    /// of this rank's contribution may be needed again.
    pub(super) fn complete(&mut self, mut operation: Operation, stable: u64, out: &mut impl LeafOutput) {
        if self.strict && !operation.over {
            self.insert(operation);
            return self.release(stable, out);
        }
        let (id, was_over) = (operation.id, core::mem::replace(&mut operation.over, true));
        let needed = if self.recovers { operation.given_from(stable) } else { 0..0 };
        if !was_over {
            operation.copied = operation.bytes(&needed, Way::FromRank);
            self.bytes += operation.copied;
        }
        if self.recovers {
            self.insert(operation);
        }
        if !was_over {
            out.complete(id, Ok(needed));
        }
        self.release(stable, out);
    }

    /// Every rank has the results of all pieces below this number.
    #[inline]
    pub(super) fn release(&mut self, below: u64, out: &mut impl LeafOutput) {
        while self.operations.front().is_some_and(|first| first.end() <= below)
            && let Some(first) = self.operations.pop_front()
        {
            self.end(&first, out);
        }
    }

    /// Every rank has the results of this operation. It is over, if it was not.
    fn end(&mut self, operation: &Operation, out: &mut impl LeafOutput) {
        if operation.over {
            self.forget(operation, out);
        } else {
            out.complete(operation.id, Ok(0..0));
        }
    }

    /// Nobody needs this operation any more, which is over.
    pub(super) fn forget(&mut self, operation: &Operation, out: &mut impl LeafOutput) {
        self.bytes -= operation.copied;
        out.forget(operation.id);
    }

    /// The number of operations whose results are here and that are not over.
    pub(super) fn undecided(&self) -> usize {
        if self.strict { self.operations.iter().filter(|operation| !operation.over).count() } else { 0 }
    }

    /// Gives up the undecided operations that end beyond piece `below`. Returns their names.
    pub(super) fn abandon(&mut self, below: u64) -> Vec<OpId> {
        let stays = |operation: &Operation| operation.over || operation.end() <= below;
        let given_up = self.operations.iter().filter(|operation| !stays(operation)).map(|operation| operation.id);
        let given_up = given_up.collect();
        self.operations.retain(stays);
        given_up
    }

    fn insert(&mut self, operation: Operation) {
        if self.operations.back().is_none_or(|last| last.base < operation.base) {
            return self.operations.push_back(operation);
        }
        let at = self.operations.partition_point(|other| other.base < operation.base);
        self.operations.insert(at, operation);
    }

    /// What is left of a group's operations, in order, when an epoch begins with piece `start`:
    /// every rank has the results of the pieces before it. Those that are over are sent again with
    /// the others, of which `unfinished` is the list.
    pub(super) fn resumed(
        &mut self,
        mut unfinished: VecDeque<Operation>,
        start: u64,
        out: &mut impl LeafOutput,
    ) -> VecDeque<Operation> {
        let mut operations = core::mem::take(&mut self.operations);
        operations.append(&mut unfinished);
        operations.make_contiguous().sort_by_key(|operation| operation.base);
        let (ended, rest): (VecDeque<Operation>, VecDeque<Operation>) =
            operations.into_iter().partition(|operation| operation.end() <= start);
        for operation in ended {
            self.end(&operation, out);
        }
        rest.into_iter().map(|operation| operation.resuming_at(start)).collect()
    }
}

/// The group is over, and every rank has the results of the pieces before `mark`: operations that
/// end there are over, and they succeed.
pub(super) fn end_below(operations: &mut VecDeque<Operation>, mark: u64, out: &mut impl LeafOutput) {
    operations.retain(|operation| {
        let ends = !operation.over && operation.end() <= mark;
        if ends {
            out.complete(operation.id, Ok(0..0));
        }
        !ends
    });
}
