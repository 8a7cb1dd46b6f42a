//! Where the processor's own floating-point arithmetic gives what `float` gives, eight elements at
//! a time: for ordinary numbers, in the standard environment.
//!
//! A number times a power of two is exact, unless it becomes too large or too small. So the number
//! is made an integer by one product and one rounding to nearest, and the integer a number by one
//! rounding, that of its conversion, and one product.

use crate::float::Float;
use crate::shape::Shape;
use crate::tail::Tail;

/// What makes the elements of a block integers of its unit, if this way is open.
#[inline(always)]
pub(crate) fn into_integers<F: Float>(shape: &Shape) -> Option<f64> {
    // A number that becomes too small for this on its way is far below half of the unit.
    power_of_two(-shape.unit).filter(|_| shape.tail == Tail::Absent)
}

/// What makes integers of the block's unit numbers, which have at most so many bits with their
/// sign.
#[inline(always)]
pub(crate) fn into_numbers<F: Float>(shape: &Shape, bits: u32) -> Option<f64> {
    let is_open = shape.tail == Tail::Absent && bits <= F::TIMES_BITS;
    // Below it, results may have fewer bits than they have been rounded to, and above it the type
    // of the product may have no such factor.
    let is_plain = (F::TIMES_FROM..F::TOP).contains(&shape.unit);
    power_of_two(shape.unit).filter(|_| is_open && is_plain)
}

/// An element as a multiple of its block's unit, to nearest, ties to even.
#[inline(always)]
pub(crate) fn rounded<F: Float>(bits: u64, factor: f64) -> i64 {
    integer_of((F::value(bits) * factor).round_ties_even())
}

/// The same where the survey says that it is one.
#[inline(always)]
pub(crate) fn exact<F: Float>(bits: u64, factor: f64) -> i64 {
    integer_of(F::value(bits) * factor)
}

/// The integer that a number is. Those of a block are smaller than the bounds; if a survey says
/// what is not so, they become the bounds, and what is no number becomes one, too.
#[inline(always)]
#[expect(clippy::manual_clamp, reason = "clamp leaves what is no number as it is")]
fn integer_of(number: f64) -> i64 {
    let bounded = number.max(-BOUND).min(BOUND);
    // SAFETY: it is a number between two that the type has.
    unsafe { bounded.to_int_unchecked() }
}

fn power_of_two(exponent: i32) -> Option<f64> {
    (-1022..=1023).contains(&exponent).then(|| f64::from_bits(((exponent + 1023) as u64) << 52))
}

/// Two to the power of 62.
const BOUND: f64 = (1u64 << 62) as f64;

#[cfg(test)]
mod tests {
    use std::marker::PhantomData;

    use trib_reduce::Environment;
    use trib_wire::DataType;

    use super::*;
    use crate::float::{Brain, Double, Half, Single};
    use crate::limbs::{Laying, Limb as _};
    use crate::processor::Work as _;
    use crate::settle::Settling;
    use crate::{BLOCK, Kind, Layout, Width, survey};

    /// Draws of a generator whose numbers repeat from run to run.
    struct Draws(u64);

    impl Draws {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            self.0 ^ self.0 >> 29
        }

        fn below(&mut self, bound: u64) -> u64 {
            (self.next() >> 11) % bound
        }

        /// A block whose exponents lie around one; in a few blocks some elements are subnormal or
        /// zero.
        fn block<F: Float>(&mut self) -> Vec<u8> {
            let (middle, width, has_tiny) = (self.below(F::FULL), 1 + self.below(7), self.below(8) == 0);
            let mut block = vec![0; BLOCK * F::SIZE];
            for bytes in block.chunks_exact_mut(F::SIZE) {
                let exponent = match self.below(40) {
                    0 if has_tiny => 0,
                    _ => (middle + self.below(width)).min(F::FULL - 1),
                };
                let fraction = self.next() >> (64 - F::FRACTION) & (self.next() | u64::MAX << self.below(60));
                let bits = exponent << F::FRACTION | fraction & ((1 << F::FRACTION) - 1);
                F::store(bits | if self.below(2) == 0 && bits > 0 { F::SIGN } else { 0 }, bytes);
            }
            block
        }
    }

    /// Lays blocks out and settles sums both ways, and counts the blocks for which both were open.
    fn both_ways<F: Float>(dtype: DataType, kind: Kind, seed: u64) -> usize {
        let (mut draws, mut native) = (Draws(seed), 0);
        for round in 0..2_000 {
            let (block, other) = (draws.block::<F>(), draws.block::<F>());
            let mut surveys = vec![0; kind.survey_bytes(BLOCK)];
            // One round in ten the survey is another block's, as a hostile one may be.
            survey(kind, dtype, if round % 10 == 0 { &other } else { &block }, &mut surveys);
            let layout = Layout::new(kind, dtype, 5, BLOCK, &surveys);
            let shape = &layout.blocks[0];
            let bits = shape.bits + layout.counter + 1;
            let is_open = into_integers::<F>(shape).is_some() && into_numbers::<F>(shape, bits).is_some();
            let is_taken = is_open && (kind == Kind::Fixed || shape.bits <= 60) && shape.bits > 0;
            native += usize::from(is_taken && round % 10 != 0);
            let mut limbs = [vec![0; layout.bytes()], vec![0; layout.bytes()]];
            let mut results = [vec![0; block.len()], vec![0; block.len()]];
            for (is_wide, (limbs, result)) in [false, true].into_iter().zip(limbs.iter_mut().zip(&mut results)) {
                crate::limbs::for_limb!(layout.width(), L => {
                    Laying::<F, L> { layout: &layout, shape, block: &block, limbs, of: PhantomData }.run(is_wide);
                    if round % 3 == 0 {
                        limbs.iter_mut().zip(Draws(round).block::<F>()).for_each(|(byte, any)| *byte ^= any);
                    }
                    Settling::<F, L> { layout: &layout, shape, limbs, block: result, of: PhantomData }.run(is_wide);
                });
            }
            if round % 10 != 0 {
                assert!(limbs[0] == limbs[1] && results[0] == results[1], "seed {seed}, round {round}: {shape:?}");
            }
        }
        native
    }

    #[test]
    fn the_processor_s_arithmetic_gives_the_same_bits() {
        for seed in 0..10 {
            for kind in [Kind::Fixed, Kind::Exact] {
                let counts = [
                    both_ways::<Half>(DataType::F16, kind, seed),
                    both_ways::<Brain>(DataType::BF16, kind, seed),
                    both_ways::<Single>(DataType::F32, kind, seed),
                    both_ways::<Double>(DataType::F64, kind, seed),
                ];
                assert!(counts.iter().all(|count| *count > 500), "{counts:?} blocks went that way, {kind:?}");
            }
        }
    }

    /// What a caller may have set: to flush subnormals, to take them for zeros, to round up.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn what_the_caller_has_set_changes_nothing() {
        let sums = || {
            let block = Draws(7).block::<Single>();
            let mut surveys = vec![0; Kind::Fixed.survey_bytes(BLOCK)];
            survey(Kind::Fixed, DataType::F32, &block, &mut surveys);
            let layout = Layout::new(Kind::Fixed, DataType::F32, 5, BLOCK, &surveys);
            let (mut limbs, mut result) = (vec![0; layout.bytes()], vec![0; block.len()]);
            crate::spread(&layout, &block, &mut limbs);
            // The sum of what three such members give has to be rounded.
            limbs.chunks_exact_mut(8).for_each(|limb| {
                let sum = i64::load(limb) * 3 + 1;
                i64::store(sum, limb);
            });
            crate::settle(&layout, &limbs, &mut result);
            result
        };
        let control = |value: u32| {
            // SAFETY: it loads 4 bytes, and reserved bits are zeros.
            unsafe { core::arch::asm!("ldmxcsr [{}]", in(reg) &value, options(nostack, preserves_flags)) };
        };
        let expected = sums();
        control(0x1f80 | 1 << 15 | 1 << 6 | 2 << 13);
        let found = sums();
        control(0x1f80);
        assert!(found == expected);
    }

    #[test]
    fn what_a_survey_does_not_allow_is_no_panic() {
        let exponent = |unit| Shape { unit, bits: 60, tail: Tail::Absent, limbs: 1 };
        let factor = into_integers::<Single>(&exponent(-149)).unwrap();
        let value = |number: f32| rounded::<Single>(number.to_bits().into(), factor);
        assert_eq!([f32::MAX, f32::MIN, f32::NAN].map(value), [1 << 62, -(1 << 62), -(1 << 62)]);
        assert!(into_integers::<Double>(&exponent(-1074)).is_none(), "there is no such factor");
        assert!(into_numbers::<Single>(&exponent(-127), 60).is_none(), "a result may be subnormal");
        let _environment = Environment::enter();
        assert_eq!(Single::times(3, power_of_two(-126).unwrap()), 2 << 23 | 1 << 22);
    }
}
