//! Copies of long stretches to and from memory that members share.
//!
//! From a few kilobytes up to the size of a core's cache, glibc 2.36 copies with `rep movsb` where
//! the processor says that it is fast. AMD's Zen 3 and 4 say so and take up to twice as long as
//! for a loop of vector moves (glibc's bug 30994); that loop is here.

/// Copies `from` to `into`.
///
/// # Panics
/// If they differ in length.
#[inline]
pub fn copy(from: &[u8], into: &mut [u8]) {
    assert_eq!(from.len(), into.len(), "a copy is as long as what it is of");
    // SAFETY: both are slices of that length, and one of them is exclusive.
    unsafe { copy_bytes(from.as_ptr(), into.as_mut_ptr(), into.len()) };
}

/// # Safety
/// As for `core::ptr::copy_nonoverlapping`.
#[inline]
pub(super) unsafe fn copy_bytes(from: *const u8, into: *mut u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    if len >= LONG && std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: the processor has the instructions, and the caller promises the rest.
        return unsafe { by_vectors(from, into, len) };
    }
    // SAFETY: as the caller promises.
    unsafe { core::ptr::copy_nonoverlapping(from, into, len) };
}

/// # Safety
/// As for `core::ptr::copy_nonoverlapping`; the processor has AVX, and `len` is at least `LONG`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn by_vectors(from: *const u8, into: *mut u8, len: usize) {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_store_si256, _mm256_storeu_si256};
    const VECTOR: usize = 32;
    const TURN: usize = 4 * VECTOR;
    let vector = |at: usize| {
        // SAFETY: the caller passes places that lie a vector or more before the end.
        unsafe { _mm256_loadu_si256(from.add(at).cast()) }
    };
    // The first and the last stretch are stored wherever they begin, and what lies between from a
    // multiple of a vector on; they overlap.
    let first = vector(0);
    let last: [__m256i; 4] = [4, 3, 2, 1].map(|back| vector(len - back * VECTOR));
    let mut at = into.align_offset(VECTOR);
    // SAFETY: every store lies inside the `len` bytes, as the bound of each loop says, and those of
    // the loop begin at a multiple of a vector.
    unsafe {
        _mm256_storeu_si256(into.cast(), first);
        while at + TURN < len {
            let turn = [0, 1, 2, 3].map(|of| vector(at + of * VECTOR));
            for (of, bytes) in turn.into_iter().enumerate() {
                _mm256_store_si256(into.add(at + of * VECTOR).cast(), bytes);
            }
            at += TURN;
        }
        for (back, bytes) in [4, 3, 2, 1].into_iter().zip(last) {
            _mm256_storeu_si256(into.add(len - back * VECTOR).cast(), bytes);
        }
    }
}

/// In bytes. What is shorter glibc copies by vectors, too.
#[cfg(target_arch = "x86_64")]
const LONG: usize = 4096;

#[cfg(test)]
mod tests {
    use super::copy;

    #[test]
    fn every_byte_arrives_and_no_other_is_touched() {
        let source: Vec<u8> = (0..40_000u32).map(|at| (at * 7 + at / 256) as u8).collect();
        for len in (0..9000).step_by(37).chain(4090..4260).chain([16_384, 39_000]) {
            for (from, to) in [(0, 0), (1, 0), (0, 31), (7, 33), (63, 1)] {
                let mut target = vec![0xa5; len + 128];
                copy(&source[from..from + len], &mut target[to..to + len]);
                assert_eq!(target[to..to + len], source[from..from + len], "{len} bytes from {from} to {to}");
                let around = target[..to].iter().chain(&target[to + len..]);
                assert!(around.copied().all(|byte| byte == 0xa5), "{len} bytes from {from} to {to}");
            }
        }
    }
}
