//! Operators on two accumulators.

use crate::pair::Order;

/// A reduction operator on the accumulator type `W`.
///
/// Operators are pure functions of their operands' bits, so a result does not show how many of them
/// one instruction computes.
pub(crate) trait Op<W>: Copy + 'static {
    /// The operator of a cell; only the operators of pairs look at the order.
    fn new(order: &Order) -> Self;

    /// One step of a fold.
    fn apply(self, left: W, right: W) -> W;
}

/// Larger of two.
#[derive(Clone, Copy)]
pub(crate) struct Max;
/// Smaller of two.
#[derive(Clone, Copy)]
pub(crate) struct Min;
/// Addition.
#[derive(Clone, Copy)]
pub(crate) struct Sum;
/// Multiplication.
#[derive(Clone, Copy)]
pub(crate) struct Prod;
/// 1 where both operands are not 0, else 0.
#[derive(Clone, Copy)]
pub(crate) struct LogicalAnd;
/// 1 where an operand is not 0, else 0.
#[derive(Clone, Copy)]
pub(crate) struct LogicalOr;
/// 1 where one operand is 0 and the other is not, else 0.
#[derive(Clone, Copy)]
pub(crate) struct LogicalXor;
/// Bitwise and.
#[derive(Clone, Copy)]
pub(crate) struct BitAnd;
/// Bitwise or.
#[derive(Clone, Copy)]
pub(crate) struct BitOr;
/// Bitwise exclusive or.
#[derive(Clone, Copy)]
pub(crate) struct BitXor;

macro_rules! operators {
    ($type:ty: $($op:ident = |$left:ident, $right:ident| $value:expr;)*) => { $(
        impl Op<$type> for $op {
            #[inline(always)]
            fn new(_: &Order) -> $op { $op }
            #[inline(always)]
            fn apply(self, $left: $type, $right: $type) -> $type { $value }
        }
    )* };
}

macro_rules! integer {
    ($($type:ty)*) => { $(
        operators! { $type:
            Max = |left, right| if left > right { left } else { right };
            Min = |left, right| if left < right { left } else { right };
            Sum = |left, right| left.wrapping_add(right);
            Prod = |left, right| left.wrapping_mul(right);
            LogicalAnd = |left, right| <$type>::from((left != 0) & (right != 0));
            LogicalOr = |left, right| <$type>::from((left | right) != 0);
            LogicalXor = |left, right| <$type>::from((left != 0) ^ (right != 0));
            BitAnd = |left, right| left & right;
            BitOr = |left, right| left | right;
            BitXor = |left, right| left ^ right;
        }
    )* };
}

integer!(u8 i8 u16 i16 u32 i32 u64 i64);

// A comparison takes zeros of both signs for equal, and what a select then gives depends on the
// order of its operands. So the code selects in both orders. Of two zeros that gives one of each
// sign, from which `and` keeps +0 and `or` keeps -0; of any other two numbers it gives the same
// bits twice. Where one operand is not a number, all bits are set: that is a NaN, which every later
// step keeps and the end of the fold replaces.
macro_rules! float {
    ($($type:ty)*) => { $(
        operators! { $type:
            Max = |left, right| {
                let upper = if left > right { left } else { right };
                let mirror = if right > left { right } else { left };
                let unordered = if left.is_nan() | right.is_nan() { !0 } else { 0 };
                <$type>::from_bits(upper.to_bits() & mirror.to_bits() | unordered)
            };
            Min = |left, right| {
                let lower = if left < right { left } else { right };
                let mirror = if right < left { right } else { left };
                let unordered = if left.is_nan() | right.is_nan() { !0 } else { 0 };
                <$type>::from_bits(lower.to_bits() | mirror.to_bits() | unordered)
            };
            Sum = |left, right| left + right;
            Prod = |left, right| left * right;
        }
    )* };
}

float!(f32 f64);
