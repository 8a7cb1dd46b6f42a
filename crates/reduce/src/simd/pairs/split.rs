//! Pairs of more than 8 bytes: values are in vector lanes of 64 bits, indices in others.

use core::arch::x86_64::{
    __m256i, _mm_storeu_si128, _mm256_and_si256, _mm256_blendv_epi8, _mm256_castsi256_si128, _mm256_cmpeq_epi64,
    _mm256_cmpgt_epi64, _mm256_extracti128_si256, _mm256_or_si256, _mm256_set1_epi64x, _mm256_setzero_si256,
    _mm256_sub_epi64, _mm256_testz_si256, _mm256_unpackhi_epi64, _mm256_unpacklo_epi64, _mm256_xor_si256,
};
use core::marker::PhantomData;

use super::Chunk;
use super::shuffle::{NONE, Picks, gather, inverse, pick, store_first};
use crate::pair::{Bits, Order, Pair};

/// Folds of pairs of `V` and `I`; the value is a float or not. Numbers stand in the top bits of 64,
/// as in an [`Order`].
#[derive(Clone, Copy)]
pub(super) struct Split<V, I, const FLOAT: bool> {
    order: Order,
    pair: PhantomData<(V, I)>,
}

/// Four pairs.
#[derive(Clone, Copy)]
struct Registers {
    values: __m256i,
    indices: __m256i,
}

impl<V: Bits, I: Bits, const FLOAT: bool> Chunk for Split<V, I, FLOAT> {
    const PAIRS: usize = 4;

    const READ_BYTES: usize = 3 * Self::PAIR + 16;

    #[inline(always)]
    fn new(order: &Order) -> Self {
        Split { order: *order, pair: PhantomData }
    }

    #[inline(always)]
    unsafe fn fold(self, into: *mut u8, left: *const u8, right: *const u8) {
        // SAFETY: all of it as the caller promises.
        unsafe {
            let (left, right) = (Self::load(left), Self::load(right));
            let folded = if FLOAT { self.floats(left, right) } else { self.integers(left, right) };
            Self::store(into, folded);
        }
    }
}

/// # Safety of the methods
///
/// The processor has AVX2.
impl<V: Bits, I: Bits, const FLOAT: bool> Split<V, I, FLOAT> {
    /// Bytes of a pair in a vector.
    const PAIR: usize = size_of::<Pair<V, I>>();

    const VALUE: u64 = u64::MAX << (64 - 8 * size_of::<V>());
    const SIGN: u64 = 1 << 63;
    const MAGNITUDE: u64 = Self::VALUE & !Self::SIGN;

    /// The shuffle to the bytes of a vector, and the way back: a value and its index stand at the
    /// tops of their halves.
    const PACK: Picks = Self::pack();
    const SPREAD: Picks = inverse(&Self::PACK);

    const fn pack() -> Picks {
        let mut picks = [NONE; 16];
        let mut at = 0;
        while at < Self::PAIR {
            picks[at] = Self::in_register(at) as u8;
            at += 1;
        }
        picks
    }

    /// The position in a register of the byte that has this position in a pair.
    const fn in_register(at: usize) -> usize {
        let value = size_of::<V>();
        if at < value { 8 - value + at } else { 16 - Self::PAIR + at }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Registers {
        // SAFETY: a chunk's reach is readable.
        unsafe {
            let even = gather(from, from.add(2 * Self::PAIR), &Self::SPREAD);
            let odd = gather(from.add(Self::PAIR), from.add(3 * Self::PAIR), &Self::SPREAD);
            Registers { values: _mm256_unpacklo_epi64(even, odd), indices: _mm256_unpackhi_epi64(even, odd) }
        }
    }

    /// All pairs but the last may write beyond their own bytes, into those of the next pair, which
    /// is written after them.
    #[inline(always)]
    unsafe fn store(into: *mut u8, registers: Registers) {
        // SAFETY: the bytes of a chunk's pairs are writable: 16 from each but the last.
        unsafe {
            let even = pick(_mm256_unpacklo_epi64(registers.values, registers.indices), &Self::PACK);
            let odd = pick(_mm256_unpackhi_epi64(registers.values, registers.indices), &Self::PACK);
            _mm_storeu_si128(into.cast(), _mm256_castsi256_si128(even));
            _mm_storeu_si128(into.add(Self::PAIR).cast(), _mm256_castsi256_si128(odd));
            _mm_storeu_si128(into.add(2 * Self::PAIR).cast(), _mm256_extracti128_si256::<1>(even));
            let (last, pair) = (into.add(3 * Self::PAIR), _mm256_extracti128_si256::<1>(odd));
            const { assert!(matches!(Self::PAIR, 9 | 10 | 12 | 16)) };
            match Self::PAIR {
                9 => store_first::<9>(last, pair),
                10 => store_first::<10>(last, pair),
                12 => store_first::<12>(last, pair),
                _ => store_first::<16>(last, pair),
            }
        }
    }

    #[inline(always)]
    unsafe fn integers(self, left: Registers, right: Registers) -> Registers {
        // SAFETY: AVX2 is there.
        unsafe {
            let flip = all(self.order.value);
            let (left_key, right_key) = (_mm256_xor_si256(left.values, flip), _mm256_xor_si256(right.values, flip));
            self.winner(left, right, left_key, right_key)
        }
    }

    /// Folds pairs of numbers: their bits, read as sign and magnitude, are in their order, except
    /// for two zeros of which one is negative.
    #[inline(always)]
    unsafe fn floats(self, left: Registers, right: Registers) -> Registers {
        // SAFETY: AVX2 is there.
        unsafe {
            let no_numbers = _mm256_or_si256(self.no_number(left), self.no_number(right));
            let zeros = _mm256_cmpeq_epi64(_mm256_or_si256(left.values, right.values), all(Self::SIGN));
            let special = _mm256_or_si256(no_numbers, zeros);
            if _mm256_testz_si256(special, special) == 0 {
                return self.special_floats(left, right);
            }
            self.winner(left, right, self.ordered(left), self.ordered(right))
        }
    }

    /// The values as keys in their order, in which the negative zero is below the other one.
    #[inline(always)]
    unsafe fn ordered(self, pairs: Registers) -> __m256i {
        // SAFETY: AVX2 is there.
        unsafe {
            let magnitude = _mm256_and_si256(negative(pairs.values), all(Self::MAGNITUDE));
            let flip = all(self.order.value & Self::VALUE);
            _mm256_xor_si256(_mm256_xor_si256(pairs.values, magnitude), flip)
        }
    }

    /// Folds pairs of any floats: zeros of both signs are equal, and what is not a number is the
    /// largest.
    #[inline(always)]
    unsafe fn special_floats(self, left: Registers, right: Registers) -> Registers {
        // SAFETY: AVX2 is there.
        unsafe {
            let flip = all(self.order.value & Self::VALUE);
            let (left_key, right_key) = (self.key(left), self.key(right));
            let winner = self.winner(left, right, left_key, right_key);
            // Of two zeros the larger stays, or under `minloc` the smaller.
            let both = _mm256_and_si256(_mm256_xor_si256(left.values, flip), _mm256_xor_si256(right.values, flip));
            let tie = _mm256_cmpeq_epi64(left_key, right_key);
            let values = _mm256_blendv_epi8(winner.values, _mm256_xor_si256(both, flip), tie);
            let no_number = _mm256_or_si256(self.no_number(left), self.no_number(right));
            Registers { values: _mm256_blendv_epi8(values, all(self.order.nan), no_number), ..winner }
        }
    }

    /// Values in their order.
    #[inline(always)]
    unsafe fn key(self, pairs: Registers) -> __m256i {
        // SAFETY: AVX2 is there.
        unsafe {
            let negative = _mm256_and_si256(negative(pairs.values), all(Self::VALUE));
            let magnitude = _mm256_and_si256(negative, all(Self::MAGNITUDE));
            let ordered = _mm256_sub_epi64(_mm256_xor_si256(pairs.values, magnitude), negative);
            let key = _mm256_xor_si256(ordered, all(self.order.value & Self::VALUE));
            _mm256_blendv_epi8(key, all(Self::MAGNITUDE), self.no_number(pairs))
        }
    }

    /// The pairs with the larger keys, or of equal ones with the smaller indices.
    #[inline(always)]
    unsafe fn winner(self, left: Registers, right: Registers, left_key: __m256i, right_key: __m256i) -> Registers {
        // SAFETY: AVX2 is there.
        unsafe {
            let flip = all(self.order.index);
            let (left_index, right_index) =
                (_mm256_xor_si256(left.indices, flip), _mm256_xor_si256(right.indices, flip));
            let left_first = _mm256_cmpgt_epi64(right_index, left_index);
            let tie = _mm256_and_si256(_mm256_cmpeq_epi64(left_key, right_key), left_first);
            let left_wins = _mm256_or_si256(_mm256_cmpgt_epi64(left_key, right_key), tie);
            Registers {
                values: _mm256_blendv_epi8(right.values, left.values, left_wins),
                indices: _mm256_blendv_epi8(right.indices, left.indices, left_wins),
            }
        }
    }

    /// A mask of the pairs whose value is not a number.
    #[inline(always)]
    unsafe fn no_number(self, pairs: Registers) -> __m256i {
        // SAFETY: AVX2 is there.
        unsafe {
            let magnitude = _mm256_and_si256(pairs.values, all(Self::MAGNITUDE));
            _mm256_cmpgt_epi64(magnitude, all(self.order.infinity))
        }
    }
}

/// # Safety
///
/// The processor has AVX2.
#[inline(always)]
unsafe fn all(bits: u64) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe { _mm256_set1_epi64x(bits.cast_signed()) }
}

/// # Safety
///
/// The processor has AVX2.
#[inline(always)]
unsafe fn negative(numbers: __m256i) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe { _mm256_cmpgt_epi64(_mm256_setzero_si256(), numbers) }
}
