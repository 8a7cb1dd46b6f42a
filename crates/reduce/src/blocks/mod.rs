//! Blocks of elements that are quantised: 32 elements travel as 32 integers of 8 bits, their codes,
//! and one scale, a power of two.
//!
//! ```text
//!   byte    0       1      3 4                          36
//!          +-------+--------+--------------------------+
//!          | scale | seed   | code of elements 0 to 31 |     element = code x 2^(scale - 126)
//!          +-------+--------+--------------------------+
//! ```
//! The scale is the smallest of which 127 reach the largest magnitude of the block, from 2^-126 to
//! 2^121, coded 0 to 247. A block with an infinite element, with one that is no number, or with a
//! magnitude above 127 x 2^121 has any other code, and none of its elements is a number.
//!
//! An element that lies between two codes becomes either of them, the nearer one with the larger
//! probability, so that the error is 0 on average and less than a scale. The draw follows from the
//! block's seed and the position in it, and from nothing else. A member's seeds follow from its
//! rank, from the number of the sum and from the position of the block ([`Seed`]); that of a sum of
//! blocks from the heads of these, in their order. So one tree gives the same bits each time, and
//! no two roundings of an element are drawn alike.
//!
//! Powers of two lose up to a bit against any scale: the sum of eight members' normally distributed
//! elements over two levels is off by 1.8 % instead of 1.3 %. For that zeros, small integers and
//! whatever else has seven bits stay exact, in every fold in which their sum has seven bits, too.
//!
//! Modules: `block` (one block), `noise` (what is drawn), `feedback` (what rounding has taken
//! away).
//!
//! Invariants: whatever bytes come as blocks, nothing panics, and all paths give the same bits.

mod block;
mod feedback;
mod noise;

use trib_wire::{DataType, INT8_BLOCK, INT8_BLOCK_BYTES, Scalar};

use crate::Path;
use crate::element::{BF16, Element, F16, Unaligned, elements, elements_mut};
use crate::environment::Environment;
pub use feedback::{feed_back, feed_back_on};
pub use noise::Seed;

/// How many blocks so many elements have. The last one may be filled up with zeros.
pub const fn count(elements: u64) -> u64 {
    elements.div_ceil(INT8_BLOCK as u64)
}

/// Whether elements of this type can be quantised: floating-point numbers of 2 and of 4 bytes.
pub fn are_defined_on(dtype: DataType) -> bool {
    dtype.index().is_none() && matches!(dtype.value(), Scalar::F16 | Scalar::BF16 | Scalar::F32)
}

/// Quantises `vector`, of which the first block is the one with number `first` of what the seed is
/// for.
///
/// # Panics
///
/// If the type is none that [`are_defined_on`] names, or `blocks` has not the length of as many
/// blocks as [`count`] says.
pub fn quantise(dtype: DataType, vector: &[u8], seed: Seed, first: u64, blocks: &mut [u8]) {
    quantise_on(Path::best(), dtype, vector, seed, first, blocks);
}

/// [`quantise`] with the instructions of one path, for tests and measurements.
///
/// # Panics
///
/// As [`quantise`], and when this processor lacks the instructions of the path.
pub fn quantise_on(path: Path, dtype: DataType, vector: &[u8], seed: Seed, first: u64, blocks: &mut [u8]) {
    match checked(path, dtype, vector, blocks) {
        Scalar::F16 => run(path, Quantise { vector: elements::<F16>(vector), seed, first, blocks }),
        Scalar::BF16 => run(path, Quantise { vector: elements::<BF16>(vector), seed, first, blocks }),
        _ => run(path, Quantise { vector: elements::<f32>(vector), seed, first, blocks }),
    }
}

/// The elements of blocks. What is beyond the end of `vector` in the last block is left out.
/// float16 and bfloat16 are rounded to nearest even.
///
/// # Panics
///
/// As [`quantise`].
pub fn dequantise(dtype: DataType, blocks: &[u8], vector: &mut [u8]) {
    dequantise_on(Path::best(), dtype, blocks, vector);
}

/// [`dequantise`] with the instructions of one path, for tests and measurements.
///
/// # Panics
///
/// As [`quantise_on`].
pub fn dequantise_on(path: Path, dtype: DataType, blocks: &[u8], vector: &mut [u8]) {
    match checked(path, dtype, vector, blocks) {
        Scalar::F16 => run(path, Dequantise { blocks, vector: elements_mut::<F16>(vector) }),
        Scalar::BF16 => run(path, Dequantise { blocks, vector: elements_mut::<BF16>(vector) }),
        _ => run(path, Dequantise { blocks, vector: elements_mut::<f32>(vector) }),
    }
}

/// Sums blocks from the left and quantises the sum; without a source the first stay as they are.
/// The sum is computed in float32. All slices are equally long, and so many whole blocks.
pub(crate) fn fold(path: Path, first: &mut [u8], rest: &[&[u8]]) {
    assert!(path.is_available(), "this processor has no {path}");
    if !rest.is_empty() {
        run(path, Fold { first, rest });
    }
}

fn checked(path: Path, dtype: DataType, vector: &[u8], blocks: &[u8]) -> Scalar {
    assert!(path.is_available(), "this processor has no {path}");
    assert!(are_defined_on(dtype), "blocks of {dtype}");
    let count = count((vector.len() / dtype.size()) as u64) as usize;
    assert_eq!(blocks.len(), count * INT8_BLOCK_BYTES, "the bytes of {count} blocks");
    dtype.value()
}

/// Loops that are compiled once for each path.
trait Kernel {
    /// Marked so that it becomes part of the function that has the instructions.
    fn run(self);
}

struct Quantise<'a, E> {
    vector: &'a [Unaligned<E>],
    seed: Seed,
    first: u64,
    blocks: &'a mut [u8],
}

impl<E: Element<Wide = f32>> Kernel for Quantise<'_, E> {
    #[inline(always)]
    fn run(self) {
        let (blocks, _) = self.blocks.as_chunks_mut();
        let own = self.vector.chunks(INT8_BLOCK);
        for (number, (elements, block)) in (self.first..).zip(own.zip(blocks)) {
            let mut values = [0.0; INT8_BLOCK];
            match <&[_; INT8_BLOCK]>::try_from(elements) {
                Ok(elements) => (0..INT8_BLOCK).for_each(|at| values[at] = elements[at].0.widen()),
                Err(_) => values.iter_mut().zip(elements).for_each(|(value, element)| *value = element.0.widen()),
            }
            block::encode(&values, self.seed.of_block(number), block);
        }
    }
}

struct Dequantise<'a, E> {
    blocks: &'a [u8],
    vector: &'a mut [Unaligned<E>],
}

impl<E: Element<Wide = f32>> Kernel for Dequantise<'_, E> {
    #[inline(always)]
    fn run(self) {
        let (blocks, _) = self.blocks.as_chunks();
        for (block, elements) in blocks.iter().zip(self.vector.chunks_mut(INT8_BLOCK)) {
            let values = block::decode(block);
            match <&mut [_; INT8_BLOCK]>::try_from(&mut *elements) {
                Ok(elements) => (0..INT8_BLOCK).for_each(|at| elements[at].0 = E::narrow(values[at])),
                Err(_) => elements.iter_mut().zip(values).for_each(|(element, value)| element.0 = E::narrow(value)),
            }
        }
    }
}

struct Fold<'a> {
    first: &'a mut [u8],
    rest: &'a [&'a [u8]],
}

impl Kernel for Fold<'_> {
    #[inline(always)]
    fn run(self) {
        let (blocks, _) = self.first.as_chunks_mut();
        for (number, block) in blocks.iter_mut().enumerate() {
            let mut sums = block::decode(block);
            let mut seeds = noise::Stir::new(block::head(block));
            for source in self.rest {
                let own = &source.as_chunks().0[number];
                let values = block::decode(own);
                (0..INT8_BLOCK).for_each(|at| sums[at] += values[at]);
                seeds.add(block::head(own));
            }
            block::encode(&sums, seeds.seed(), block);
        }
    }
}

/// Runs a kernel with the instructions of the path, which the processor has, and in the standard
/// floating-point environment.
fn run(path: Path, kernel: impl Kernel) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,f16c,bmi1,bmi2,lzcnt")]
        fn avx2(kernel: impl Kernel) {
            kernel.run();
        }
        #[target_feature(enable = "avx2,f16c,bmi1,bmi2,lzcnt,avx512f,avx512bw,avx512dq,avx512vl")]
        fn avx512(kernel: impl Kernel) {
            kernel.run();
        }
        let _environment = Environment::enter();
        match path {
            Path::Portable => kernel.run(),
            // SAFETY: the callers have checked that the processor has the path.
            Path::Avx2 => unsafe { avx2(kernel) },
            // SAFETY: as above.
            Path::Avx512 => unsafe { avx512(kernel) },
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        // There is one path.
        let _ = path;
        let _environment = Environment::enter();
        kernel.run();
    }
}
