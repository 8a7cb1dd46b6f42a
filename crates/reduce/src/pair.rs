//! Pairs of a value and its index: how they lie in a vector, and which of two wins.
//!
//! The fold of some pairs has the largest (or smallest) of their values, and the smallest of the
//! indices at which a value equals it. Values are equal if they compare equal, as zeros of both
//! signs do; of those the result has the zero that `max` (or `min`) would give. If some value is
//! not a number, the result's is none either, and its index is the smallest index of such a value.
//! None of this depends on the order of the operands.
//!
//! All of it is integer arithmetic. A float's bits, read as sign and magnitude and turned into
//! two's complement, are in the order of the floats. Whether a number is signed, and whether the
//! larger or the smaller one wins, becomes a bit pattern that is flipped before numbers are
//! compared. So pairs of the same widths share one kernel, and an [`Order`] says which cell it
//! computes.

use core::ops::{BitAnd, BitXor};

use trib_wire::{ReduceOp, Scalar};

use crate::element::Element;
use crate::operator::Op;
use crate::simd::plain::Plain;

/// A value and its index, as they lie in a vector.
#[derive(Clone, Copy)]
#[repr(C, packed)]
pub(crate) struct Pair<V, I> {
    pub(crate) value: V,
    pub(crate) index: I,
}

// SAFETY: both fields take any bits, and packed there is nothing between or behind them.
unsafe impl<V: Bits, I: Bits> Element for Pair<V, I> {
    type Wide = Pair<V, I>;
    type Avx<O: Op<Pair<V, I>>> = Plain<Pair<V, I>, O>;

    #[inline(always)]
    fn widen(self) -> Pair<V, I> {
        self
    }

    #[inline(always)]
    fn narrow(wide: Pair<V, I>) -> Pair<V, I> {
        wide
    }
}

/// What distinguishes the cells that share a kernel. Its numbers stand in the top bits of 64, so
/// that they are the same for all widths.
#[derive(Clone, Copy)]
pub(crate) struct Order {
    /// The bits to flip in values: after that, the value that wins is the larger one, both read as
    /// signed.
    pub(crate) value: u64,
    /// The bits to flip in indices: after that, they compare as signed numbers do.
    pub(crate) index: u64,
    /// For floats, the magnitude above which bits are not a number.
    pub(crate) infinity: u64,
    /// For floats, the key that stands for everything that is not a number.
    pub(crate) nan: u64,
}

impl Order {
    /// The order of cells that do not fold pairs.
    pub(crate) const NONE: Order = Order { value: 0, index: 0, infinity: 0, nan: 0 };

    /// Which of two pairs of these types wins: the larger value, or under `minloc` the smaller one.
    pub(crate) const fn of(value: Scalar, index: Scalar, op: ReduceOp) -> Order {
        let (infinity, nan) = match value {
            Scalar::F16 => (0x7c00 << 48, 0x7e00 << 48),
            Scalar::BF16 | Scalar::F32 => (0x7f80 << 48, 0x7fc0 << 48),
            Scalar::F64 => (0x7ff0 << 48, 0x7ff8 << 48),
            _ => (0, 0),
        };
        let downwards = if matches!(op, ReduceOp::MinLoc) { u64::MAX } else { 0 };
        Order { value: unsigned_top(value) ^ downwards, index: unsigned_top(index), infinity, nan }
    }
}

/// The top bit of an unsigned number: with this bit flipped, it compares as a signed one does.
const fn unsigned_top(scalar: Scalar) -> u64 {
    if matches!(scalar, Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64) { 1 << 63 } else { 0 }
}

/// The fold of pairs: an [`Order`] cut to the width in which the pair's numbers are computed.
#[derive(Clone, Copy)]
pub(crate) struct Located<V: Bits, I: Bits, const FLOAT: bool> {
    value: V::VectorLane,
    index: I::VectorLane,
    infinity: V::VectorLane,
    nan: V::VectorLane,
}

impl<V: Bits, I: Bits, const FLOAT: bool> Located<V, I, FLOAT> {
    /// The key that decides between values: the larger one wins, and what is not a number has the
    /// largest.
    #[inline(always)]
    fn key(self, value: V::VectorLane) -> <V::VectorLane as VectorLane>::Signed {
        if !FLOAT {
            return (value ^ self.value).signed();
        }
        let key = (value.twos_complement() ^ self.value).signed();
        if value & V::VectorLane::MAGNITUDE > self.infinity { V::VectorLane::LAST } else { key }
    }

    /// The value of two pairs that win together. Floats can then differ only in the sign of a zero;
    /// the larger of them stays, or under `minloc` the smaller.
    #[inline(always)]
    fn either(self, left: V::VectorLane, right: V::VectorLane) -> V::VectorLane {
        if FLOAT { (left ^ self.value) & (right ^ self.value) ^ self.value } else { left }
    }
}

impl<V: Bits, I: Bits, const FLOAT: bool> Op<Pair<V, I>> for Located<V, I, FLOAT> {
    #[inline(always)]
    fn new(order: &Order) -> Self {
        Located {
            value: V::VectorLane::top(order.value),
            index: I::VectorLane::top(order.index),
            infinity: V::VectorLane::top(order.infinity),
            nan: V::VectorLane::top(order.nan),
        }
    }

    #[inline(always)]
    fn apply(self, left: Pair<V, I>, right: Pair<V, I>) -> Pair<V, I> {
        let (left_value, right_value) = ({ left.value }.to_vector_lane(), { right.value }.to_vector_lane());
        let (left_index, right_index) = ({ left.index }.to_vector_lane(), { right.index }.to_vector_lane());
        let (left_key, right_key) = (self.key(left_value), self.key(right_value));
        let (left_wins, right_wins) = (left_key > right_key, left_key < right_key);
        let left_first = (left_index ^ self.index).signed() < (right_index ^ self.index).signed();
        let value = if left_wins {
            left_value
        } else if right_wins {
            right_value
        } else {
            self.either(left_value, right_value)
        };
        let index = if left_wins {
            left_index
        } else if right_wins {
            right_index
        } else if left_first {
            left_index
        } else {
            right_index
        };
        let unordered = FLOAT && (left_key == V::VectorLane::LAST) | (right_key == V::VectorLane::LAST);
        let value = if unordered { self.nan } else { value };
        Pair { value: V::from_vector_lane(value), index: I::from_vector_lane(index) }
    }
}

/// A number of a pair as its bits.
pub(crate) trait Bits: Element<Wide = Self> + Into<u64> {
    /// The type in which the number is computed. Processors compare a few short numbers hardly
    /// faster than long ones, but converting between widths costs time.
    type VectorLane: VectorLane;

    /// The number in the top bits of a vector lane, above zeros.
    fn to_vector_lane(self) -> Self::VectorLane;

    /// The number in the top bits of a vector lane.
    fn from_vector_lane(number: Self::VectorLane) -> Self;

    /// The lowest bits of a number.
    fn lowest(bits: u64) -> Self;
}

/// The unsigned number in which a kernel computes: one element of a vector register.
pub(crate) trait VectorLane: Copy + Ord + BitAnd<Output = Self> + BitXor<Output = Self> {
    /// The same bits as a signed number.
    type Signed: Copy + Ord;

    /// All bits but the top one.
    const MAGNITUDE: Self;

    /// The largest signed number.
    const LAST: Self::Signed;

    /// The same bits, read as a signed number.
    fn signed(self) -> Self::Signed;

    /// The two's complement of a number that is given as sign and magnitude.
    fn twos_complement(self) -> Self;

    /// The top bits of a number.
    fn top(bits: u64) -> Self;
}

macro_rules! bits {
    ($($type:ty => $wide:ty;)*) => { $(
        impl Bits for $type {
            type VectorLane = $wide;
            #[inline(always)]
            fn to_vector_lane(self) -> $wide { <$wide>::from(self) << (<$wide>::BITS - <$type>::BITS) }
            #[inline(always)]
            fn from_vector_lane(number: $wide) -> $type { (number >> (<$wide>::BITS - <$type>::BITS)) as $type }
            #[inline(always)]
            fn lowest(bits: u64) -> $type { bits as $type }
        }
    )* };
}

bits! {
    u8 => u32;
    u16 => u32;
    u32 => u32;
    u64 => u64;
}

macro_rules! vector_lane {
    ($($wide:ty as $signed:ty;)*) => { $(
        impl VectorLane for $wide {
            type Signed = $signed;
            const MAGNITUDE: $wide = <$wide>::MAX >> 1;
            const LAST: $signed = <$signed>::MAX;
            #[inline(always)]
            fn signed(self) -> $signed { self.cast_signed() }
            #[inline(always)]
            fn twos_complement(self) -> $wide {
                let sign = (self.cast_signed() >> (<$wide>::BITS - 1)).cast_unsigned();
                (self ^ sign & Self::MAGNITUDE).wrapping_sub(sign)
            }
            #[inline(always)]
            fn top(bits: u64) -> $wide { (bits >> (64 - <$wide>::BITS)) as $wide }
        }
    )* };
}

vector_lane! {
    u32 as i32;
    u64 as i64;
}
