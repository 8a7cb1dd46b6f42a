//! How a vector is cut into chunks, and where each lies in memory.
//!
//! A chunk of an operation with a block for each rank has the same part of every block: it is the
//! same operation with shorter blocks, whose input or result are rows in the program's memory.
//!
//! ```text
//!   reduce-scatter of 3 ranks   |--b0--|--b1--|--b2--|      chunk 1 of 3:   |.##...|.##...|.##...|
//! ```

use std::ops::Range;

use trib_proto::{Limits, window};
use trib_wire::datatype::ELEMENT_MAX;
use trib_wire::{Collective, DataType, Signature};

/// How the operations of a group are cut. All members have the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Plan {
    /// The bytes of a buffer, for the input of a chunk and its result together.
    pub(super) buffer: usize,
    /// How many buffers there may be.
    pub(super) depth: usize,
    /// The bytes that a chunk of a short vector has in a buffer.
    shortest: usize,
    size: u32,
}

/// Equal runs of bytes of the program's memory, which follow each other without gaps in a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rows {
    /// How far behind the buffer's start the first one is.
    pub(super) first: usize,
    pub(super) count: usize,
    /// The distance between the starts of two.
    pub(super) stride: usize,
    /// The bytes of one.
    pub(super) len: usize,
}

/// A chunk, as one rank has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cut {
    /// The operation that it is.
    pub(super) signature: Signature,
    /// Its first element, in the vector or in each of its blocks.
    pub(super) first: u64,
    /// What the rank gives; its rows are of the buffer with the input.
    pub(super) give: Option<Rows>,
    /// What the rank gets; its rows are of the buffer for the result.
    pub(super) get: Option<Rows>,
}

impl Plan {
    /// The plan for a group of `size` of a job with this grant. A chunk has at least as many bytes
    /// as the tree has under way for a group, so that a second one fills it while the first ends; a
    /// third is copied out and a fourth copied back meanwhile. Each chunk costs an operation, so
    /// those of long vectors are longer.
    pub(super) fn new(limits: &Limits, size: u32) -> Plan {
        let rows = size as usize + 1;
        let under_way = limits.flight as usize * limits.segment as usize;
        let short = under_way.clamp(CHUNK_MIN, CHUNK_MAX);
        let long = (LONGER * under_way).clamp(CHUNK_MIN, CHUNK_MAX);
        let one_element = ELEMENT_MAX * rows;
        let one_block = (FLOAT_MAX * BLOCK as usize * rows).min(2 * CHUNK_MAX);
        Plan {
            buffer: (2 * long).max(one_block).max(one_element),
            depth: (under_way.div_ceil(short) + COPIED_BESIDE + 1).min(DEPTH_MAX),
            shortest: (2 * short).max(one_element),
            size,
        }
    }

    /// The same with chunks so many times as long, of which a buffer holds one part.
    pub(super) fn widened(self, parts: usize) -> Plan {
        Plan { buffer: self.buffer * parts, shortest: self.shortest * parts, ..self }
    }

    /// How many chunks an operation has.
    pub(super) fn chunks(&self, signature: &Signature) -> u64 {
        signature.count.div_ceil(self.elements(signature))
    }

    /// Whether every chunk of such an operation begins with a block of sums. It does unless a chunk
    /// has less than a block of each of very many ranks.
    pub(super) fn cuts_between_blocks(&self, signature: &Signature) -> bool {
        let each = self.elements(signature);
        each >= signature.count || each.is_multiple_of(BLOCK)
    }

    /// The chunk with this number, as the member with this rank has it.
    pub(super) fn cut(&self, signature: &Signature, number: u64, rank: u32) -> Cut {
        let each = self.elements(signature);
        let part = number * each..((number + 1) * each).min(signature.count);
        let rows = self.rows(signature, &part);
        let gives_block = signature.collective == Collective::Allgather;
        let gets_block = signature.collective == Collective::ReduceScatter;
        let one_row = Rows { count: 1, stride: 0, ..rows };
        let (given, gotten) = window::shares(signature, self.size, rank);
        Cut {
            signature: Signature { count: part.end - part.start, ..*signature },
            first: part.start,
            give: (!given.is_empty()).then_some(if gives_block { one_row } else { rows }),
            get: (!gotten.is_empty()).then_some(if gets_block { one_row } else { rows }),
        }
    }

    /// The rows of all that a part has of a vector.
    fn rows(&self, signature: &Signature, part: &Range<u64>) -> Rows {
        let element = signature.dtype.size();
        let (first, len) = (part.start as usize * element, (part.end - part.start) as usize * element);
        match blocks(signature, self.size) {
            1 => Rows { first, count: 1, stride: 0, len },
            count => Rows { first, count, stride: signature.count as usize * element, len },
        }
    }

    /// The elements of a chunk, of the vector or of each block.
    fn elements(&self, signature: &Signature) -> u64 {
        let blocks = blocks(signature, self.size);
        // The one side has every block, and the other one of them; without blocks both have the
        // vector.
        let each = signature.dtype.size() * (blocks + 1);
        let (least, most) = ((self.shortest / each) as u64, (self.buffer / each) as u64);
        let elements = signature.count.div_ceil(CHUNKS).clamp(least, most);
        // Sums in blocks have the same blocks wherever a vector is cut.
        let (whole, next) = (elements - elements % BLOCK, elements.next_multiple_of(BLOCK));
        if next <= most {
            next
        } else if whole > 0 {
            whole
        } else {
            // There is no room for a block of each rank.
            elements
        }
    }
}

impl Cut {
    /// The bytes that the rank gives, behind which its result lies in a buffer.
    pub(super) fn given(&self) -> usize {
        self.give.map_or(0, |rows| rows.bytes())
    }
}

impl Rows {
    /// All bytes.
    pub(super) fn bytes(&self) -> usize {
        self.count * self.len
    }
}

/// The blocks of a vector.
fn blocks(signature: &Signature, size: u32) -> usize {
    match signature.collective {
        Collective::ReduceScatter | Collective::Allgather => size as usize,
        _ => 1,
    }
}

const BLOCK: u64 = trib_sums::BLOCK as u64;
/// The bytes of the longest element that is summed in blocks.
const FLOAT_MAX: usize = DataType::F64.size();
/// Shorter chunks would cost more in messages than they gain.
const CHUNK_MIN: usize = 64 << 10;
/// Longer ones would only take memory.
const CHUNK_MAX: usize = 4 << 20;
/// How many times as long the chunks of a long vector are: with chunks of one time, an allreduce of
/// 64 MiB took 1.17 times as long as over memory of the host, with this 1.03 (docs/gpu.md).
const LONGER: usize = 4;
/// A vector has so many chunks at least before they get longer, so that copies hide behind others.
const CHUNKS: u64 = 16;
/// The chunks that are copied while others travel: one out, one back.
const COPIED_BESIDE: usize = 2;
/// More buffers than that would only take memory.
const DEPTH_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trib_proto::Nanos;
    use trib_wire::ReduceOp;

    use super::*;
    use crate::operation;

    const FLOATS: [DataType; 4] = [DataType::F16, DataType::BF16, DataType::F32, DataType::F64];

    fn limits(flight: u32, segment: u32) -> Limits {
        Limits {
            groups: 1,
            window: 1,
            osts: 1,
            payload: 1024,
            streams: 1,
            segment,
            staging: flight,
            flight,
            control_memory: 1 << 20,
            stream_threshold: 4096,
            lease_operations: 0,
            heartbeat: Nanos(1),
            dead_after: Nanos(2),
        }
    }

    fn every_collective(count: u64, dtype: DataType, root: u32) -> [Signature; 5] {
        let op = if dtype.class() == trib_wire::combination::Class::Pair { ReduceOp::MaxLoc } else { ReduceOp::Max };
        [
            operation::allreduce(count, dtype, op),
            operation::reduce(count, dtype, op, root),
            operation::bcast(count, root),
            operation::reduce_scatter(count, dtype, op),
            operation::allgather(count),
        ]
    }

    /// Marks the bytes of rows; no byte is marked twice.
    fn mark(rows: Option<Rows>, bytes: &mut [bool]) {
        let Some(rows) = rows else { return };
        for start in (0..rows.count).map(|row| rows.first + row * rows.stride) {
            for byte in &mut bytes[start..start + rows.len] {
                assert!(!std::mem::replace(byte, true), "a byte is in two chunks");
            }
        }
    }

    proptest! {
        #[test]
        fn chunks_have_every_byte_that_a_rank_gives_and_gets_once(
            flight in 1u32..4, segment in 1u32..5, count in 1u64..40_000, size in 1u32..6, which in 0usize..5,
            dtype in prop::sample::select(vec![DataType::U8, DataType::F64, DataType::from_name("float64:int32").unwrap()]),
            rank in 0u32..6, root in 0u32..6,
        ) {
            let (rank, root) = (rank % size, root % size);
            let signature = every_collective(count, dtype, root)[which];
            let plan = Plan { buffer: 4096, shortest: 1024, ..Plan::new(&limits(flight, segment * 1024), size) };
            let element = signature.dtype.size();
            let bytes = |elements: Range<u64>| (elements.end - elements.start) as usize * element;
            let (given, gotten) = window::shares(&signature, size, rank);
            let (mut give, mut get) = (vec![false; bytes(given)], vec![false; bytes(gotten)]);
            let mut elements = 0;
            for number in 0..plan.chunks(&signature) {
                let cut = plan.cut(&signature, number, rank);
                let bytes = |rows: Option<Rows>| rows.map_or(0, |rows| rows.bytes());
                prop_assert_eq!(cut.first, elements);
                prop_assert!(cut.signature.count > 0 && bytes(cut.give) + bytes(cut.get) <= plan.buffer);
                let (own_give, own_get) = window::shares(&cut.signature, size, rank);
                prop_assert_eq!(bytes(cut.give), (own_give.end - own_give.start) as usize * element);
                prop_assert_eq!(bytes(cut.get), (own_get.end - own_get.start) as usize * element);
                mark(cut.give, &mut give);
                mark(cut.get, &mut get);
                elements += cut.signature.count;
            }
            prop_assert_eq!(elements, count);
            prop_assert!(give.iter().chain(&get).all(|marked| *marked));
        }
    }

    #[test]
    fn the_grant_bounds_what_is_pinned() {
        let usual = Plan::new(&limits(12, 48 << 10), 8);
        assert_eq!((usual.buffer, usual.depth), (2 * LONGER * 12 * (48 << 10), 4));
        let most = Plan::new(&limits(1024, 64 << 10), 8);
        assert_eq!((most.buffer, most.depth), (2 * CHUNK_MAX, DEPTH_MAX));
        let least = Plan::new(&limits(1, 1024), 8);
        assert_eq!((least.buffer, least.depth), (2 * CHUNK_MIN, 4));
        let bytes = |count| usual.cut(&operation::bcast(count, 0), 0, 0).signature.count;
        assert_eq!((bytes(4 << 20), bytes(16 << 20), bytes(1 << 30)), (576 << 10, 1 << 20, 4 * (576 << 10)));
        // One element of every block fits, however many ranks there are.
        let wide = Plan::new(&limits(1, 1024), 60_000);
        assert_eq!(wide.chunks(&operation::allgather(1)), 1);
    }

    #[test]
    fn chunks_of_sums_begin_with_a_block() {
        let sum = |dtype| operation::reduce_scatter(1 << 24, dtype, ReduceOp::Sum);
        for (flight, segment) in [(1, 1024), (12, 48 << 10), (1024, 64 << 10)] {
            for (size, dtype) in (2..=64).flat_map(|size| FLOATS.map(|dtype| (size, dtype))) {
                let (plan, signature) = (Plan::new(&limits(flight, segment), size), sum(dtype));
                for number in 0..plan.chunks(&signature) {
                    let first = plan.cut(&signature, number, 0).first;
                    assert!(first % BLOCK == 0, "{dtype} of {size} ranks, {flight} of {segment}: {first}");
                }
                assert!(plan.cuts_between_blocks(&signature));
            }
        }
    }

    #[test]
    fn thousands_of_ranks_have_a_block_of_each_in_a_buffer_and_more_are_not_cut_in_blocks() {
        let is_cut = |size, dtype| {
            let plan = Plan::new(&limits(1, 1024), size);
            assert!(plan.buffer <= 2 * CHUNK_MAX);
            plan.cuts_between_blocks(&operation::reduce_scatter(1 << 20, dtype, ReduceOp::Sum))
        };
        assert!(FLOATS.into_iter().all(|dtype| is_cut(4095, dtype)));
        assert!(is_cut(8191, DataType::F32) && !is_cut(8192, DataType::F32));
        // What is not cut has its blocks, however many ranks there are.
        let short = operation::reduce_scatter(1, DataType::F32, ReduceOp::Sum);
        assert!(Plan::new(&limits(1, 1024), 60_000).cuts_between_blocks(&short));
    }

    #[test]
    fn all_ranks_cut_alike() {
        let plan = Plan::new(&limits(1, 1024), 4);
        for signature in every_collective(1 << 20, DataType::U8, 2) {
            for number in 0..plan.chunks(&signature) {
                let cuts: Vec<Signature> = (0..4).map(|rank| plan.cut(&signature, number, rank).signature).collect();
                assert!(cuts.iter().all(|cut| *cut == cuts[0]));
            }
        }
    }
}
