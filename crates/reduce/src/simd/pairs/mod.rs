//! Pairs on processors with AVX2 or AVX-512.
//!
//! A value and its index seldom have one size, and the compiler does not vectorise loops over
//! elements of 3, 5, 6, 9, 10 or 12 bytes. So there are two other ways. The bytes of some
//! neighbouring pairs, a chunk, are shuffled into vector lanes that compare as numbers do (`joined`
//! and `split`); or many pairs are taken word by word (`words`).
//!
//! ```text
//!   vector      v v i v v i v v i v v i ...      lower addresses on the left
//!
//!   joined      . i v v | . i v v | ...     up to 8 bytes: a pair is one number, value above index
//!   split       . . v v | . . v v | ...     more: values in vector lanes of 64 bits, each number
//!               . . . i | . . . i | ...     above zeros, and indices in others
//! ```

mod joined;
mod shuffle;
mod split;
mod words;

use core::marker::PhantomData;
use core::mem::MaybeUninit;

use super::plain::Plain;
use super::{Kernel, Kernels};
use crate::element::Unaligned;
use crate::operator::Op;
use crate::pair::{Bits, Located, Order, Pair};
use joined::Joined;
use split::Split;
use words::Words;

/// The loops that every processor can run.
type Portable<V, I, const FLOAT: bool> = Plain<Pair<V, I>, Located<V, I, FLOAT>>;

type InJoined<V, I, const FLOAT: bool> = Chunks<V, I, Joined<V, I, FLOAT>, Located<V, I, FLOAT>>;

type InSplit<V, I, const FLOAT: bool> = Chunks<V, I, Split<V, I, FLOAT>, Located<V, I, FLOAT>>;

type InWords<const W: usize, V, I, const FLOAT: bool> = Words<W, V, I, Located<V, I, FLOAT>>;

/// Each pair as one number.
pub(super) const fn joined<V: Bits, I: Bits, const FLOAT: bool>() -> Kernels {
    Kernels::on_each::<Portable<V, I, FLOAT>, InJoined<V, I, FLOAT>, InJoined<V, I, FLOAT>>()
}

/// The same, with AVX-512 by words.
pub(super) const fn joined_or_words<const W: usize, V: Bits, I: Bits, const FLOAT: bool>() -> Kernels {
    Kernels::on_each::<Portable<V, I, FLOAT>, InJoined<V, I, FLOAT>, InWords<W, V, I, FLOAT>>()
}

/// Values apart from indices.
pub(super) const fn split<V: Bits, I: Bits, const FLOAT: bool>() -> Kernels {
    Kernels::on_each::<Portable<V, I, FLOAT>, InSplit<V, I, FLOAT>, InSplit<V, I, FLOAT>>()
}

/// The same, with AVX-512 by words.
pub(super) const fn split_or_words<const W: usize, V: Bits, I: Bits, const FLOAT: bool>() -> Kernels {
    Kernels::on_each::<Portable<V, I, FLOAT>, InSplit<V, I, FLOAT>, InWords<W, V, I, FLOAT>>()
}

/// The same, except that with AVX-512 the compiler vectorises the plain loops.
pub(super) const fn split_or_plain<V: Bits, I: Bits, const FLOAT: bool>() -> Kernels {
    Kernels::on_each::<Portable<V, I, FLOAT>, InSplit<V, I, FLOAT>, Portable<V, I, FLOAT>>()
}

/// Some neighbouring pairs, folded at once.
///
/// # Safety of the methods
///
/// The processor must have AVX2.
trait Chunk: Copy {
    /// How many.
    const PAIRS: usize;

    /// Bytes that are read of each operand: more than those of the pairs.
    const READ_BYTES: usize;

    /// The fold of a cell.
    fn new(order: &Order) -> Self;

    /// Computes `into = left op right` and writes exactly the bytes of the pairs; `into` may be one
    /// of the other two.
    ///
    /// # Safety
    ///
    /// See the trait. `READ_BYTES` are readable at `left` and `right`, those of the pairs writable
    /// at `into`.
    unsafe fn fold(self, into: *mut u8, left: *const u8, right: *const u8);
}

/// Loops over pairs of `V` and `I` by chunks `C`, and with operator `O` over what is left; needs
/// AVX2.
#[derive(Clone, Copy)]
struct Chunks<V, I, C, O> {
    chunk: C,
    op: O,
    pair: PhantomData<(V, I)>,
}

/// A pair as it lies in a vector.
type Stored<V, I> = Unaligned<Pair<V, I>>;

impl<V: Bits, I: Bits, C: Chunk, O: Op<Pair<V, I>>> Kernel for Chunks<V, I, C, O> {
    type Stored = Pair<V, I>;
    type Wide = Pair<V, I>;

    #[inline(always)]
    fn new(order: &Order) -> Self {
        Chunks { chunk: C::new(order), op: O::new(order), pair: PhantomData }
    }

    #[inline(always)]
    unsafe fn only(self, first: &mut [Stored<V, I>], source: &[Stored<V, I>]) {
        let (into, count) = (first.as_mut_ptr(), first.len().min(source.len()));
        // SAFETY: `count` pairs lie in both; AVX2 as the caller promises.
        unsafe { self.fold(into.cast(), into.cast(), source.as_ptr().cast(), count) };
    }

    #[inline(always)]
    unsafe fn open(self, sums: &mut [MaybeUninit<Pair<V, I>>], first: &[Stored<V, I>], source: &[Stored<V, I>]) {
        let count = sums.len().min(first.len()).min(source.len());
        // SAFETY: `count` pairs lie in each; AVX2 as the caller promises.
        unsafe { self.fold(sums.as_mut_ptr().cast(), first.as_ptr().cast(), source.as_ptr().cast(), count) };
    }

    #[inline(always)]
    unsafe fn step(self, sums: &mut [Pair<V, I>], source: &[Stored<V, I>]) {
        let (into, count) = (sums.as_mut_ptr(), sums.len().min(source.len()));
        // SAFETY: `count` pairs lie in both; AVX2 as the caller promises.
        unsafe { self.fold(into, into, source.as_ptr().cast(), count) };
    }

    #[inline(always)]
    unsafe fn close(self, first: &mut [Stored<V, I>], sums: &[Pair<V, I>], source: &[Stored<V, I>]) {
        let count = first.len().min(sums.len()).min(source.len());
        // SAFETY: `count` pairs lie in each; AVX2 as the caller promises.
        unsafe { self.fold(first.as_mut_ptr().cast(), sums.as_ptr(), source.as_ptr().cast(), count) };
    }
}

impl<V: Bits, I: Bits, C: Chunk, O: Op<Pair<V, I>>> Chunks<V, I, C, O> {
    /// Computes `into = left op right` for `count` pairs.
    ///
    /// # Safety
    ///
    /// So many pairs are readable at `left` and `right`, at any alignment, and writable at `into`,
    /// which may be one of the others. The processor has AVX2.
    #[inline(always)]
    unsafe fn fold(self, into: *mut Pair<V, I>, left: *const Pair<V, I>, right: *const Pair<V, I>, count: usize) {
        let mut done = 0;
        while (count - done) * size_of::<Pair<V, I>>() >= C::READ_BYTES {
            // SAFETY: what a chunk reads and writes lies before the end, as just seen.
            unsafe { self.chunk.fold(into.add(done).cast(), left.add(done).cast(), right.add(done).cast()) };
            done += C::PAIRS;
        }
        while done < count {
            // SAFETY: before the end; pairs are packed, so any address suits.
            unsafe { into.add(done).write(self.op.apply(left.add(done).read(), right.add(done).read())) };
            done += 1;
        }
    }
}
