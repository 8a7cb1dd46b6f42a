//! Types of elements: how each lies in memory, and the type it is computed in.

use crate::operator::Op;
use crate::simd::Kernel;
use crate::simd::plain::Plain;

/// One element as it lies in a vector.
///
/// # Safety
///
/// Every bit pattern of `size_of::<Self>()` bytes must be a valid value, and there is no padding.
pub(crate) unsafe trait Element: Copy + 'static {
    /// The type in which a fold accumulates.
    type Wide: Copy + 'static;

    /// The kernel of this element for processors with AVX2 and F16C or more.
    type Avx<O: Op<Self::Wide>>: Kernel;

    /// The exact value in the accumulator's type.
    fn widen(self) -> Self::Wide;

    /// The end of a fold: rounds to nearest even, and gives every NaN its one pattern.
    fn narrow(wide: Self::Wide) -> Self;
}

macro_rules! integer {
    ($($type:ty)*) => { $(
        // SAFETY: every bit pattern of an integer is a value, integers have no padding.
        unsafe impl Element for $type {
            type Wide = $type;
            type Avx<O: Op<$type>> = Plain<$type, O>;
            #[inline(always)]
            fn widen(self) -> $type { self }
            #[inline(always)]
            fn narrow(wide: $type) -> $type { wide }
        }
    )* };
}

integer!(u8 i8 u16 i16 u32 i32 u64 i64);

macro_rules! float {
    ($type:ty, $nan:expr) => {
        // SAFETY: every bit pattern is a float, floats have no padding.
        unsafe impl Element for $type {
            type Wide = $type;
            type Avx<O: Op<$type>> = Plain<$type, O>;
            #[inline(always)]
            fn widen(self) -> $type {
                self
            }
            #[inline(always)]
            fn narrow(wide: $type) -> $type {
                if wide.is_nan() { $nan } else { wide }
            }
        }
    };
}

float!(f32, f32::from_bits(0x7fc0_0000));
float!(f64, f64::from_bits(0x7ff8_0000_0000_0000));

/// IEEE 754 binary16.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct F16(pub(crate) u16);

// SAFETY: a transparent u16: every bit pattern is a value, no padding.
unsafe impl Element for F16 {
    type Wide = f32;
    #[cfg(target_arch = "x86_64")]
    type Avx<O: Op<f32>> = crate::simd::f16c::F16c<O>;
    #[cfg(not(target_arch = "x86_64"))]
    type Avx<O: Op<f32>> = Plain<F16, O>;

    // This has no branches, so that the compiler vectorises it. Exponent and fraction move to where
    // a binary32 has them; one exact multiplication then corrects the bias and normalises
    // denormals.
    #[inline(always)]
    fn widen(self) -> f32 {
        const REBIAS: f32 = f32::from_bits((127 + 127 - 15) << 23);
        let bits = u32::from(self.0);
        let magnitude = f32::from_bits((bits & 0x7fff) << 13) * REBIAS;
        // From 2^16 up, the half was an infinity or a NaN; the binary32 keeps its fraction.
        let special = if magnitude >= 65536.0 { 0xff << 23 } else { 0 };
        f32::from_bits(magnitude.to_bits() | special | ((bits & 0x8000) << 16))
    }

    #[inline(always)]
    fn narrow(wide: f32) -> F16 {
        const INFINITE: u32 = (127 + 16) << 23;
        const NORMAL: u32 = (127 - 14) << 23;
        // Adding this number leaves the ten bits of a denormal half, rounded, at the low end.
        const ALIGN: f32 = f32::from_bits((127 - 15 + 23 - 10 + 1) << 23);
        let bits = wide.to_bits();
        let magnitude = bits & 0x7fff_ffff;
        let denormal = (f32::from_bits(magnitude) + ALIGN).to_bits().wrapping_sub(ALIGN.to_bits());
        let odd = (magnitude >> 13) & 1;
        let normal = magnitude.wrapping_sub((127 - 15) << 23).wrapping_add(0xfff + odd) >> 13;
        let finite = if magnitude < NORMAL { denormal } else { normal };
        let half = if magnitude < INFINITE { finite } else { 0x7c00 };
        let signed = half | (bits >> 16) & 0x8000;
        F16(if wide.is_nan() { 0x7e00 } else { signed as u16 })
    }
}

/// The upper half of a binary32.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct BF16(pub(crate) u16);

// SAFETY: a transparent u16: every bit pattern is a value, no padding.
unsafe impl Element for BF16 {
    type Wide = f32;
    type Avx<O: Op<f32>> = Plain<BF16, O>;

    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }

    // Adding half a unit of the lowest kept bit, less one where that bit is even, carries exactly
    // as rounding to nearest even should. From the largest numbers it carries into infinity.
    #[inline(always)]
    fn narrow(wide: f32) -> BF16 {
        let bits = wide.to_bits();
        let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
        BF16(if wide.is_nan() { 0x7fc0 } else { rounded as u16 })
    }
}

/// An element at any address.
#[derive(Clone, Copy)]
#[repr(C, packed)]
pub(crate) struct Unaligned<E>(pub(crate) E);

/// The whole elements in `bytes`.
#[inline(always)]
pub(crate) fn elements<E: Element>(bytes: &[u8]) -> &[Unaligned<E>] {
    let count = bytes.len() / size_of::<E>();
    // SAFETY: `Unaligned<E>` is packed, so its alignment is 1 and its size that of E; `count` of
    // them end within `bytes`; any bytes are valid elements (contract of Element).
    unsafe { core::slice::from_raw_parts(bytes.as_ptr().cast(), count) }
}

/// The whole elements in `bytes`, to be written.
#[inline(always)]
pub(crate) fn elements_mut<E: Element>(bytes: &mut [u8]) -> &mut [Unaligned<E>] {
    let count = bytes.len() / size_of::<E>();
    // SAFETY: as in `elements`, and the exclusive borrow of `bytes` passes to the result; elements
    // have no padding, so writing them leaves initialised bytes.
    unsafe { core::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), count) }
}
