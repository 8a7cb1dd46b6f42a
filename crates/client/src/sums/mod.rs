//! Sums of floating-point numbers that are taken otherwise than as they are: some operations of the
//! group, one after the other.
//!
//! One that does not depend on order has two rounds:
//!
//! ```text
//!   vector    | chunk 0 | chunk 1 | chunk 2 |
//!   posted    survey 0, survey 1, limbs 0, survey 2, limbs 1, limbs 2
//! ```
//! A chunk's survey is an allreduce; from what it gives, all members know how its elements become
//! limbs, which travel as the collective that was called (`trib_sums` says what both are). While
//! the limbs of a chunk are under way, the next one is surveyed. A vector that is short enough goes
//! without a survey, in one round, as limbs that have room for every number. Tree, boards, windows
//! and recovery know nothing of this: they sum integers. So a sum has the same bits whatever
//! happens to the tree.
//!
//! One that is quantised has one round: the blocks of each chunk travel as the collective that was
//! called (`trib_reduce::blocks` says what they are), and nodes sum them.
//!
//! The modules are `sum` (what is to be done), `call` (what was
//! called), `limbs` and `blocks` (the rounds of either kind), `taking` (one that a thread of ours
//! takes), `rows` (where the elements of a chunk lie) and `lent` (memory that the engine may still
//! use).

mod blocks;
mod call;
mod lent;
mod limbs;
mod rows;
mod sum;
mod taking;

use trib_wire::{INT8_BLOCK_BYTES, ReduceOp, Signature};

use crate::engine::Shared;
use crate::error::Error;
use crate::sum_kind::SumKind;
pub(crate) use call::Part;
pub(crate) use sum::Sum;
pub(crate) use taking::{Taking, ToTake};

/// Checks an operation of a group of `size` that such a sum concerns.
pub(crate) fn check(shared: &Shared, kind: SumKind, signature: &Signature, size: u32) -> Result<(), Error> {
    let Signature { dtype, op, .. } = *signature;
    let Some(order_free) = kind.order_free() else {
        let limits = shared.limits()?;
        return has_room(limits.payload.min(limits.segment));
    };
    if op == ReduceOp::Prod {
        return Err(Error::Unsupported(format!(
            "a product of {dtype} depends on the order of its factors, and this group asks for {} sums: use a group \
             without, or logarithms",
            kind.name()
        )));
    }
    order_free.check(dtype, size).map_err(|refusal| Error::Unsupported(refusal.to_string()))
}

/// Whether a piece of so many bytes holds a block.
fn has_room(piece: u32) -> Result<(), Error> {
    if piece as usize >= INT8_BLOCK_BYTES {
        return Ok(());
    }
    Err(Error::Unsupported(format!(
        "int8 sums travel in blocks of {INT8_BLOCK_BYTES} bytes, and this job's payload or segment has {piece}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_whose_pieces_hold_no_block_has_no_quantised_sums() {
        assert!(has_room(36).is_ok());
        let refusal = has_room(32).unwrap_err().to_string();
        assert_eq!(refusal, "int8 sums travel in blocks of 36 bytes, and this job's payload or segment has 32");
    }
}
