//! A kernel that folds, for one type and operator.

use std::sync::Arc;

use trib_device::{Current, Kernel};
use trib_reduce::ptx;
use trib_wire::{DataType, ReduceOp};

use super::super::from_device;
use crate::error::Error;

/// The compiled fold over the vectors of all ranks of a host.
#[derive(Clone)]
pub(super) struct Fold {
    dtype: DataType,
    op: ReduceOp,
    pub(super) kernel: Arc<Kernel>,
}

impl Fold {
    /// Compiles it for so many ranks.
    pub(super) fn new(current: &Current, dtype: DataType, op: ReduceOp, ranks: usize) -> Result<Fold, Error> {
        let text = ptx::fold(dtype, op, ranks).ok_or_else(|| Error::broken("a fold without a text"))?;
        let kernel = Arc::new(Kernel::new(current, &text, ptx::NAME).map_err(from_device)?);
        Ok(Fold { dtype, op, kernel })
    }

    /// Whether it folds with this operator elements of this type.
    pub(super) fn is_of(&self, dtype: DataType, op: ReduceOp) -> bool {
        (self.dtype, self.op) == (dtype, op)
    }
}
