//! One block. The loops have no branches and one length, so that the compiler vectorises them.

use trib_wire::{INT8_BLOCK, INT8_BLOCK_BYTES};

use super::noise;

/// A block as it travels.
pub(super) type Bytes = [u8; INT8_BLOCK_BYTES];

/// Its elements.
pub(super) type Values = [f32; INT8_BLOCK];

/// The bytes of the head.
const HEAD: usize = INT8_BLOCK_BYTES - INT8_BLOCK;
/// The codes of scales up to here are those of numbers.
const SCALE_MAX: u32 = 247;
/// The code of the scale of a block whose elements are no numbers.
const NO_NUMBERS: u8 = u8::MAX;
/// How much higher than a scale's code the exponent of the scale is in a binary32.
const SCALE_BIAS: u32 = 1;
/// How much higher than the code of a scale the exponent of 127 scales is in a binary32.
const LARGEST_BIAS: u32 = 7;
/// Less than the exponent of a scale and that of its inverse are together in a binary32.
const INVERSE: u32 = 2 * 127 - SCALE_BIAS;
/// The sign of a binary32.
const SIGN: u32 = 1 << 31;
/// The bits of its fraction.
const FRACTION: u32 = 23;
/// Added to a magnitude, it carries into the exponent if that is more than 127/64 of a power of 2.
const BEYOND_127: u32 = (1 << FRACTION) - 1 - (63 << (FRACTION - 6));
/// Added to a number of magnitude 2^21 at most, it leaves the nearest integer in the lowest bits.
const ALIGN: f32 = 12_582_912.0;

/// The head: scale and seed.
#[inline(always)]
pub(super) fn head(block: &Bytes) -> u32 {
    u32::from_le_bytes([block[0], block[1], block[2], block[3]])
}

/// The elements of a block, exactly.
#[inline(always)]
pub(super) fn decode(block: &Bytes) -> Values {
    let scale = u32::from(block[0]);
    let scale = if scale > SCALE_MAX { f32::NAN } else { f32::from_bits((scale + SCALE_BIAS) << FRACTION) };
    core::array::from_fn(|at| f32::from(block[HEAD + at] as i8) * scale)
}

/// The code of the scale of these elements, if they are numbers that have one.
#[inline(always)]
fn scale_of(values: &Values) -> Option<u32> {
    let largest = values.iter().fold(0, |largest: u32, value| largest.max(value.to_bits() & !SIGN));
    let scale = ((largest + BEYOND_127) >> FRACTION).saturating_sub(LARGEST_BIAS);
    (scale <= SCALE_MAX).then_some(scale)
}

/// Rounds each element to the nearest that a block with them can hold, ties to even. Returns the
/// scale of that block, of which all are multiples; `None` if no block can hold them.
#[inline(always)]
pub(super) fn round(values: &mut Values) -> Option<f32> {
    let scale = scale_of(values)?;
    let inverse = f32::from_bits((INVERSE - scale) << FRACTION);
    let scale = f32::from_bits((scale + SCALE_BIAS) << FRACTION);
    for value in values {
        *value = (*value * inverse + ALIGN - ALIGN) * scale;
    }
    Some(scale)
}

/// Quantises the elements of a block with this seed of 24 bits.
#[inline(always)]
pub(super) fn encode(values: &Values, seed: u32, block: &mut Bytes) {
    let Some(scale) = scale_of(values) else {
        *block = [0; INT8_BLOCK_BYTES];
        block[0] = NO_NUMBERS;
        return;
    };
    let inverse = f32::from_bits((INVERSE - scale) << FRACTION);
    let offsets = noise::offsets(seed);
    for ((code, value), offset) in block[HEAD..].iter_mut().zip(values).zip(offsets) {
        // Magnitudes are 127 at most, and offsets below a half: what is exact stays so.
        *code = (value * inverse + offset + ALIGN).to_bits() as u8;
    }
    block[..HEAD].copy_from_slice(&(seed << 8 | scale).to_le_bytes());
}
