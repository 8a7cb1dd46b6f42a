//! Why a fold was refused. Each of these errors is the caller's mistake, and leaves the first
//! vector untouched.

use trib_wire::{DataType, ReduceOp};

/// A fold that cannot be computed as asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FoldError {
    /// There is no such cell ([`trib_wire::combination`]).
    #[error("operator {op} is not defined for {dtype}: {}", op.refusal(dtype.class()).unwrap_or("no kernel"))]
    Unsupported {
        /// Type of the elements.
        dtype: DataType,
        /// Operator.
        op: ReduceOp,
    },
    /// A source is longer or shorter than the first vector.
    #[error("source {index} has {found} bytes, the first vector has {expected}")]
    LengthMismatch {
        /// Position in the list of sources.
        index: usize,
        /// Bytes of the first vector.
        expected: usize,
        /// Bytes of this source.
        found: usize,
    },
    /// The vectors end inside an element.
    #[error("{length} bytes are not a whole number of {dtype} elements of {} bytes", dtype.size())]
    PartialElement {
        /// Type of the elements.
        dtype: DataType,
        /// Bytes of the first vector.
        length: usize,
    },
    /// The vectors end inside a block.
    #[error("{length} bytes are not a whole number of blocks of {} bytes", trib_wire::INT8_BLOCK_BYTES)]
    PartialBlock {
        /// Bytes of the first vector.
        length: usize,
    },
}
