//! Signatures of the collectives: what all members must agree on.

use trib_wire::{Collective, DataType, ReduceOp, Signature};

/// No data.
pub const fn barrier() -> Signature {
    moving(Collective::Barrier, 0, 0)
}

/// `count` elements each, reduced everywhere.
pub const fn allreduce(count: u64, dtype: DataType, op: ReduceOp) -> Signature {
    Signature { collective: Collective::Allreduce, dtype, op, root: 0, count }
}

/// `count` elements each, reduced at `root`.
pub const fn reduce(count: u64, dtype: DataType, op: ReduceOp, root: u32) -> Signature {
    Signature { collective: Collective::Reduce, dtype, op, root, count }
}

/// `bytes` from `root` to all.
pub const fn bcast(bytes: u64, root: u32) -> Signature {
    moving(Collective::Bcast, bytes, root)
}

/// Blocks of `count` elements: every member gives one per member and gets its own, reduced.
pub const fn reduce_scatter(count: u64, dtype: DataType, op: ReduceOp) -> Signature {
    Signature { collective: Collective::ReduceScatter, dtype, op, root: 0, count }
}

/// Blocks of `bytes`: every member gives one and gets all.
pub const fn allgather(bytes: u64) -> Signature {
    moving(Collective::Allgather, bytes, 0)
}

/// Data that is not computed with is bytes laid over zeros.
const fn moving(collective: Collective, count: u64, root: u32) -> Signature {
    Signature { collective, dtype: DataType::U8, op: ReduceOp::BitOr, root, count }
}
