//! Moves bytes from a vector into vector lanes, and back.

use core::arch::x86_64::{
    __m128i, __m256i, _mm_extract_epi32, _mm_extract_epi64, _mm_loadu_si128, _mm_storel_epi64, _mm_storeu_si128,
    _mm256_loadu_si256, _mm256_set_m128i, _mm256_shuffle_epi8,
};

/// For each of the 16 bytes that a shuffle makes, the byte that it takes; it takes none where the
/// top bit is set.
pub(super) type Picks = [u8; 16];

pub(super) const NONE: u8 = 0x80;

/// The way back: puts each byte that was taken where it came from.
pub(super) const fn inverse(picks: &Picks) -> Picks {
    let mut back = [NONE; 16];
    let mut at = 0;
    while at < picks.len() {
        if picks[at] != NONE {
            back[picks[at] as usize] = at as u8;
        }
        at += 1;
    }
    back
}

/// Loads 16 bytes from each address, and shuffles the bytes of both by the same picks.
///
/// # Safety
///
/// The processor has AVX2, and 16 bytes are readable at both.
#[inline(always)]
pub(super) unsafe fn gather(low: *const u8, high: *const u8, picks: &Picks) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        let both = _mm256_set_m128i(_mm_loadu_si128(high.cast()), _mm_loadu_si128(low.cast()));
        pick(both, picks)
    }
}

/// Shuffles each half of a register by the same picks.
///
/// # Safety
///
/// The processor has AVX2.
#[inline(always)]
pub(super) unsafe fn pick(bytes: __m256i, picks: &Picks) -> __m256i {
    let both = [*picks; 2];
    // SAFETY: the caller's promise; the picks are 32 bytes.
    unsafe { _mm256_shuffle_epi8(bytes, _mm256_loadu_si256(both.as_ptr().cast())) }
}

/// Writes the first `COUNT` bytes and no others.
///
/// # Safety
///
/// The processor has AVX2, and so many bytes are writable.
#[inline(always)]
pub(super) unsafe fn store_first<const COUNT: usize>(into: *mut u8, bytes: __m128i) {
    const { assert!(matches!(COUNT, 9 | 10 | 12 | 16)) };
    // SAFETY: the caller's promise.
    unsafe {
        if COUNT == 16 {
            _mm_storeu_si128(into.cast(), bytes);
            return;
        }
        _mm_storel_epi64(into.cast(), bytes);
        let rest = into.add(8);
        match COUNT {
            9 => rest.write(_mm_extract_epi64::<1>(bytes) as u8),
            10 => rest.cast::<u16>().write_unaligned(_mm_extract_epi64::<1>(bytes) as u16),
            _ => rest.cast::<i32>().write_unaligned(_mm_extract_epi32::<2>(bytes)),
        }
    }
}
