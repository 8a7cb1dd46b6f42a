//! Sums of floating-point numbers that do not depend on order, as two rounds of operations of the
//! group.
//!
//! ```text
//!   vector    | chunk 0 | chunk 1 | chunk 2 |
//!   posted    survey 0, survey 1, limbs 0, survey 2, limbs 1, limbs 2
//! ```
//! A chunk's survey is an allreduce; from what it gives, all members know how its elements become
//! limbs, which travel as the collective that was called (`trib_sums` says what both are). While
//! the limbs of a chunk are under way, the next one is surveyed. A vector that is short enough goes
//! without a survey, in one round, as limbs that have room for every number.
//!
//! Tree, boards, windows and recovery know nothing of this: they sum integers. So a sum has the
//! same bits whatever happens to the tree.
//!
//! The modules are `sum` (what is to be done, and its rounds), `taking` (one that a thread of ours
//! takes), `rows` (where the elements of a chunk lie) and `lent` (memory that the engine may still
//! use).

mod lent;
mod rows;
mod sum;
mod taking;

use trib_sums::Kind;
use trib_wire::{Collective, ReduceOp, Signature};

use crate::error::Error;
pub(crate) use sum::Sum;
pub(crate) use taking::{Taking, ToTake};

/// Whether an operation is done so in a group that asks for sums of this kind: all that depend on
/// order are sums and products of floating-point numbers, and a product is refused.
pub(crate) fn concerns(signature: &Signature) -> bool {
    let Signature { collective, dtype, op, .. } = *signature;
    let reduces = matches!(collective, Collective::Allreduce | Collective::Reduce | Collective::ReduceScatter);
    reduces && dtype.index().is_none() && dtype.value().is_float() && matches!(op, ReduceOp::Sum | ReduceOp::Prod)
}

/// Checks such an operation of a group of `size`.
pub(crate) fn check(kind: Kind, signature: &Signature, size: u32) -> Result<(), Error> {
    let Signature { dtype, op, .. } = *signature;
    if op == ReduceOp::Prod {
        return Err(Error::Unsupported(format!(
            "a product of {dtype} depends on the order of its factors, and this group asks for {} sums: use a group \
             without, or logarithms",
            kind.name()
        )));
    }
    kind.check(dtype, size).map_err(|refusal| Error::Unsupported(refusal.to_string()))
}
