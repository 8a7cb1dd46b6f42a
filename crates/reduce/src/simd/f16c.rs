//! float16 with the conversion instructions of F16C, eight elements at a time.
//!
//! Both directions are exact, or round to nearest even as `element` does in integer arithmetic,
//! whatever the control register says. Only the payloads of NaNs differ, and those are replaced
//! before rounding.

use core::arch::x86_64::{_MM_FROUND_TO_NEAREST_INT, _mm256_cvtph_ps, _mm256_cvtps_ph};
use core::arch::x86_64::{_mm_loadu_si128, _mm_storeu_si128, _mm256_loadu_ps, _mm256_storeu_ps};
use core::mem::MaybeUninit;

use super::Kernel;
use super::plain::Plain;
use crate::element::{Element, F16, Unaligned};
use crate::operator::Op;
use crate::pair::Order;

/// Loops over float16 with operator `O`; needs AVX and F16C.
#[derive(Clone, Copy)]
pub(crate) struct F16c<O> {
    op: O,
}

type Halves = [Unaligned<F16>; VECTOR_LANES];
type Singles = [f32; VECTOR_LANES];

impl<O: Op<f32>> Kernel for F16c<O> {
    type Stored = F16;
    type Wide = f32;

    #[inline(always)]
    fn new(order: &Order) -> Self {
        F16c { op: O::new(order) }
    }

    #[inline(always)]
    unsafe fn only(self, first: &mut [Unaligned<F16>], source: &[Unaligned<F16>]) {
        let (firsts, first_tail) = first.as_chunks_mut();
        let (sources, source_tail) = source.as_chunks();
        for (first, source) in firsts.iter_mut().zip(sources) {
            // SAFETY: F16C is there, as the caller promises.
            unsafe { *first = narrow(apply(self.op, widen(first), widen(source))) };
        }
        // SAFETY: plain loops need nothing.
        unsafe { Plain::<F16, O>::with(self.op).only(first_tail, source_tail) };
    }

    #[inline(always)]
    unsafe fn open(self, sums: &mut [MaybeUninit<f32>], first: &[Unaligned<F16>], source: &[Unaligned<F16>]) {
        let (all_sums, sum_tail) = sums.as_chunks_mut::<VECTOR_LANES>();
        let (firsts, first_tail) = first.as_chunks();
        let (sources, source_tail) = source.as_chunks();
        for ((sums, first), source) in all_sums.iter_mut().zip(firsts).zip(sources) {
            // SAFETY: F16C is there, as the caller promises.
            *sums = unsafe { apply(self.op, widen(first), widen(source)) }.map(MaybeUninit::new);
        }
        // SAFETY: plain loops need nothing.
        unsafe { Plain::<F16, O>::with(self.op).open(sum_tail, first_tail, source_tail) };
    }

    #[inline(always)]
    unsafe fn step(self, sums: &mut [f32], source: &[Unaligned<F16>]) {
        let (all_sums, sum_tail) = sums.as_chunks_mut();
        let (sources, source_tail) = source.as_chunks();
        for (sums, source) in all_sums.iter_mut().zip(sources) {
            // SAFETY: F16C is there, as the caller promises.
            *sums = unsafe { apply(self.op, *sums, widen(source)) };
        }
        // SAFETY: plain loops need nothing.
        unsafe { Plain::<F16, O>::with(self.op).step(sum_tail, source_tail) };
    }

    #[inline(always)]
    unsafe fn close(self, first: &mut [Unaligned<F16>], sums: &[f32], source: &[Unaligned<F16>]) {
        let (firsts, first_tail) = first.as_chunks_mut();
        let (all_sums, sum_tail) = sums.as_chunks();
        let (sources, source_tail) = source.as_chunks();
        for ((first, sums), source) in firsts.iter_mut().zip(all_sums).zip(sources) {
            // SAFETY: F16C is there, as the caller promises.
            unsafe { *first = narrow(apply(self.op, *sums, widen(source))) };
        }
        // SAFETY: plain loops need nothing.
        unsafe { Plain::<F16, O>::with(self.op).close(first_tail, sum_tail, source_tail) };
    }
}

#[inline(always)]
fn apply<O: Op<f32>>(op: O, mut left: Singles, right: Singles) -> Singles {
    for (left, right) in left.iter_mut().zip(right) {
        *left = op.apply(*left, right);
    }
    left
}

/// # Safety
///
/// Needs AVX and F16C.
#[inline(always)]
unsafe fn widen(halves: &Halves) -> Singles {
    let mut singles = [0.0; VECTOR_LANES];
    // SAFETY: instructions as the caller promises; unaligned accesses to 16 and 32 live bytes.
    unsafe {
        let halves = _mm_loadu_si128(halves.as_ptr().cast());
        _mm256_storeu_ps(singles.as_mut_ptr(), _mm256_cvtph_ps(halves));
    }
    singles
}

/// # Safety
///
/// Needs AVX and F16C.
#[inline(always)]
unsafe fn narrow(singles: Singles) -> Halves {
    let singles = singles.map(f32::narrow);
    let mut halves = [Unaligned(F16(0)); VECTOR_LANES];
    // SAFETY: instructions as the caller promises; unaligned accesses to 32 and 16 live bytes.
    unsafe {
        let singles = _mm256_loadu_ps(singles.as_ptr());
        let rounded = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(singles);
        _mm_storeu_si128(halves.as_mut_ptr().cast(), rounded);
    }
    halves
}

const VECTOR_LANES: usize = 8;
