//! Pairs of a value and its index: how they lie in a vector, and which of two wins.
//!
//! The fold of some pairs has the largest (or smallest) of their values, and the smallest of the
//! indices at which a value equals it. Equal is what compares equal: both zeros; but the result has
//! the zero that `max` (or `min`) would give. Where one value is not a number the result is none
//! either, with the smallest index of such a value. None of this depends on the order of the
//! operands.
//!
//! Everything is integer arithmetic: a float's bits as sign and magnitude, turned into two's
//! complement, are in its order. What a number means beyond its width, signed or not, upwards or
//! downwards, is a bit pattern to flip before comparing. So pairs of the same widths share one
//! kernel, and an [`Order`] says what the cell is.

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

/// What the cells that share a kernel differ in. Numbers stand at the top of 64 bits, so that
/// widths do not show.
#[derive(Clone, Copy)]
pub(crate) struct Order {
    /// Flipped in values: with it the winner's is the larger one, both taken as signed.
    pub(crate) value: u64,
    /// Flipped in indices: with it they compare as signed numbers do.
    pub(crate) index: u64,
    /// Of floats: the magnitude above which there are no numbers.
    pub(crate) infinity: u64,
    /// Of floats: what stands for all that is not a number.
    pub(crate) nan: u64,
}

impl Order {
    /// Where there are no pairs.
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

/// The top bit of an unsigned number: flipped, it compares as a signed one does.
const fn unsigned_top(scalar: Scalar) -> u64 {
    if matches!(scalar, Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64) { 1 << 63 } else { 0 }
}

/// The fold of pairs: an [`Order`] in the lanes of the pair's numbers.
#[derive(Clone, Copy)]
pub(crate) struct Located<V: Bits, I: Bits, const FLOAT: bool> {
    value: V::Lane,
    index: I::Lane,
    infinity: V::Lane,
    nan: V::Lane,
}

impl<V: Bits, I: Bits, const FLOAT: bool> Located<V, I, FLOAT> {
    /// What decides between values: the larger one wins, and what is not a number is the largest.
    #[inline(always)]
    fn key(self, value: V::Lane) -> <V::Lane as Lane>::Signed {
        if !FLOAT {
            return (value ^ self.value).signed();
        }
        let key = (value.twos_complement() ^ self.value).signed();
        if value & V::Lane::MAGNITUDE > self.infinity { V::Lane::LAST } else { key }
    }

    /// The value of two that win together: floats differ in the sign of a zero at most, of which
    /// the larger stays, or under `minloc` the smaller.
    #[inline(always)]
    fn either(self, left: V::Lane, right: V::Lane) -> V::Lane {
        if FLOAT { (left ^ self.value) & (right ^ self.value) ^ self.value } else { left }
    }
}

impl<V: Bits, I: Bits, const FLOAT: bool> Op<Pair<V, I>> for Located<V, I, FLOAT> {
    #[inline(always)]
    fn new(order: &Order) -> Self {
        Located {
            value: V::Lane::top(order.value),
            index: I::Lane::top(order.index),
            infinity: V::Lane::top(order.infinity),
            nan: V::Lane::top(order.nan),
        }
    }

    #[inline(always)]
    fn apply(self, left: Pair<V, I>, right: Pair<V, I>) -> Pair<V, I> {
        let (left_value, right_value) = ({ left.value }.to_lane(), { right.value }.to_lane());
        let (left_index, right_index) = ({ left.index }.to_lane(), { right.index }.to_lane());
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
        let unordered = FLOAT && (left_key == V::Lane::LAST) | (right_key == V::Lane::LAST);
        let value = if unordered { self.nan } else { value };
        Pair { value: V::from_lane(value), index: I::from_lane(index) }
    }
}

/// A number of a pair as its bits.
pub(crate) trait Bits: Element<Wide = Self> + Into<u64> {
    /// What it is computed in: processors compare few short numbers at once hardly faster than long
    /// ones, but converting costs.
    type Lane: Lane;

    /// At the top of a lane, above zeros.
    fn to_lane(self) -> Self::Lane;

    /// From the top of a lane.
    fn from_lane(lane: Self::Lane) -> Self;

    /// The lowest bits of a number.
    fn lowest(bits: u64) -> Self;
}

/// An unsigned number that is computed with.
pub(crate) trait Lane: Copy + Ord + BitAnd<Output = Self> + BitXor<Output = Self> {
    /// The same bits as a signed number.
    type Signed: Copy + Ord;

    /// All bits but the top one.
    const MAGNITUDE: Self;

    /// The largest signed number.
    const LAST: Self::Signed;

    /// Taken as a signed number.
    fn signed(self) -> Self::Signed;

    /// Of a number as sign and magnitude.
    fn twos_complement(self) -> Self;

    /// The top bits of a number.
    fn top(bits: u64) -> Self;
}

macro_rules! bits {
    ($($type:ty => $lane:ty;)*) => { $(
        impl Bits for $type {
            type Lane = $lane;
            #[inline(always)]
            fn to_lane(self) -> $lane { <$lane>::from(self) << (<$lane>::BITS - <$type>::BITS) }
            #[inline(always)]
            fn from_lane(lane: $lane) -> $type { (lane >> (<$lane>::BITS - <$type>::BITS)) as $type }
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

macro_rules! lane {
    ($($lane:ty as $signed:ty;)*) => { $(
        impl Lane for $lane {
            type Signed = $signed;
            const MAGNITUDE: $lane = <$lane>::MAX >> 1;
            const LAST: $signed = <$signed>::MAX;
            #[inline(always)]
            fn signed(self) -> $signed { self.cast_signed() }
            #[inline(always)]
            fn twos_complement(self) -> $lane {
                let sign = (self.cast_signed() >> (<$lane>::BITS - 1)).cast_unsigned();
                (self ^ sign & Self::MAGNITUDE).wrapping_sub(sign)
            }
            #[inline(always)]
            fn top(bits: u64) -> $lane { (bits >> (64 - <$lane>::BITS)) as $lane }
        }
    )* };
}

lane! {
    u32 as i32;
    u64 as i64;
}
