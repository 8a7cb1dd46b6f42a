//! Pairs of up to 8 bytes, each one number: the value above its index.

use core::arch::x86_64::{
    __m256i, _mm_storeu_si128, _mm256_and_si256, _mm256_blendv_epi8, _mm256_castsi256_si128, _mm256_cmpeq_epi32,
    _mm256_cmpeq_epi64, _mm256_cmpgt_epi32, _mm256_cmpgt_epi64, _mm256_extracti128_si256, _mm256_or_si256,
    _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_sub_epi32, _mm256_sub_epi64,
    _mm256_testz_si256, _mm256_xor_si256,
};
use core::marker::PhantomData;

use super::Chunk;
use super::shuffle::{NONE, Picks, gather, inverse, pick, store_first};
use crate::pair::{Bits, Order, Pair};

/// Folds of pairs of `V` and `I`; the value is a float or not. Numbers stand in the top bits of 64
/// here, as in an [`Order`]; vector lanes of 32 bits have the upper half of that.
#[derive(Clone, Copy)]
pub(super) struct Joined<V, I, const FLOAT: bool> {
    /// The bits to flip in a pair: after that, the pair that wins is the larger number, both read
    /// as signed.
    flip: u64,
    infinity: u64,
    nan: u64,
    pair: PhantomData<(V, I)>,
}

impl<V: Bits, I: Bits, const FLOAT: bool> Chunk for Joined<V, I, FLOAT> {
    const PAIRS: usize = 2 * Self::HALF;

    const READ_BYTES: usize = Self::HALF_BYTES + 16;

    #[inline(always)]
    fn new(order: &Order) -> Self {
        // In the joint number the index has no sign: its top bit is flipped for that, and all its
        // bits so that the smaller index wins.
        let index = (order.index ^ (u64::MAX >> 1)) >> (8 * size_of::<V>());
        Joined {
            flip: order.value & Self::VALUE | index & Self::INDEX,
            infinity: order.infinity,
            nan: order.nan,
            pair: PhantomData,
        }
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
impl<V: Bits, I: Bits, const FLOAT: bool> Joined<V, I, FLOAT> {
    /// Bytes of a pair in a vector.
    const PAIR: usize = size_of::<Pair<V, I>>();

    /// Bytes of a vector lane.
    const VECTOR_LANE: usize = if Self::PAIR <= 4 { 4 } else { 8 };

    /// How many pairs half a register holds, and how many bytes they have in a vector.
    const HALF: usize = 16 / Self::VECTOR_LANE;
    const HALF_BYTES: usize = Self::HALF * Self::PAIR;

    const VALUE: u64 = u64::MAX << (64 - 8 * size_of::<V>());
    const INDEX: u64 = u64::MAX << (64 - 8 * Self::PAIR) & !Self::VALUE;
    const SIGN: u64 = 1 << 63;
    const MAGNITUDE: u64 = Self::VALUE & !Self::SIGN;

    /// The shuffle from vector lanes to the bytes of a vector, and the way back.
    const PACK: Picks = Self::pack();
    const SPREAD: Picks = inverse(&Self::PACK);

    const fn pack() -> Picks {
        let mut picks = [NONE; 16];
        let mut at = 0;
        while at < Self::HALF_BYTES {
            picks[at] = Self::in_register(at) as u8;
            at += 1;
        }
        picks
    }

    /// The position in its half register of the byte that has this position in a vector.
    const fn in_register(at: usize) -> usize {
        let (pair, byte) = (at / Self::PAIR, at % Self::PAIR);
        let value = size_of::<V>();
        let from_top = if byte < value { value - byte } else { value + Self::PAIR - byte };
        (pair + 1) * Self::VECTOR_LANE - from_top
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> __m256i {
        // SAFETY: a chunk's reach is readable.
        unsafe { gather(from, from.add(Self::HALF_BYTES), &Self::SPREAD) }
    }

    /// The lower half may write beyond its own bytes, into those of the upper half, which is
    /// written after it.
    #[inline(always)]
    unsafe fn store(into: *mut u8, numbers: __m256i) {
        // SAFETY: the bytes of a chunk's pairs are writable: 16 from the start, and those of half
        // of the pairs behind the first half.
        unsafe {
            let packed = pick(numbers, &Self::PACK);
            let (low, high) = (_mm256_castsi256_si128(packed), _mm256_extracti128_si256::<1>(packed));
            let upper = into.add(Self::HALF_BYTES);
            _mm_storeu_si128(into.cast(), low);
            const { assert!(matches!(Self::HALF_BYTES, 10 | 12 | 16)) };
            match Self::HALF_BYTES {
                10 => store_first::<10>(upper, high),
                12 => store_first::<12>(upper, high),
                _ => store_first::<16>(upper, high),
            }
        }
    }

    #[inline(always)]
    unsafe fn integers(self, left: __m256i, right: __m256i) -> __m256i {
        // SAFETY: AVX2 is there.
        unsafe {
            let flip = Self::all(self.flip);
            let left_wins = Self::larger(_mm256_xor_si256(left, flip), _mm256_xor_si256(right, flip));
            _mm256_blendv_epi8(right, left, left_wins)
        }
    }

    /// Folds pairs of numbers: their bits, read as sign and magnitude, are in their order, except
    /// for two zeros of which one is negative.
    #[inline(always)]
    unsafe fn floats(self, left: __m256i, right: __m256i) -> __m256i {
        // SAFETY: AVX2 is there.
        unsafe {
            let no_numbers = _mm256_or_si256(self.no_number(left), self.no_number(right));
            let either = _mm256_and_si256(_mm256_or_si256(left, right), Self::all(Self::VALUE));
            let zeros = Self::equal(either, Self::all(Self::SIGN));
            let special = _mm256_or_si256(no_numbers, zeros);
            if _mm256_testz_si256(special, special) == 0 {
                return self.special_floats(left, right);
            }
            _mm256_blendv_epi8(right, left, Self::larger(self.ordered(left), self.ordered(right)))
        }
    }

    /// The pairs as keys in their order, in which the negative zero is below the other one.
    #[inline(always)]
    unsafe fn ordered(self, pair: __m256i) -> __m256i {
        // SAFETY: AVX2 is there.
        unsafe {
            let magnitude = _mm256_and_si256(Self::negative(pair), Self::all(Self::MAGNITUDE));
            _mm256_xor_si256(_mm256_xor_si256(pair, magnitude), Self::all(self.flip))
        }
    }

    /// Folds pairs of any floats: zeros of both signs are equal, and what is not a number is the
    /// largest.
    #[inline(always)]
    unsafe fn special_floats(self, left: __m256i, right: __m256i) -> __m256i {
        // SAFETY: AVX2 is there.
        unsafe {
            let (value, flip) = (Self::all(Self::VALUE), Self::all(self.flip & Self::VALUE));
            let (left_value, right_value) = (self.value_key(left), self.value_key(right));
            let left_key = _mm256_or_si256(left_value, self.index_key(left));
            let right_key = _mm256_or_si256(right_value, self.index_key(right));
            let winner = _mm256_blendv_epi8(right, left, Self::larger(left_key, right_key));
            // Of two zeros the larger stays, or under `minloc` the smaller.
            let both = _mm256_and_si256(_mm256_xor_si256(left, flip), _mm256_xor_si256(right, flip));
            let both = _mm256_xor_si256(both, flip);
            let tie = _mm256_and_si256(Self::equal(left_value, right_value), value);
            let no_number = _mm256_or_si256(self.no_number(left), self.no_number(right));
            let winner = _mm256_blendv_epi8(winner, both, tie);
            _mm256_blendv_epi8(winner, Self::all(self.nan), _mm256_and_si256(no_number, value))
        }
    }

    /// Values in their order, above zeros.
    #[inline(always)]
    unsafe fn value_key(self, pair: __m256i) -> __m256i {
        // SAFETY: AVX2 is there.
        unsafe {
            let value = Self::all(Self::VALUE);
            let negative = _mm256_and_si256(Self::negative(pair), value);
            let magnitude = _mm256_and_si256(negative, Self::all(Self::MAGNITUDE));
            let ordered = Self::minus(_mm256_xor_si256(_mm256_and_si256(pair, value), magnitude), negative);
            let key = _mm256_xor_si256(ordered, Self::all(self.flip & Self::VALUE));
            _mm256_blendv_epi8(key, Self::all(Self::MAGNITUDE), self.no_number(pair))
        }
    }

    /// Indices in their order, in the bits in which a pair has them.
    #[inline(always)]
    unsafe fn index_key(self, pair: __m256i) -> __m256i {
        // SAFETY: AVX2 is there.
        unsafe { _mm256_and_si256(_mm256_xor_si256(pair, Self::all(self.flip)), Self::all(Self::INDEX)) }
    }

    /// A mask of the pairs whose value is not a number.
    #[inline(always)]
    unsafe fn no_number(self, pair: __m256i) -> __m256i {
        // SAFETY: AVX2 is there.
        unsafe { Self::larger(_mm256_and_si256(pair, Self::all(Self::MAGNITUDE)), Self::all(self.infinity)) }
    }

    #[inline(always)]
    unsafe fn all(top: u64) -> __m256i {
        // SAFETY: AVX2 is there.
        unsafe {
            match Self::VECTOR_LANE {
                4 => _mm256_set1_epi32((top >> 32) as i32),
                _ => _mm256_set1_epi64x(top.cast_signed()),
            }
        }
    }

    #[inline(always)]
    unsafe fn larger(left: __m256i, right: __m256i) -> __m256i {
        // SAFETY: AVX2 is there.
        unsafe {
            if Self::VECTOR_LANE == 4 { _mm256_cmpgt_epi32(left, right) } else { _mm256_cmpgt_epi64(left, right) }
        }
    }

    #[inline(always)]
    unsafe fn equal(left: __m256i, right: __m256i) -> __m256i {
        // SAFETY: AVX2 is there.
        unsafe {
            if Self::VECTOR_LANE == 4 { _mm256_cmpeq_epi32(left, right) } else { _mm256_cmpeq_epi64(left, right) }
        }
    }

    #[inline(always)]
    unsafe fn minus(left: __m256i, right: __m256i) -> __m256i {
        // SAFETY: AVX2 is there.
        unsafe { if Self::VECTOR_LANE == 4 { _mm256_sub_epi32(left, right) } else { _mm256_sub_epi64(left, right) } }
    }

    #[inline(always)]
    unsafe fn negative(numbers: __m256i) -> __m256i {
        // SAFETY: AVX2 is there.
        unsafe { Self::larger(_mm256_setzero_si256(), numbers) }
    }
}
