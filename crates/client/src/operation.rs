//! Signatures of the collectives: what all members must agree on.

use trib_wire::{Collective, DataType, ReduceOp, Signature, WireFormat};

/// A barrier, which has no data.
pub const fn barrier() -> Signature {
    moving(Collective::Barrier, 0, 0)
}

/// Every member gives `count` elements; every member gets them reduced.
pub const fn allreduce(count: u64, dtype: DataType, op: ReduceOp) -> Signature {
    Signature { collective: Collective::Allreduce, dtype, op, format: WireFormat::Plain, root: 0, count }
}

/// Every member gives `count` elements; `root` gets them reduced.
pub const fn reduce(count: u64, dtype: DataType, op: ReduceOp, root: u32) -> Signature {
    Signature { collective: Collective::Reduce, dtype, op, format: WireFormat::Plain, root, count }
}

/// Every member gets the `bytes` bytes of `root`.
pub const fn bcast(bytes: u64, root: u32) -> Signature {
    moving(Collective::Bcast, bytes, root)
}

/// Every member gives a block of `count` elements for each member, and gets its own block reduced.
pub const fn reduce_scatter(count: u64, dtype: DataType, op: ReduceOp) -> Signature {
    Signature { collective: Collective::ReduceScatter, dtype, op, format: WireFormat::Plain, root: 0, count }
}

/// Every member gives a block of `bytes` bytes and gets all blocks.
pub const fn allgather(bytes: u64) -> Signature {
    moving(Collective::Allgather, bytes, 0)
}

/// A collective that computes nothing: its vector is bytes that are laid over zeros.
const fn moving(collective: Collective, count: u64, root: u32) -> Signature {
    Signature { collective, dtype: DataType::U8, op: ReduceOp::BitOr, format: WireFormat::Plain, root, count }
}
