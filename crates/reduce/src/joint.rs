//! Pairs of two integers of one size, as one number of twice the size.
//!
//! The value and the index of such a pair are swapped, and bits are flipped so that each of them
//! compares as it should. Then the pair that wins is the larger number: one comparison and one
//! choice take the place of three and four, in vector lanes that hold nothing else. This does not
//! work for floats: zeros of both signs are equal there, and some bit patterns are not numbers.
//!
//! ```text
//!   as it lies    index | value      the lower address on the right
//!   compared      value | index      signed; of equal values the smaller index is the larger one
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
                // In the joint number the index has no sign: its top bit is flipped for that, and
                // all its bits so that the smaller index wins.
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
