//! Pairs of two integers of one size, as one number of twice the size.
//!
//! With value and index in each other's place, and bits flipped so that either compares as it
//! should, the pair that wins is the larger number: one comparison and one choice instead of three
//! and four, in lanes that hold nothing else. Floats cannot be had so, of which zeros of both signs
//! are equal and some are no numbers.
//!
//! ```text
//!   as it lies    index | value      the lower address on the right
//!   compared      value | index      signed; of equal values the smaller index is the larger number
//! ```

use crate::element::Element;
use crate::operator::Op;
use crate::pair::Order;
use crate::simd::plain::Plain;

/// A value and its index, each half of `W`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Joint<W>(W);

/// The fold of such pairs.
#[derive(Clone, Copy)]
pub(crate) struct Larger<W> {
    flip: W,
}

macro_rules! joint {
    ($($whole:ty as $signed:ty;)*) => { $(
        // SAFETY: a transparent integer: every bit pattern is a value, no padding.
        unsafe impl Element for Joint<$whole> {
            type Wide = Joint<$whole>;
            type Avx<O: Op<Joint<$whole>>> = Plain<Joint<$whole>, O>;

            #[inline(always)]
            fn widen(self) -> Joint<$whole> {
                self
            }

            #[inline(always)]
            fn narrow(wide: Joint<$whole>) -> Joint<$whole> {
                wide
            }
        }

        impl Larger<$whole> {
            #[inline(always)]
            fn key(self, pair: Joint<$whole>) -> $signed {
                (pair.0.rotate_left(<$whole>::BITS / 2) ^ self.flip).cast_signed()
            }
        }

        impl Op<Joint<$whole>> for Larger<$whole> {
            #[inline(always)]
            fn new(order: &Order) -> Self {
                let half = <$whole>::BITS / 2;
                let (value, index) = ((order.value >> (64 - half)) as $whole, (order.index >> (64 - half)) as $whole);
                // The index stands where there is no sign: its top bit is flipped for that, and all
                // its bits for the smaller one to win.
                let smaller = (1 << (half - 1)) - 1;
                Larger { flip: value << half | (index ^ smaller) }
            }

            #[inline(always)]
            fn apply(self, left: Joint<$whole>, right: Joint<$whole>) -> Joint<$whole> {
                if self.key(left) > self.key(right) { left } else { right }
            }
        }
    )* };
}

joint! {
    u16 as i16;
    u32 as i32;
    u64 as i64;
}
