//! The loops as one would write them; the compiler vectorises them for each instruction set.

use core::marker::PhantomData;
use core::mem::MaybeUninit;

use super::Kernel;
use crate::element::{Element, Unaligned};
use crate::operator::Op;

/// Loops over elements of type `E` with operator `O`; needs no particular instructions.
pub(crate) struct Plain<E, O>(PhantomData<(E, O)>);

impl<E: Element, O: Op<E::Wide>> Kernel for Plain<E, O> {
    type Stored = E;
    type Wide = E::Wide;

    #[inline(always)]
    unsafe fn only(first: &mut [Unaligned<E>], source: &[Unaligned<E>]) {
        for (first, source) in first.iter_mut().zip(source) {
            first.0 = E::narrow(O::apply(first.0.widen(), source.0.widen()));
        }
    }

    #[inline(always)]
    unsafe fn open(sums: &mut [MaybeUninit<E::Wide>], first: &[Unaligned<E>], source: &[Unaligned<E>]) {
        for ((sum, first), source) in sums.iter_mut().zip(first).zip(source) {
            sum.write(O::apply(first.0.widen(), source.0.widen()));
        }
    }

    #[inline(always)]
    unsafe fn step(sums: &mut [E::Wide], source: &[Unaligned<E>]) {
        for (sum, source) in sums.iter_mut().zip(source) {
            *sum = O::apply(*sum, source.0.widen());
        }
    }

    #[inline(always)]
    unsafe fn close(first: &mut [Unaligned<E>], sums: &[E::Wide], source: &[Unaligned<E>]) {
        for ((first, sum), source) in first.iter_mut().zip(sums).zip(source) {
            first.0 = E::narrow(O::apply(*sum, source.0.widen()));
        }
    }
}
