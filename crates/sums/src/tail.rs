//! What is not an ordinary number: infinities, what is no number, and minus zero.
//!
//! Blocks in which some member has such elements carry counters beside each element, as many bits
//! wide as it takes to count the members. A sum is -0 only if every member gave -0, and infinite or
//! no number as IEEE 754 says, whatever the order.

use crate::float::Float;

/// The counters of the elements of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tail {
    /// None: all elements are numbers, and none is -0.
    Absent,
    /// One, of the members whose element is not -0.
    Zeros,
    /// That one, and those of the members that gave no number, infinity and minus infinity.
    All,
}

/// What the counters say of a sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    /// It is the sum of the limbs.
    Number,
    /// It has these bits.
    Bits(u64),
}

impl Tail {
    pub(crate) fn counters(self) -> u32 {
        match self {
            Tail::Absent => 0,
            Tail::Zeros => 1,
            Tail::All => 4,
        }
    }

    /// What an element adds to a counter.
    #[inline(always)]
    pub(crate) fn given<F: Float>(bits: u64, counter: u32) -> bool {
        let magnitude = bits & !F::SIGN;
        match counter {
            0 => bits != F::SIGN,
            1 => magnitude > F::INFINITY,
            2 => bits == F::INFINITY,
            _ => bits == F::INFINITY | F::SIGN,
        }
    }

    /// What the sums of the counters say.
    #[inline(always)]
    pub(crate) fn told<F: Float>(self, count: impl Fn(u32) -> u64) -> Told {
        if self == Tail::Absent {
            return Told::Number;
        }
        if self == Tail::All {
            let [no_number, infinite, minus_infinite] = [1, 2, 3].map(|counter| count(counter) > 0);
            if no_number || (infinite && minus_infinite) {
                return Told::Bits(F::NAN);
            }
            if infinite || minus_infinite {
                return Told::Bits(F::INFINITY | if minus_infinite { F::SIGN } else { 0 });
            }
        }
        if count(0) == 0 { Told::Bits(F::SIGN) } else { Told::Number }
    }
}
