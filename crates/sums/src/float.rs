//! The parts of a floating-point number, and the one rounding of an integer to such a number.
//!
//! Parts and roundings are arithmetic on integers, which nothing changes that the calling thread
//! has set. `value` and `times` are that of the processor, in the standard environment: see
//! `native`.

/// A floating-point type, whose numbers are handled as their bits.
pub(crate) trait Float: Copy {
    /// Bytes of a number.
    const SIZE: usize;
    /// The bits of the fraction that are stored; one more is understood.
    const FRACTION: u32;
    /// The bits of the exponent.
    const EXPONENT: u32;

    /// The bits that all of the exponent has set.
    const FULL: u64 = (1 << Self::EXPONENT) - 1;
    /// The exponent of the finest bit that a number can have.
    const FINEST: i32 = 2 - (1 << (Self::EXPONENT - 1)) - Self::FRACTION as i32;
    /// Every finite number is below two to this power.
    const TOP: i32 = 1 << (Self::EXPONENT - 1);
    /// Infinity.
    const INFINITY: u64 = Self::FULL << Self::FRACTION;
    /// The one pattern of what is not a number, as the kernels of plain sums have it.
    const NAN: u64 = Self::INFINITY | 1 << (Self::FRACTION - 1);
    /// The sign.
    const SIGN: u64 = 1 << (Self::FRACTION + Self::EXPONENT);

    /// The bits of the number at the start of these bytes.
    fn load(bytes: &[u8]) -> u64;
    /// Puts a number there.
    fn store(bits: u64, bytes: &mut [u8]);
    /// The finite number with these bits, computed in the standard environment.
    fn value(bits: u64) -> f64;
    /// The finest unit of integers that `times` takes.
    const TIMES_FROM: i32;
    /// The most bits of integers that `times` takes, with their sign.
    const TIMES_BITS: u32;
    /// The bits of the number next to an integer times `factor`, a power of two, ties to even,
    /// computed in the standard environment.
    fn times(integer: i64, factor: f64) -> u64;
}

macro_rules! float {
    ($($(#[$doc:meta])* $name:ident: $bits:ty, $fraction:literal, $exponent:literal { $($arithmetic:tt)* })*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name;

        impl Float for $name {
            const SIZE: usize = size_of::<$bits>();
            const FRACTION: u32 = $fraction;
            const EXPONENT: u32 = $exponent;

            #[inline(always)]
            fn load(bytes: &[u8]) -> u64 {
                let mut own = [0; size_of::<$bits>()];
                own.copy_from_slice(bytes);
                u64::from(<$bits>::from_le_bytes(own))
            }

            #[inline(always)]
            fn store(bits: u64, bytes: &mut [u8]) {
                bytes.copy_from_slice(&(bits as $bits).to_le_bytes());
            }

            $($arithmetic)*
        }
    )* };
}

/// The arithmetic of a type that processors have: an integer is rounded when it is converted, and
/// keeps all its bits in the product unless that is subnormal.
macro_rules! native {
    ($native:ty, $bits:ty) => {
        const TIMES_FROM: i32 = Self::FINEST + Self::FRACTION as i32;
        const TIMES_BITS: u32 = i64::BITS;

        #[inline(always)]
        fn value(bits: u64) -> f64 {
            f64::from(<$native>::from_bits(bits as $bits))
        }

        #[inline(always)]
        fn times(integer: i64, factor: f64) -> u64 {
            u64::from((integer as $native * factor as $native).to_bits())
        }
    };
}

/// That of a type of 16 bits: integers that a binary64 holds are rounded from that once.
macro_rules! half {
    ($value:expr) => {
        const TIMES_FROM: i32 = Self::FINEST;
        const TIMES_BITS: u32 = f64::MANTISSA_DIGITS;

        #[inline(always)]
        fn value(bits: u64) -> f64 {
            let value: fn(u64) -> f32 = $value;
            let signed = value(bits & !Self::SIGN).to_bits() | ((bits & Self::SIGN) << 16) as u32;
            f64::from(f32::from_bits(signed))
        }

        #[inline(always)]
        fn times(integer: i64, factor: f64) -> u64 {
            from_double::<Self>(integer as f64 * factor)
        }
    };
}

float! {
    /// IEEE 754 binary16. Its exponent in that of a binary32 is 112 too small.
    Half: u16, 10, 5 { half!(|magnitude| f32::from_bits((magnitude as u32) << 13) * 2f32.powi(112)); }
    /// The upper half of a binary32.
    Brain: u16, 7, 8 { half!(|magnitude| f32::from_bits((magnitude as u32) << 16)); }
    /// IEEE 754 binary32.
    Single: u32, 23, 8 { native!(f32, u32); }
    /// IEEE 754 binary64.
    Double: u64, 52, 11 { native!(f64, u64); }
}

/// The bits of the number next to this one, ties to even; a subnormal one has to be exact.
#[inline(always)]
fn from_double<F: Float>(number: f64) -> u64 {
    let (magnitude, lost) = (number.abs().to_bits(), Double::FRACTION - F::FRACTION);
    // What is lost is rounded by a sum whose carry goes into the exponent.
    let rounded = (magnitude + (1 << (lost - 1)) - 1 + (magnitude >> lost & 1)) >> lost;
    let between = ((Double::FULL >> 1) - (F::FULL >> 1)) << F::FRACTION;
    let smallest = 1 << F::FRACTION;
    let normal = rounded.wrapping_sub(between);
    let bits = if rounded < between + smallest {
        // As many of the finest units.
        (number.abs()
            * f64::from_bits(((Double::FULL >> 1) as i64 - i64::from(F::FINEST)) as u64 * (1 << Double::FRACTION)))
            as u64
    } else {
        normal.min(F::INFINITY)
    };
    bits | if number < 0.0 { F::SIGN } else { 0 }
}

/// Calls something generic over the type of a vector's elements. [`crate::Kind::check`] has refused
/// all other types.
macro_rules! for_float {
    ($dtype:expr, $float:ident => $body:expr) => {
        match $dtype.value() {
            trib_wire::Scalar::F16 => {
                type $float = $crate::float::Half;
                $body
            }
            trib_wire::Scalar::BF16 => {
                type $float = $crate::float::Brain;
                $body
            }
            trib_wire::Scalar::F32 => {
                type $float = $crate::float::Single;
                $body
            }
            _ => {
                type $float = $crate::float::Double;
                $body
            }
        }
    };
}
pub(crate) use for_float;

/// A finite number: `magnitude` times two to the power of `unit`, or the negative of that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Parts {
    pub(crate) negative: bool,
    pub(crate) magnitude: u64,
    pub(crate) unit: i32,
}

/// The parts of a number; those of one that is not finite mean nothing.
#[inline(always)]
pub(crate) fn parts<F: Float>(bits: u64) -> Parts {
    let exponent = bits >> F::FRACTION & F::FULL;
    let fraction = bits & ((1 << F::FRACTION) - 1);
    let is_normal = u64::from(exponent > 0);
    Parts {
        negative: bits & F::SIGN != 0,
        magnitude: fraction | is_normal << F::FRACTION,
        unit: F::FINEST + (exponent - is_normal) as i32,
    }
}

/// The bits of the number next to `magnitude` times two to the power of `unit`, ties to even.
#[inline(always)]
pub(crate) fn nearest<F: Float>(negative: bool, magnitude: u64, unit: i32) -> u64 {
    let len = (u64::BITS - magnitude.leading_zeros()) as i32;
    let target = unit_of_result::<F>(len, unit);
    let kept = match target - unit {
        finer @ ..=0 => magnitude << (-finer & 63),
        coarser if coarser > len => 0,
        64.. => u64::from(magnitude > 1 << 63),
        coarser => rounded(magnitude, coarser as u32),
    };
    if magnitude == 0 { 0 } else { number::<F>(negative, kept, target) }
}

/// The same of a longer integer.
#[inline(always)]
pub(crate) fn nearest_of_long<F: Float>(negative: bool, magnitude: u128, unit: i32) -> u64 {
    if let Ok(short) = u64::try_from(magnitude) {
        return nearest::<F>(negative, short, unit);
    }
    // A fraction has fewer bits than what is kept, so that the lowest of them can say for all that
    // is lost whether there was anything.
    let lost = u64::BITS - magnitude.leading_zeros();
    let sticky = magnitude & ((1 << lost) - 1) != 0;
    nearest::<F>(negative, (magnitude >> lost) as u64 | u64::from(sticky), unit + lost as i32)
}

/// The exponent of the last bit of a result: as fine as its fraction allows, and as the type does.
#[inline(always)]
fn unit_of_result<F: Float>(len: i32, unit: i32) -> i32 {
    (unit + len - 1 - F::FRACTION as i32).max(F::FINEST)
}

/// A number of so many units. The understood bit of a normal number adds one to the exponent, and a
/// carry from rounding does, too.
#[inline(always)]
fn number<F: Float>(negative: bool, units: u64, unit: i32) -> u64 {
    let exponent = ((unit - F::FINEST) as u64).min(F::FULL);
    ((exponent << F::FRACTION) + units).min(F::INFINITY) | if negative { F::SIGN } else { 0 }
}

/// `magnitude` over two to the power of `bits`, which is 1 to 63, to nearest, ties to even.
#[inline(always)]
pub(crate) fn rounded(magnitude: u64, bits: u32) -> u64 {
    let (whole, half) = (magnitude >> bits, 1u64 << (bits - 1));
    let rest = magnitude & (half | (half - 1));
    whole + u64::from(rest > half || (rest == half && whole & 1 == 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_nearest_are_inverse() {
        for bits in 0..=u64::from(u16::MAX) {
            if bits >> 10 & 31 < 31 {
                let Parts { negative, magnitude, unit } = parts::<Half>(bits);
                let back = nearest::<Half>(negative, magnitude, unit);
                assert_eq!(back, if magnitude == 0 { 0 } else { bits }, "{bits:#x}");
            }
        }
    }

    #[test]
    fn constants_are_the_standards() {
        assert_eq!((Single::FINEST, Single::TOP, Single::NAN), (-149, 128, 0x7fc0_0000));
        assert_eq!((Double::FINEST, Double::TOP, Double::NAN), (-1074, 1024, 0x7ff8_0000_0000_0000));
        assert_eq!((Half::FINEST, Half::TOP, Half::NAN), (-24, 16, 0x7e00));
        assert_eq!((Brain::FINEST, Brain::TOP, Brain::NAN), (-133, 128, 0x7fc0));
    }

    #[test]
    fn an_integer_rounds_as_the_processor_rounds_it() {
        let mut state = 1u64;
        for round in 0..200_000u32 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let integer = state >> (round % 64);
            assert_eq!(nearest::<Single>(false, integer, 0) as u32, (integer as f32).to_bits());
            assert_eq!(
                nearest::<Double>(true, integer, 0),
                if integer == 0 { 0 } else { (-(integer as f64)).to_bits() }
            );
        }
    }

    #[test]
    fn what_is_too_large_is_infinite_and_what_is_too_small_is_zero() {
        assert_eq!(nearest::<Half>(false, 65519, 0), 0x7bff);
        assert_eq!(nearest::<Half>(false, 65520, 0), 0x7c00);
        assert_eq!(nearest::<Half>(true, 1, 400), 0xfc00);
        assert_eq!(nearest::<Single>(false, 1, -150), 0, "half of the smallest, to even");
        assert_eq!(nearest::<Single>(false, 3, -151), 1);
        assert_eq!(nearest_of_long::<Single>(false, u128::MAX, -149 - 128), 1, "a whisker below one of the smallest");
        assert_eq!(nearest::<Single>(false, 1, -2000), 0);
        assert_eq!(nearest::<Single>(false, u64::MAX, -149 - 64), 1);
        assert_eq!(nearest::<Single>(false, 1 << 63, -149 - 64), 0, "half of the smallest, to even");
    }

    #[test]
    fn a_long_integer_rounds_as_the_processor_rounds_it() {
        let mut state = 1u64;
        for round in 0..200_000u32 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            // Few bits that are set far apart are ties, or nearly.
            let integer = u128::from(state) << (round % 64) | 1 << (round % 7) | u128::from(round & 1) << 127;
            assert_eq!(nearest_of_long::<Single>(false, integer, 0) as u32, (integer as f32).to_bits());
            assert_eq!(nearest_of_long::<Double>(false, integer, 0), (integer as f64).to_bits());
        }
    }
}
