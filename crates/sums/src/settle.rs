//! The sums of all members' limbs as elements again.

use std::marker::PhantomData;

use trib_reduce::Environment;

use crate::float::{Float, for_float, nearest, nearest_of_long};
use crate::limbs::{Limb, for_limb};
use crate::processor::{Work, at_best};
use crate::shape::{Layout, Shape, Width};
use crate::tail::Told;
use crate::wide::Wide;
use crate::{BLOCK, Kind, native};

/// Writes the elements of the result, each rounded once.
///
/// # Panics
/// If one of the two has not the length that the layout says.
pub fn settle(layout: &Layout, limbs: &[u8], vector: &mut [u8]) {
    assert_eq!(vector.len(), layout.count * layout.dtype.size(), "the bytes of the vector");
    assert_eq!(limbs.len(), layout.bytes(), "the bytes of the limbs");
    let _environment = Environment::enter();
    let mut rest = limbs;
    for ((shape, elements), block) in layout.each().zip(vector.chunks_mut(BLOCK * layout.dtype.size())) {
        let (own, behind) = rest.split_at(shape.limbs as usize * elements * layout.width.bytes());
        rest = behind;
        for_float!(layout.dtype, F => for_limb!(layout.width, L => {
            at_best(Settling::<F, L> { layout, shape, limbs: own, block, of: PhantomData });
        }));
    }
}

/// A block whose limbs are to become elements.
pub(crate) struct Settling<'a, F, L> {
    pub(crate) layout: &'a Layout,
    pub(crate) shape: &'a Shape,
    pub(crate) limbs: &'a [u8],
    pub(crate) block: &'a mut [u8],
    pub(crate) of: PhantomData<(F, L)>,
}

impl<F: Float, L: Limb> Work for Settling<'_, F, L> {
    type Output = ();

    #[inline(always)]
    fn run(self, is_wide: bool) {
        let Settling { layout, shape, limbs, block, .. } = self;
        let elements = block.len() / F::SIZE;
        let row = elements * L::SIZE;
        let limb = |number: u32, at: usize| L::load(&limbs[number as usize * row + at * L::SIZE..][..L::SIZE]);
        let below = shape.below(layout.counter);
        let bits = shape.bits + below + layout.counter;
        let targets = block.chunks_exact_mut(F::SIZE).enumerate();
        let native = native::into_numbers::<F>(shape, bits).filter(|_| is_wide);
        match layout.kind {
            Kind::Fixed if let Some(factor) = native.filter(|_| shape.bits > 0) => {
                for ((_, target), sum) in targets.zip(limbs.chunks_exact(L::SIZE)) {
                    F::store(F::times(L::load(sum), factor), target);
                }
            }
            Kind::Fixed => targets.for_each(|(at, target)| {
                F::store(fixed::<F>(layout, shape, |number| limb(number, at)), target);
            }),
            Kind::Exact if bits <= SHORT_BITS => {
                let mut sums = [0i64; BLOCK];
                for (number, row) in limbs.chunks_exact(row.max(1)).enumerate() {
                    for (sum, own) in sums.iter_mut().zip(row.chunks_exact(L::SIZE)) {
                        *sum = sum.wrapping_add(L::load(own).wrapping_shl(number as u32 * layout.bits_of_limb));
                    }
                }
                let both = targets.zip(sums);
                match native {
                    Some(factor) => both.for_each(|((_, target), sum)| F::store(F::times(sum, factor), target)),
                    None => both.for_each(|((_, target), sum)| F::store(short::<F>(layout, shape, below, sum), target)),
                }
            }
            Kind::Exact if bits <= LONG_BITS => targets.for_each(|(at, target)| {
                F::store(long::<F>(layout, shape, below, |number| limb(number, at)), target);
            }),
            Kind::Exact => targets.for_each(|(at, target)| {
                F::store(wide::<F>(layout, shape, below, |number| limb(number, at)), target);
            }),
        }
    }
}

#[inline(always)]
fn fixed<F: Float>(layout: &Layout, shape: &Shape, limb: impl Fn(u32) -> i64) -> u64 {
    let numbers = u32::from(shape.bits > 0);
    let in_limb = layout.width.counters(layout.counter);
    let mask = (1 << layout.counter) - 1;
    let count = |which| (limb(numbers + which / in_limb) >> (which % in_limb * layout.counter)) as u64 & mask;
    match shape.tail.told::<F>(count) {
        Told::Bits(bits) => bits,
        Told::Number if numbers == 0 => 0,
        Told::Number => {
            let sum = limb(0);
            nearest::<F>(sum < 0, sum.unsigned_abs(), shape.unit)
        }
    }
}

/// An integer that fits into 64 bits.
#[inline(always)]
fn short<F: Float>(layout: &Layout, shape: &Shape, below: u32, sum: i64) -> u64 {
    let mask = (1 << layout.counter) - 1;
    match shape.tail.told::<F>(|which| (sum >> (which * layout.counter)) as u64 & mask) {
        Told::Bits(bits) => bits,
        Told::Number => {
            let value = sum >> below;
            nearest::<F>(value < 0, value.unsigned_abs(), shape.unit)
        }
    }
}

/// An integer that fits into 128 bits.
#[inline(always)]
fn long<F: Float>(layout: &Layout, shape: &Shape, below: u32, limb: impl Fn(u32) -> i64) -> u64 {
    let limbs = (0..shape.limbs).map(|number| i128::from(limb(number)) << (number * layout.bits_of_limb).min(127));
    let sum = limbs.fold(0i128, i128::wrapping_add);
    let mask = (1 << layout.counter) - 1;
    match shape.tail.told::<F>(|which| (sum >> (which * layout.counter)) as u64 & mask) {
        Told::Bits(bits) => bits,
        Told::Number => {
            let value = sum >> below;
            nearest_of_long::<F>(value < 0, value.unsigned_abs(), shape.unit)
        }
    }
}

fn wide<F: Float>(layout: &Layout, shape: &Shape, below: u32, limb: impl Fn(u32) -> i64) -> u64 {
    let mut sum = Wide::ZERO;
    for number in 0..shape.limbs {
        sum.add(limb(number), number * layout.bits_of_limb);
    }
    let low = sum.low(below);
    let mask = (1 << layout.counter) - 1;
    match shape.tail.told::<F>(|which| (low >> (which * layout.counter)) as u64 & mask) {
        Told::Bits(bits) => bits,
        Told::Number => {
            let (negative, magnitude, unit) = sum.magnitude(below);
            nearest_of_long::<F>(negative, magnitude, shape.unit + unit)
        }
    }
}

/// An integer of so many bits, with its sign and the room for the members, is computed in 64.
const SHORT_BITS: u32 = 63;
/// One of so many is computed in 128.
const LONG_BITS: u32 = 126;
