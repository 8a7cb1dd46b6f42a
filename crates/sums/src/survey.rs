//! What members have to know of each other's elements of a block before they can lay it out.
//!
//! A survey is two integers of 16 bits in a fixed sum, three in an exact one. All of them merge by
//! `max`, so the merged survey holds for the elements of every member:
//!
//! | integer | of which elements | value |
//! | --- | --- | --- |
//! | top | finite, not zero | all are below two to this power |
//! | low, exact sums only | finite, not zero | all are multiples of two to minus this power |
//! | tail | all | 0: numbers, not -0; 1: some are -0; 2: some are no numbers |

use std::marker::PhantomData;

use trib_wire::DataType;

use crate::float::{Float, for_float, parts};
use crate::processor::{Work, at_best};
use crate::{BLOCK, Kind};

/// What is said where no element is finite and not zero.
pub(crate) const NONE: i16 = i16::MIN;

/// The merged survey of a block, as it was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Survey {
    pub(crate) top: i16,
    pub(crate) low: i16,
    pub(crate) tail: i16,
}

impl Survey {
    /// The one at the start of these bytes, which hold at least one.
    pub(crate) fn read(kind: Kind, bytes: &[u8]) -> Survey {
        let at = |index: usize| i16::from_le_bytes([bytes[2 * index], bytes[2 * index + 1]]);
        match kind {
            Kind::Fixed => Survey { top: at(0), low: NONE, tail: at(1) },
            Kind::Exact => Survey { top: at(0), low: at(1), tail: at(2) },
        }
    }

    fn write(self, kind: Kind, bytes: &mut [u8]) {
        let values: &[i16] = match kind {
            Kind::Fixed => &[self.top, self.tail],
            Kind::Exact => &[self.top, self.low, self.tail],
        };
        for (target, value) in bytes.chunks_exact_mut(2).zip(values) {
            target.copy_from_slice(&value.to_le_bytes());
        }
    }
}

/// The bytes of the surveys of a vector of `count` elements.
pub(crate) fn bytes_of(kind: Kind, count: usize) -> usize {
    count.div_ceil(BLOCK) * kind.survey_len() * size_of::<i16>()
}

impl Kind {
    /// The bytes of the surveys of a vector of `count` elements.
    pub fn survey_bytes(self, count: usize) -> usize {
        bytes_of(self, count)
    }
}

/// Merges another member's surveys of the same blocks into these.
///
/// # Panics
/// If they are not as many.
pub fn merge(surveys: &mut [u8], others: &[u8]) {
    assert_eq!(surveys.len(), others.len(), "surveys of the same blocks");
    for (target, other) in surveys.chunks_exact_mut(2).zip(others.chunks_exact(2)) {
        let largest = i16::from_le_bytes([target[0], target[1]]).max(i16::from_le_bytes([other[0], other[1]]));
        target.copy_from_slice(&largest.to_le_bytes());
    }
}

/// Surveys each block of `vector`, which holds whole elements of this type.
///
/// # Panics
/// If `surveys` has another length than [`Kind::survey_bytes`] says, or the type is none that
/// [`Kind::check`] lets pass.
pub fn survey(kind: Kind, dtype: DataType, vector: &[u8], surveys: &mut [u8]) {
    let count = vector.len() / dtype.size();
    assert_eq!(surveys.len(), kind.survey_bytes(count), "surveys of {count} elements");
    let blocks = vector.chunks(BLOCK * dtype.size());
    for (block, target) in blocks.zip(surveys.chunks_exact_mut(2 * kind.survey_len())) {
        for_float!(dtype, F => at_best(Looking::<F> { kind, block, of: PhantomData })).write(kind, target);
    }
}

/// A block that is to be surveyed.
struct Looking<'a, F> {
    kind: Kind,
    block: &'a [u8],
    of: PhantomData<F>,
}

impl<F: Float> Work for Looking<'_, F> {
    type Output = Survey;

    #[inline(always)]
    fn run(self, _: bool) -> Survey {
        let Looking { kind, block, .. } = self;
        let mut largest = 0;
        let (mut has_minus, mut has_other) = (false, false);
        for bytes in block.chunks_exact(F::SIZE) {
            let bits = F::load(bytes);
            let magnitude = bits & !F::SIGN;
            let is_other = magnitude >= F::INFINITY;
            has_other |= is_other;
            has_minus |= bits == F::SIGN;
            // Magnitudes compare as their bits do.
            largest = largest.max(if is_other { 0 } else { magnitude });
        }
        let tail = if has_other { 2 } else { i16::from(has_minus) };
        if largest == 0 {
            return Survey { top: NONE, low: NONE, tail };
        }
        let low = match kind {
            Kind::Fixed => NONE,
            Kind::Exact => -(finest::<F>(block) as i16),
        };
        let largest = parts::<F>(largest);
        Survey { top: (largest.unit + bit_len(largest.magnitude)) as i16, low, tail }
    }
}

/// The exponent of the finest bit that is set in an element, of which one at least is finite and
/// not zero.
#[inline(always)]
fn finest<F: Float>(block: &[u8]) -> i32 {
    let mut finest = i32::MAX;
    for bytes in block.chunks_exact(F::SIZE) {
        let bits = F::load(bytes);
        let own = parts::<F>(bits);
        let is_counted = own.magnitude != 0 && bits & !F::SIGN < F::INFINITY;
        let exponent = own.unit + own.magnitude.trailing_zeros() as i32;
        finest = finest.min(if is_counted { exponent } else { i32::MAX });
    }
    finest
}

#[inline(always)]
fn bit_len(magnitude: u64) -> i32 {
    (u64::BITS - magnitude.leading_zeros()) as i32
}
