//! The loops as one would write them; the compiler vectorises them for each instruction set.

use core::marker::PhantomData;
use core::mem::MaybeUninit;

use super::Kernel;
use crate::element::{Element, Unaligned};
use crate::operator::Op;
use crate::pair::Order;

/// Loops over elements of type `E` with operator `O`. They need no particular instructions.
#[derive(Clone, Copy)]
pub(crate) struct Plain<E, O> {
    op: O,
    element: PhantomData<E>,
}

impl<E, O> Plain<E, O> {
    /// Loops with this operator.
    #[inline(always)]
    pub(crate) fn with(op: O) -> Plain<E, O> {
        Plain { op, element: PhantomData }
    }
}

impl<E: Element, O: Op<E::Wide>> Kernel for Plain<E, O> {
    type Stored = E;
    type Wide = E::Wide;

    #[inline(always)]
    fn new(order: &Order) -> Self {
        Plain::with(O::new(order))
    }

    #[inline(always)]
    unsafe fn only(self, first: &mut [Unaligned<E>], source: &[Unaligned<E>]) {
        for (first, source) in first.iter_mut().zip(source) {
            first.0 = E::narrow(self.op.apply(first.0.widen(), source.0.widen()));
        }
    }

    #[inline(always)]
    unsafe fn open(self, sums: &mut [MaybeUninit<E::Wide>], first: &[Unaligned<E>], source: &[Unaligned<E>]) {
        for ((sum, first), source) in sums.iter_mut().zip(first).zip(source) {
            sum.write(self.op.apply(first.0.widen(), source.0.widen()));
        }
    }

    #[inline(always)]
    unsafe fn step(self, sums: &mut [E::Wide], source: &[Unaligned<E>]) {
        for (sum, source) in sums.iter_mut().zip(source) {
            *sum = self.op.apply(*sum, source.0.widen());
        }
    }

    #[inline(always)]
    unsafe fn close(self, first: &mut [Unaligned<E>], sums: &[E::Wide], source: &[Unaligned<E>]) {
        for ((first, sum), source) in first.iter_mut().zip(sums).zip(source) {
            first.0 = E::narrow(self.op.apply(*sum, source.0.widen()));
        }
    }
}
