//! Vectors whose reduction is known exactly, whatever the order of the fold.
//!
//! For every element one rank, its owner, gives a value drawn from position and round, and all
//! others give a filler. Owners change from element to element, so that a missing, doubled or
//! misplaced contribution shows. Values are so small that no partial result is ever rounded. For
//! pairs the owner's pair wins, at every fourth element by its index alone.

use half::{bf16, f16};
use trib_client::{DataType, ReduceOp, Scalar};

/// The values of one reduction over `ranks` ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values {
    pub(super) dtype: DataType,
    pub(super) op: ReduceOp,
    pub(super) ranks: u32,
}

impl Values {
    /// The bytes that `rank` gives for elements `from..from + count` in `round`.
    pub(super) fn given(&self, rank: u32, round: u64, from: u64, count: u64) -> Vec<u8> {
        self.fill(from, count, |at| {
            let (owner, value, filler) = self.draw(at, round);
            if owner == rank { (value, index(at)) } else { (filler, INDICES + i64::from(rank) % INDICES) }
        })
    }

    /// The bytes that must come out for these elements.
    pub(super) fn expected(&self, round: u64, from: u64, count: u64) -> Vec<u8> {
        self.fill(from, count, |at| {
            let (_, value, filler) = self.draw(at, round);
            (self.fold(value, filler), index(at))
        })
    }

    /// The owner of one element, the owner's value, and the others' filler.
    fn draw(&self, at: u64, round: u64) -> (u32, i64, i64) {
        let hash = mix(at ^ (round << 56));
        let owner = (((hash >> 32) * u64::from(self.ranks)) >> 32) as u32;
        let drawn = (hash & 0xffff_ffff) as i64;
        let float = self.dtype.value().is_float();
        let (value, filler) = match self.op {
            ReduceOp::Sum if float => {
                let others = i64::from(self.ranks) - 1;
                let filler = i64::from(others < self.largest() / 2);
                (drawn % (self.largest() - others * filler).max(1), filler)
            }
            ReduceOp::Prod if float => (1 << (drawn % 7), 1),
            ReduceOp::Sum | ReduceOp::Prod => (drawn, 3),
            ReduceOp::Max => (drawn % self.largest() + 1, drawn % self.largest()),
            ReduceOp::Min => (drawn % self.largest(), drawn % self.largest() + 1),
            // These values are not 0 in any width.
            ReduceOp::LogicalAnd => (drawn & 0x0a, 0x55),
            ReduceOp::LogicalOr => (drawn & 0x0a, 0),
            ReduceOp::LogicalXor => (drawn & 0x0a, 0x55),
            ReduceOp::BitAnd => (drawn, -1),
            ReduceOp::BitOr => (drawn, 0),
            ReduceOp::BitXor => (drawn, 0x5a5a_5a5a_5a5a_5a5a),
            ReduceOp::MaxLoc | ReduceOp::MinLoc if at.is_multiple_of(4) => {
                (drawn % self.largest(), drawn % self.largest())
            }
            ReduceOp::MaxLoc => (drawn % self.largest() + 1, drawn % self.largest()),
            ReduceOp::MinLoc => (drawn % self.largest(), drawn % self.largest() + 1),
        };
        (owner, value, filler)
    }

    fn fold(&self, value: i64, filler: i64) -> i64 {
        let others = i64::from(self.ranks) - 1;
        if others == 0 {
            return value;
        }
        match self.op {
            ReduceOp::Sum => value.wrapping_add(others.wrapping_mul(filler)),
            ReduceOp::Prod => value.wrapping_mul(filler.wrapping_pow(self.ranks - 1)),
            ReduceOp::BitXor if others % 2 == 1 => value ^ filler,
            ReduceOp::LogicalXor if others % 2 == 1 => i64::from(value == 0),
            ReduceOp::LogicalAnd | ReduceOp::LogicalOr | ReduceOp::LogicalXor => i64::from(value != 0),
            // The owner's value decides, however many fillers there are.
            ReduceOp::BitXor | ReduceOp::Max | ReduceOp::Min | ReduceOp::BitAnd | ReduceOp::BitOr => value,
            ReduceOp::MaxLoc | ReduceOp::MinLoc => value,
        }
    }

    /// The type holds all whole numbers from zero to one above this number exactly.
    fn largest(&self) -> i64 {
        match self.dtype.value() {
            Scalar::I8 => 126,
            Scalar::U8 | Scalar::BF16 => 254,
            Scalar::F16 => 2046,
            Scalar::U16 | Scalar::I16 => 32_766,
            Scalar::F32 => (1 << 24) - 2,
            _ => (1 << 31) - 2,
        }
    }

    /// The bytes of elements made of a value and, for pairs, an index.
    fn fill(&self, from: u64, count: u64, element: impl Fn(u64) -> (i64, i64)) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count as usize * self.dtype.size());
        for (value, index) in (from..from + count).map(element) {
            put(&mut bytes, self.dtype.value(), value);
            if let Some(integer) = self.dtype.index() {
                put(&mut bytes, integer, index);
            }
        }
        bytes
    }
}

/// Appends a number. Only its low bytes count, because integers wrap in the tree too.
fn put(bytes: &mut Vec<u8>, scalar: Scalar, value: i64) {
    match scalar {
        Scalar::F16 => bytes.extend(f16::from_f32(value as f32).to_le_bytes()),
        Scalar::BF16 => bytes.extend(bf16::from_f32(value as f32).to_le_bytes()),
        Scalar::F32 => bytes.extend((value as f32).to_le_bytes()),
        Scalar::F64 => bytes.extend((value as f64).to_le_bytes()),
        integer => bytes.extend(&value.to_le_bytes()[..integer.size()]),
    }
}

/// The index that an owner gives. It is below all others', and any type of index holds twice as
/// many.
fn index(at: u64) -> i64 {
    (at % INDICES as u64) as i64
}

const INDICES: i64 = 64;

/// Bytes for collectives that compute nothing.
pub(super) fn raw(round: u64, from: u64, count: u64) -> Vec<u8> {
    (from..from + count).map(|at| mix(at ^ (round << 56)) as u8).collect()
}

/// The last step of SplitMix64: every bit of the input changes every bit of the output.
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_order_of_the_fold_gives_the_expected_bits() {
        for &dtype in DataType::ALL {
            for &op in ReduceOp::ALL {
                if !op.is_defined_on(dtype) {
                    continue;
                }
                for ranks in [1, 2, 5, 8] {
                    let values = Values { dtype, op, ranks };
                    let vectors: Vec<Vec<u8>> = (0..ranks).map(|rank| values.given(rank, 1, 7, 100)).collect();
                    let parts: Vec<&[u8]> = vectors.iter().rev().map(Vec::as_slice).collect();
                    let mut folded = parts[0].to_vec();
                    if ranks > 1 {
                        trib_reduce::fold_into(dtype, op, &mut folded, &parts[1..]).unwrap();
                    }
                    assert_eq!(folded, values.expected(1, 7, 100), "{dtype} {op} {ranks}");
                }
            }
        }
    }

    #[test]
    fn rounds_and_ranks_differ() {
        let values = Values { dtype: DataType::F32, op: ReduceOp::Sum, ranks: 4 };
        assert_ne!(values.given(0, 0, 0, 64), values.given(0, 1, 0, 64));
        assert_ne!(values.given(0, 0, 0, 64), values.given(1, 0, 0, 64));
        assert_ne!(values.expected(0, 0, 64), values.expected(1, 0, 64));
        assert_eq!(values.given(2, 0, 10, 20), values.given(2, 0, 0, 30)[40..]);
    }
}
