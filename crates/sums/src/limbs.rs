//! A member's elements as limbs.

use std::marker::PhantomData;

use trib_reduce::Environment;

use crate::float::{Float, for_float, parts, rounded};
use crate::processor::{Work, at_best};
use crate::shape::{Layout, Shape, Width};
use crate::tail::Tail;
use crate::{BLOCK, Kind, native};

/// An integer as it travels.
pub(crate) trait Limb: Copy {
    const SIZE: usize;
    /// The limb at the start of these bytes.
    fn load(bytes: &[u8]) -> i64;
    /// Puts a limb there. What is too large for it wraps.
    fn store(value: i64, bytes: &mut [u8]);
}

macro_rules! limbs {
    ($($limb:ty)*) => { $(
        impl Limb for $limb {
            const SIZE: usize = size_of::<$limb>();

            #[inline(always)]
            fn load(bytes: &[u8]) -> i64 {
                let mut own = [0; size_of::<$limb>()];
                own.copy_from_slice(bytes);
                i64::from(<$limb>::from_le_bytes(own))
            }

            #[inline(always)]
            fn store(value: i64, bytes: &mut [u8]) {
                bytes.copy_from_slice(&(value as $limb).to_le_bytes());
            }
        }
    )* };
}

limbs!(i16 i32 i64);

/// Calls something generic over the type of a layout's limbs.
macro_rules! for_limb {
    ($width:expr, $limb:ident => $body:expr) => {
        match $width {
            Width::Two => {
                type $limb = i16;
                $body
            }
            Width::Four => {
                type $limb = i32;
                $body
            }
            Width::Eight => {
                type $limb = i64;
                $body
            }
        }
    };
}
pub(crate) use for_limb;

/// Lays the elements of `vector` out as limbs.
///
/// # Panics
/// If one of the two has not the length that the layout says.
pub fn spread(layout: &Layout, vector: &[u8], limbs: &mut [u8]) {
    assert_eq!(vector.len(), layout.count * layout.dtype.size(), "the bytes of the vector");
    assert_eq!(limbs.len(), layout.bytes(), "the bytes of the limbs");
    let _environment = Environment::enter();
    let mut rest = limbs;
    for ((shape, elements), block) in layout.each().zip(vector.chunks(BLOCK * layout.dtype.size())) {
        let (own, behind) = rest.split_at_mut(shape.limbs as usize * elements * layout.width.bytes());
        rest = behind;
        for_float!(layout.dtype, F => for_limb!(layout.width, L => {
            at_best(Laying::<F, L> { layout, shape, block, limbs: own, of: PhantomData });
        }));
    }
}

/// A block that is to be laid out.
pub(crate) struct Laying<'a, F, L> {
    pub(crate) layout: &'a Layout,
    pub(crate) shape: &'a Shape,
    pub(crate) block: &'a [u8],
    pub(crate) limbs: &'a mut [u8],
    pub(crate) of: PhantomData<(F, L)>,
}

impl<F: Float, L: Limb> Work for Laying<'_, F, L> {
    type Output = ();

    #[inline(always)]
    fn run(self, is_wide: bool) {
        let Laying { layout, shape, block, limbs, .. } = self;
        let elements = block.len() / F::SIZE;
        let native = native::into_integers::<F>(shape).filter(|_| is_wide);
        match layout.kind {
            Kind::Fixed if let Some(factor) = native => {
                for (target, bytes) in limbs.chunks_exact_mut(L::SIZE).zip(block.chunks_exact(F::SIZE)) {
                    L::store(native::rounded::<F>(F::load(bytes), factor), target);
                }
            }
            Kind::Fixed => {
                let (numbers, counters) = limbs.split_at_mut(if shape.bits > 0 { elements * L::SIZE } else { 0 });
                for (target, bytes) in numbers.chunks_exact_mut(L::SIZE).zip(block.chunks_exact(F::SIZE)) {
                    L::store(as_fixed::<F>(F::load(bytes), shape.unit), target);
                }
                count_apart::<F, L>(layout, shape, block, counters);
            }
            Kind::Exact if shape.bits + shape.below(layout.counter) <= SHORT_BITS => {
                let below = shape.below(layout.counter);
                let mut integers = [0i64; BLOCK];
                let both = integers.iter_mut().zip(block.chunks_exact(F::SIZE));
                match native {
                    Some(factor) => {
                        both.for_each(|(integer, bytes)| *integer = native::exact::<F>(F::load(bytes), factor))
                    }
                    None => both.for_each(|(integer, bytes)| {
                        *integer = as_short::<F>(F::load(bytes), shape, layout.counter, below)
                    }),
                }
                for (limb, row) in limbs.chunks_exact_mut((elements * L::SIZE).max(1)).enumerate() {
                    // The highest limb has the sign; those below it are not negative.
                    let (down, is_top) = (limb as u32 * layout.bits_of_limb, limb as u32 + 1 == shape.limbs);
                    let mask = if is_top { -1 } else { (1 << layout.bits_of_limb) - 1 };
                    for (target, integer) in row.chunks_exact_mut(L::SIZE).zip(integers) {
                        L::store(integer >> down & mask, target);
                    }
                }
            }
            Kind::Exact => {
                let below = shape.below(layout.counter);
                limbs.fill(0);
                for (at, bytes) in block.chunks_exact(F::SIZE).enumerate() {
                    let mut add = |limb: u32, value: i64| {
                        let start = (limb as usize * elements + at) * L::SIZE;
                        if let Some(target) = limbs.get_mut(start..start + L::SIZE) {
                            L::store(L::load(target).wrapping_add(value), target);
                        }
                    };
                    cut_up::<F>(F::load(bytes), layout, shape, below, &mut add);
                }
            }
        }
    }
}

/// A number as a multiple of the block's unit, rounded to nearest, ties to even.
#[inline(always)]
fn as_fixed<F: Float>(bits: u64, unit: i32) -> i64 {
    let own = parts::<F>(bits);
    let is_number = bits & !F::SIGN < F::INFINITY;
    let magnitude = match unit - own.unit {
        finer @ -63..=0 => own.magnitude << -finer,
        coarser @ 1..=63 => rounded(own.magnitude, coarser as u32),
        _ => 0,
    };
    let signed = if own.negative { (magnitude as i64).wrapping_neg() } else { magnitude as i64 };
    if is_number { signed } else { 0 }
}

/// An element with its counters, as an integer that is short.
#[inline(always)]
fn as_short<F: Float>(bits: u64, shape: &Shape, counter: u32, below: u32) -> i64 {
    let own = parts::<F>(bits);
    let is_number = bits & !F::SIGN < F::INFINITY;
    // The survey says that the number is a multiple of the unit; bits below it are zeros.
    let magnitude = match own.unit - shape.unit {
        up @ 0..=63 => own.magnitude << up,
        down @ -63..=-1 => own.magnitude >> -down,
        _ => 0,
    };
    let magnitude = if is_number { magnitude << below } else { 0 };
    let signed = if own.negative { (magnitude as i64).wrapping_neg() } else { magnitude as i64 };
    signed.wrapping_add(counters::<F>(bits, shape.tail, counter) as i64)
}

/// The limbs of an element that are not zero.
#[inline(always)]
fn cut_up<F: Float>(bits: u64, layout: &Layout, shape: &Shape, below: u32, add: &mut impl FnMut(u32, i64)) {
    let mask = (1u128 << layout.bits_of_limb) - 1;
    let mut cut = |integer: u128, offset: u32, negative: bool| {
        let (mut limb, mut rest) = (offset / layout.bits_of_limb, integer << (offset % layout.bits_of_limb));
        while rest != 0 {
            let value = (rest & mask) as i64;
            add(limb, if negative { -value } else { value });
            rest >>= layout.bits_of_limb;
            limb += 1;
        }
    };
    let own = parts::<F>(bits);
    if bits & !F::SIGN < F::INFINITY && own.magnitude != 0 {
        // The survey says that the number is a multiple of the unit; bits below it are zeros.
        let (magnitude, up) = match own.unit - shape.unit {
            up @ 0.. => (own.magnitude, up as u32),
            down => (own.magnitude.checked_shr(down.unsigned_abs()).unwrap_or(0), 0),
        };
        cut(magnitude.into(), up + below, own.negative);
    }
    cut(counters::<F>(bits, shape.tail, layout.counter), 0, false);
}

/// The counters of an element, as the lowest bits of its integer.
#[inline(always)]
fn counters<F: Float>(bits: u64, tail: Tail, counter: u32) -> u128 {
    (0..tail.counters()).map(|which| u128::from(Tail::given::<F>(bits, which)) << (which * counter)).sum()
}

/// Limbs that hold nothing but counters, as a fixed sum has them.
#[inline(always)]
fn count_apart<F: Float, L: Limb>(layout: &Layout, shape: &Shape, block: &[u8], limbs: &mut [u8]) {
    let in_limb = layout.width.counters(layout.counter);
    let elements = block.len() / F::SIZE;
    for (limb, row) in limbs.chunks_exact_mut((elements * L::SIZE).max(1)).enumerate() {
        let first = limb as u32 * in_limb;
        let last = (first + in_limb).min(shape.tail.counters());
        for (target, bytes) in row.chunks_exact_mut(L::SIZE).zip(block.chunks_exact(F::SIZE)) {
            let bits = F::load(bytes);
            let given = |which| i64::from(Tail::given::<F>(bits, which)) << ((which - first) * layout.counter);
            L::store((first..last).map(given).sum(), target);
        }
    }
}

/// An integer of so many bits is computed in 64, with its sign.
const SHORT_BITS: u32 = 62;
