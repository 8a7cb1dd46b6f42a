//! Where the elements of a sum lie, and how they are cut into chunks.
//!
//! A reduce-scatter has a row of elements for each member, and a chunk of it has the same part of
//! every row. Other collectives have one row.

use std::ops::Range;

use trib_sums::BLOCK;
use trib_wire::{Collective, Signature};

/// The rows of a vector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rows {
    pub(super) count: usize,
    /// The elements of one.
    len: usize,
    /// The bytes of an element.
    element: usize,
    /// The elements of a chunk in one row, whole blocks but for the last.
    chunk: usize,
}

impl Rows {
    pub(super) fn new(signature: &Signature, size: u32) -> Rows {
        let count = if signature.collective == Collective::ReduceScatter { size as usize } else { 1 };
        let blocks = (CHUNK / BLOCK / count).max(1);
        Rows { count, len: signature.count as usize, element: signature.dtype.size(), chunk: blocks * BLOCK }
    }

    /// How many chunks there are.
    pub(super) fn chunks(&self) -> usize {
        self.len.div_ceil(self.chunk)
    }

    /// The elements of a chunk in each row.
    pub(super) fn elements(&self, chunk: usize) -> Range<usize> {
        let first = chunk * self.chunk;
        first..(first + self.chunk).min(self.len)
    }

    /// Where the elements of a chunk in a row begin, in bytes, and how many bytes they have.
    pub(super) fn span(&self, row: usize, chunk: usize) -> (usize, usize) {
        let Range { start, end } = self.elements(chunk);
        ((row * self.len + start) * self.element, (end - start) * self.element)
    }
}

/// The elements of a chunk in all rows, if those have more than a block. Limbs and survey of one
/// chunk are computed while another travels, so a chunk is a fraction of a long vector, and long
/// enough that what an operation costs does not count.
const CHUNK: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use trib_wire::{DataType, ReduceOp};

    use super::*;
    use crate::operation;

    #[test]
    fn chunks_have_every_element_once_and_begin_with_a_block() {
        for (signature, size) in [
            (operation::allreduce(0, DataType::F32, ReduceOp::Sum), 3),
            (operation::allreduce(1_000_001, DataType::F32, ReduceOp::Sum), 3),
            (operation::reduce_scatter(100_003, DataType::F64, ReduceOp::Sum), 7),
            (operation::reduce_scatter(700, DataType::F16, ReduceOp::Sum), 1000),
        ] {
            let rows = Rows::new(&signature, size);
            let mut next = 0;
            for chunk in 0..rows.chunks() {
                let Range { start, end } = rows.elements(chunk);
                assert!(start == next && start % BLOCK == 0 && start < end);
                let (from, len) = rows.span(rows.count - 1, chunk);
                let element = signature.dtype.size();
                assert_eq!(from, ((rows.count - 1) * signature.count as usize + start) * element);
                assert_eq!(len, (end - start) * element);
                next = end;
            }
            assert_eq!(next as u64, signature.count);
        }
    }
}
