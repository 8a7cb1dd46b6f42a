//! Pairs that are folded by their words, many at a time. Where registers are as wide as those of
//! AVX-512, the compiler does this better than shuffles can.
//!
//! One or two pairs form a group, which is a few whole words. The compiler vectorises loops over
//! words at a fixed distance. Once word n of every group stands in row n, it vectorises the loops
//! that take the groups apart, too.
//!
//! ```text
//!   vector          v v i  v v i  v v i  v v i ...     words of 32 bits; here a group is one pair
//!
//!   rows            v v v v ...                        row n has word n of all groups of a chunk
//!                   v v v v ...
//!                   i i i i ...
//! ```
//!
//! Sums stay in rows until the end of a fold.

use core::marker::PhantomData;
use core::mem::MaybeUninit;

use crate::element::Unaligned;
use crate::operator::Op;
use crate::pair::{Bits, Order, Pair};
use crate::simd::Kernel;
use crate::simd::plain::Plain;

/// Loops over pairs of `V` and `I` in groups of `W` words, with operator `O`; needs no particular
/// instructions.
#[derive(Clone, Copy)]
pub(super) struct Words<const W: usize, V, I, O> {
    op: O,
    pair: PhantomData<(V, I)>,
}

/// A pair as it lies in a vector.
type Stored<V, I> = Unaligned<Pair<V, I>>;

/// Word n of each group of a chunk in row n.
type Rows<const W: usize> = [[u32; GROUPS]; W];

/// Groups as they lie in a vector.
type Chunk<const W: usize> = [[Unaligned<u32>; W]; GROUPS];

impl<const W: usize, V: Bits, I: Bits, O: Op<Pair<V, I>>> Kernel for Words<W, V, I, O> {
    type Stored = Pair<V, I>;
    type Wide = Pair<V, I>;

    const CHUNK: usize = size_of::<Chunk<W>>() / size_of::<Pair<V, I>>();

    #[inline(always)]
    fn new(order: &Order) -> Self {
        Words { op: O::new(order), pair: PhantomData }
    }

    #[inline(always)]
    unsafe fn only(self, first: &mut [Stored<V, I>], source: &[Stored<V, I>]) {
        let (firsts, first_tail) = Self::chunks_mut(first);
        let (sources, source_tail) = Self::chunks(source);
        for (first, source) in firsts.iter_mut().zip(sources) {
            store(first, &self.apply(&load(first), &load(source)));
        }
        // SAFETY: plain loops need nothing.
        unsafe { Plain::<Pair<V, I>, O>::with(self.op).only(first_tail, source_tail) };
    }

    #[inline(always)]
    unsafe fn open(self, sums: &mut [MaybeUninit<Pair<V, I>>], first: &[Stored<V, I>], source: &[Stored<V, I>]) {
        let (firsts, first_tail) = Self::chunks(first);
        let (sources, source_tail) = Self::chunks(source);
        let (all_rows, sum_tail) = sums.split_at_mut(firsts.len() * Self::CHUNK);
        // SAFETY: so many pairs have the size of as many rows, at any alignment; nothing need be
        // initialised.
        let all_rows = unsafe { all(all_rows.as_mut_ptr().cast::<MaybeUninit<Unaligned<Rows<W>>>>(), firsts.len()) };
        for ((rows, first), source) in all_rows.iter_mut().zip(firsts).zip(sources) {
            rows.write(Unaligned(self.apply(&load(first), &load(source))));
        }
        // SAFETY: plain loops need nothing.
        unsafe { Plain::<Pair<V, I>, O>::with(self.op).open(sum_tail, first_tail, source_tail) };
    }

    #[inline(always)]
    unsafe fn step(self, sums: &mut [Pair<V, I>], source: &[Stored<V, I>]) {
        let (sources, source_tail) = Self::chunks(source);
        let (all_rows, sum_tail) = sums.split_at_mut(sources.len() * Self::CHUNK);
        // SAFETY: as in `open`, which has written these rows.
        let all_rows = unsafe { all(all_rows.as_mut_ptr().cast::<Unaligned<Rows<W>>>(), sources.len()) };
        for (rows, source) in all_rows.iter_mut().zip(sources) {
            rows.0 = self.apply(&{ rows.0 }, &load(source));
        }
        // SAFETY: plain loops need nothing.
        unsafe { Plain::<Pair<V, I>, O>::with(self.op).step(sum_tail, source_tail) };
    }

    #[inline(always)]
    unsafe fn close(self, first: &mut [Stored<V, I>], sums: &[Pair<V, I>], source: &[Stored<V, I>]) {
        let (firsts, first_tail) = Self::chunks_mut(first);
        let (sources, source_tail) = Self::chunks(source);
        let (all_rows, sum_tail) = sums.split_at(sources.len() * Self::CHUNK);
        // SAFETY: as in `step`, only to be read.
        let all_rows =
            unsafe { core::slice::from_raw_parts(all_rows.as_ptr().cast::<Unaligned<Rows<W>>>(), sources.len()) };
        for ((first, rows), source) in firsts.iter_mut().zip(all_rows).zip(sources) {
            store(first, &self.apply(&{ rows.0 }, &load(source)));
        }
        // SAFETY: plain loops need nothing.
        unsafe { Plain::<Pair<V, I>, O>::with(self.op).close(first_tail, sum_tail, source_tail) };
    }
}

impl<const W: usize, V: Bits, I: Bits, O: Op<Pair<V, I>>> Words<W, V, I, O> {
    /// Pairs of a group.
    const GROUP: usize = {
        let (group, pair) = (W * size_of::<u32>(), size_of::<Pair<V, I>>());
        assert!(group.is_multiple_of(pair), "a group is whole pairs");
        group / pair
    };

    /// The operator on every two pairs that stand at the same position.
    #[inline(always)]
    fn apply(self, left: &Rows<W>, right: &Rows<W>) -> Rows<W> {
        let mut result = [[0; GROUPS]; W];
        for number in 0..GROUPS {
            let (left, right) = (column(left, number), column(right, number));
            let mut group = [0; W];
            for at in 0..Self::GROUP {
                Self::put(&mut group, at, self.op.apply(Self::take(&left, at), Self::take(&right, at)));
            }
            for (row, word) in result.iter_mut().zip(group) {
                row[number] = word;
            }
        }
        result
    }

    /// The pair at this position in a group.
    #[inline(always)]
    fn take(group: &[u32; W], at: usize) -> Pair<V, I> {
        let value = at * size_of::<Pair<V, I>>();
        let index = value + size_of::<V>();
        Pair {
            value: V::lowest(take(group, value, size_of::<V>())),
            index: I::lowest(take(group, index, size_of::<I>())),
        }
    }

    /// Writes the pair at this position in a group, where all bits were zero.
    #[inline(always)]
    fn put(group: &mut [u32; W], at: usize, pair: Pair<V, I>) {
        let value = at * size_of::<Pair<V, I>>();
        let index = value + size_of::<V>();
        put(group, value, size_of::<V>(), { pair.value }.into());
        put(group, index, size_of::<I>(), { pair.index }.into());
    }

    /// The whole chunks of a vector, and the pairs behind them.
    #[inline(always)]
    fn chunks(pairs: &[Stored<V, I>]) -> (&[Chunk<W>], &[Stored<V, I>]) {
        let count = pairs.len() / Self::CHUNK;
        let (whole, tail) = pairs.split_at(count * Self::CHUNK);
        // SAFETY: a chunk has the size of CHUNK pairs, at any alignment, and takes any bits.
        (unsafe { core::slice::from_raw_parts(whole.as_ptr().cast(), count) }, tail)
    }

    /// [`Self::chunks`], to be written.
    #[inline(always)]
    fn chunks_mut(pairs: &mut [Stored<V, I>]) -> (&mut [Chunk<W>], &mut [Stored<V, I>]) {
        let count = pairs.len() / Self::CHUNK;
        let (whole, tail) = pairs.split_at_mut(count * Self::CHUNK);
        // SAFETY: as in `chunks`, and the exclusive borrow passes on.
        (unsafe { all(whole.as_mut_ptr().cast(), count) }, tail)
    }
}

/// # Safety
///
/// As `core::slice::from_raw_parts_mut`; the lifetime is that of the slice from which the pointer
/// was made.
#[inline(always)]
unsafe fn all<'a, T>(first: *mut T, count: usize) -> &'a mut [T] {
    // SAFETY: the caller's promise.
    unsafe { core::slice::from_raw_parts_mut(first, count) }
}

#[inline(always)]
fn load<const W: usize>(chunk: &Chunk<W>) -> Rows<W> {
    let mut rows = [[0; GROUPS]; W];
    for (number, group) in chunk.iter().enumerate() {
        for (row, word) in rows.iter_mut().zip(group) {
            row[number] = word.0;
        }
    }
    rows
}

#[inline(always)]
fn store<const W: usize>(chunk: &mut Chunk<W>, rows: &Rows<W>) {
    for (number, group) in chunk.iter_mut().enumerate() {
        *group = column(rows, number).map(Unaligned);
    }
}

#[inline(always)]
fn column<const W: usize>(rows: &Rows<W>, number: usize) -> [u32; W] {
    let mut group = [0; W];
    for (word, row) in group.iter_mut().zip(rows) {
        *word = row[number];
    }
    group
}

/// The number of `size` bytes that begins at byte `at` of the words.
#[inline(always)]
fn take<const W: usize>(words: &[u32; W], at: usize, size: usize) -> u64 {
    let (word, shift) = (at / 4, at % 4 * 8);
    let mut bits = u64::from(words[word]) >> shift;
    if at % 4 + size > 4 {
        bits |= u64::from(words[word + 1]) << (32 - shift);
    }
    if at % 4 + size > 8 {
        bits |= u64::from(words[word + 2]) << (64 - shift);
    }
    bits
}

/// Writes a number of `size` bytes at byte `at` of the words, where all bits were zero.
#[inline(always)]
fn put<const W: usize>(words: &mut [u32; W], at: usize, size: usize, bits: u64) {
    let (word, shift) = (at / 4, at % 4 * 8);
    words[word] |= (bits << shift) as u32;
    if at % 4 + size > 4 {
        words[word + 1] |= (bits >> (32 - shift)) as u32;
    }
    if at % 4 + size > 8 {
        words[word + 2] |= (bits >> (64 - shift)) as u32;
    }
}

/// Groups in a chunk. There are enough of them that the compiler keeps the loops over them and
/// vectorises those.
const GROUPS: usize = 32;
