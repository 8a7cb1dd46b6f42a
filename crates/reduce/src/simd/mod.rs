//! Kernels: one source text, compiled once per instruction set.
//!
//! The compiler vectorises the plain loops of `plain` inside functions that enable more
//! instructions. Other code is used only where measurements showed that it pays: `f16c`, which
//! converts float16, and `pairs`, because the sizes of pairs keep the compiler from vectorising.
//!
//! ```text
//!             block of 4 KiB            block            block
//!   first    [############]-open    [............]    [............]
//!   rest[0]  [############]-open -> acc (L1)
//!   rest[1]  [############]-step -> acc
//!   rest[2]  [############]-close-> first, rounded
//! ```

#[cfg(target_arch = "x86_64")]
pub(crate) mod f16c;
#[cfg(target_arch = "x86_64")]
mod pairs;
mod path;
pub(crate) mod plain;

use core::mem::MaybeUninit;
use core::ptr;

use crate::element::{Element, Unaligned, elements, elements_mut};
use crate::joint::{Joint, Larger};
use crate::operator::Op;
#[cfg(not(target_arch = "x86_64"))]
use crate::pair::Located;
use crate::pair::{Bits, Order, Pair};
pub use path::Path;
use plain::Plain;

/// The loops of one element type and operator; the slices of one call have equal lengths.
///
/// # Safety of the methods
///
/// The processor must have the instructions that the implementing type names.
pub(crate) trait Kernel: Copy {
    /// What lies in the vectors.
    type Stored: Element<Wide = Self::Wide>;
    /// What a fold accumulates in.
    type Wide: Copy;

    /// How many elements are best computed together; a block is a whole multiple of it.
    const CHUNK: usize = 1;

    /// The loops of a cell.
    fn new(order: &Order) -> Self;

    /// A whole fold of two: `first = first op source`, rounded.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn only(self, first: &mut [Unaligned<Self::Stored>], source: &[Unaligned<Self::Stored>]);

    /// The start of a longer fold: `sums = first op source`, every element written.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn open(
        self,
        sums: &mut [MaybeUninit<Self::Wide>],
        first: &[Unaligned<Self::Stored>],
        source: &[Unaligned<Self::Stored>],
    );

    /// The middle: `sums = sums op source`.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn step(self, sums: &mut [Self::Wide], source: &[Unaligned<Self::Stored>]);

    /// The end: `first = sums op source`, rounded.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn close(
        self,
        first: &mut [Unaligned<Self::Stored>],
        sums: &[Self::Wide],
        source: &[Unaligned<Self::Stored>],
    );
}

/// A fold of byte vectors of one length; the processor must have the instructions of its path.
pub(crate) type Fold = unsafe fn(first: &mut [u8], rest: &[&[u8]], order: &Order);

/// The compiled folds of one cell of the table, or of several cells that differ in their order.
#[derive(Clone, Copy)]
pub(crate) struct Kernels {
    portable: Fold,
    #[cfg(target_arch = "x86_64")]
    avx2: Fold,
    #[cfg(target_arch = "x86_64")]
    avx512: Fold,
}

impl Kernels {
    /// The folds of numbers.
    pub(crate) const fn of<E: Element, O: Op<E::Wide>>() -> Kernels {
        Kernels::on_each::<Plain<E, O>, E::Avx<O>, E::Avx<O>>()
    }

    /// The folds of pairs of numbers with these bits; the value is a float or not. For each size
    /// these are the kernels that were measured to be the fastest.
    pub(crate) const fn of_pairs<V: Bits, I: Bits, const FLOAT: bool>() -> Kernels {
        match (FLOAT, size_of::<V>(), size_of::<I>()) {
            (false, 1, 1) => return Kernels::of::<Joint<u16>, Larger<u16>>(),
            (false, 2, 2) => return Kernels::of::<Joint<u32>, Larger<u32>>(),
            (false, 4, 4) => return Kernels::of::<Joint<u64>, Larger<u64>>(),
            _ => {}
        }
        #[cfg(target_arch = "x86_64")]
        match size_of::<Pair<V, I>>() {
            3..=5 => pairs::joined::<V, I, FLOAT>(),
            6 => pairs::joined_or_words::<3, V, I, FLOAT>(),
            8 => pairs::joined_or_words::<2, V, I, FLOAT>(),
            9 => pairs::split::<V, I, FLOAT>(),
            10 => pairs::split_or_words::<5, V, I, FLOAT>(),
            12 => pairs::split_or_words::<3, V, I, FLOAT>(),
            _ => pairs::split_or_plain::<V, I, FLOAT>(),
        }
        #[cfg(not(target_arch = "x86_64"))]
        Kernels::of::<Pair<V, I>, Located<V, I, FLOAT>>()
    }

    /// One kernel for what every processor has, one for AVX2, one for AVX-512.
    const fn on_each<Portable: Kernel, Avx2: Kernel, Avx512: Kernel>() -> Kernels {
        Kernels {
            portable: fold_portable::<Portable>,
            #[cfg(target_arch = "x86_64")]
            avx2: fold_avx2::<Avx2>,
            #[cfg(target_arch = "x86_64")]
            avx512: fold_avx512::<Avx512>,
        }
    }

    pub(crate) fn on(&self, path: Path) -> Fold {
        match path {
            #[cfg(target_arch = "x86_64")]
            Path::Avx2 => self.avx2,
            #[cfg(target_arch = "x86_64")]
            Path::Avx512 => self.avx512,
            _ => self.portable,
        }
    }
}

fn fold_portable<K: Kernel>(first: &mut [u8], rest: &[&[u8]], order: &Order) {
    // SAFETY: instantiated with plain kernels only, which name no instructions.
    unsafe { fold(K::new(order), first, rest) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c,bmi1,bmi2,lzcnt")]
fn fold_avx2<K: Kernel>(first: &mut [u8], rest: &[&[u8]], order: &Order) {
    // SAFETY: kernels of this path name AVX2 and F16C at most, which this function enables.
    unsafe { fold(K::new(order), first, rest) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c,bmi1,bmi2,lzcnt,avx512f,avx512bw,avx512dq,avx512vl")]
fn fold_avx512<K: Kernel>(first: &mut [u8], rest: &[&[u8]], order: &Order) {
    // SAFETY: as in `fold_avx2`, whose instructions this function enables too.
    unsafe { fold(K::new(order), first, rest) }
}

/// Folds block by block, so that the accumulator stays in the first cache while the sources stream
/// by.
///
/// # Safety
///
/// See [`Kernel`].
#[inline(always)]
unsafe fn fold<K: Kernel>(kernel: K, first: &mut [u8], rest: &[&[u8]]) {
    let (head, middle, last) = match rest {
        [] => return,
        // SAFETY: passed on to the caller.
        [source] => return unsafe { kernel.only(elements_mut(first), elements(source)) },
        [head, middle @ .., last] => (head, middle, last),
    };
    let mut scratch = Scratch::new();
    let sums = scratch.elements::<K::Wide>();
    let room = sums.len();
    let sums = &mut sums[..room - room % K::CHUNK];
    let block_bytes = sums.len() * size_of::<K::Stored>();
    for (index, first) in first.chunks_mut(block_bytes).enumerate() {
        let start = index * block_bytes;
        let block = start..start + first.len();
        let first = elements_mut::<K::Stored>(first);
        let sums = &mut sums[..first.len()];
        // SAFETY: instructions as the caller promises; `open` initialises every element of the
        // equally long `sums` before they are read.
        unsafe {
            kernel.open(sums, first, elements(&head[block.clone()]));
            let sums = &mut *(ptr::from_mut(sums) as *mut [K::Wide]);
            for source in middle {
                kernel.step(sums, elements(&source[block.clone()]));
            }
            kernel.close(first, sums, elements(&last[block]));
        }
    }
}

/// Room for one block of accumulators. It is not initialised, because a small fold must not pay for
/// a large one.
#[repr(align(64))]
struct Scratch([MaybeUninit<u8>; SCRATCH_BYTES]);

impl Scratch {
    #[inline(always)]
    fn new() -> Scratch {
        Scratch([MaybeUninit::uninit(); SCRATCH_BYTES])
    }

    #[inline(always)]
    fn elements<W: Copy>(&mut self) -> &mut [MaybeUninit<W>] {
        const { assert!(align_of::<W>() <= 64) };
        let count = SCRATCH_BYTES / size_of::<W>();
        // SAFETY: aligned for W, `count` elements end within the array, which needs no
        // initialisation.
        unsafe { core::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), count) }
    }
}

const SCRATCH_BYTES: usize = 4096;
