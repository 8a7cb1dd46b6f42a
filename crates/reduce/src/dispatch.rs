//! The entry points: check the vectors, choose the kernel, fold.

use trib_wire::combination::Class;
use trib_wire::{Arithmetic, DataType, INT8_BLOCK_BYTES, ReduceOp};

use crate::blocks;
use crate::environment::Environment;
use crate::error::FoldError;
use crate::simd::Path;
use crate::table;

/// Folds `rest` into `first` from the left: `first = (((first op rest[0]) op rest[1]) ...)`.
///
/// All slices have one length in bytes, which is a whole number of little-endian elements, and may
/// lie at any alignment. The result depends on these arguments alone; the crate's documentation
/// says which bits it is. Nothing is allocated. Memory is passed once: every source is read once,
/// and `first` is read and written once.
///
/// # Errors
///
/// [`FoldError`] when the operator is not defined for the type, or a length does not fit. `first`
/// is untouched then.
pub fn fold_into(dtype: DataType, op: ReduceOp, first: &mut [u8], rest: &[&[u8]]) -> Result<(), FoldError> {
    // SAFETY: the best path of this processor is one that it has.
    unsafe { fold(Path::best(), dtype, op, first, rest) }
}

/// [`fold_into`] with the instructions of one path, for tests and measurements. All paths give the
/// same bits.
///
/// # Errors
///
/// As [`fold_into`].
///
/// # Panics
///
/// When this processor lacks the instructions of the path (see [`Path::available`]).
pub fn fold_into_on(
    path: Path,
    dtype: DataType,
    op: ReduceOp,
    first: &mut [u8],
    rest: &[&[u8]],
) -> Result<(), FoldError> {
    assert!(path.is_available(), "this processor has no {path}");
    // SAFETY: the line above has found that.
    unsafe { fold(path, dtype, op, first, rest) }
}

/// Folds what travels in some wire format, as [`fold_into`] does elements and [`crate::blocks`]
/// does blocks.
///
/// # Errors
///
/// As [`fold_into`].
#[inline]
pub fn fold_as(arithmetic: Arithmetic, first: &mut [u8], rest: &[&[u8]]) -> Result<(), FoldError> {
    match arithmetic {
        Arithmetic::Elements(dtype, op) => fold_into(dtype, op, first, rest),
        Arithmetic::Int8Blocks => fold_blocks_on(Path::best(), first, rest),
    }
}

/// The fold of blocks with the instructions of one path, for tests and measurements. All paths give
/// the same bits.
///
/// # Errors
///
/// [`FoldError`] when a length does not fit. `first` is untouched then.
///
/// # Panics
///
/// When this processor lacks the instructions of the path.
pub fn fold_blocks_on(path: Path, first: &mut [u8], rest: &[&[u8]]) -> Result<(), FoldError> {
    if !first.len().is_multiple_of(INT8_BLOCK_BYTES) {
        return Err(FoldError::PartialBlock { length: first.len() });
    }
    check_equal(first, rest)?;
    blocks::fold(path, first, rest);
    Ok(())
}

/// # Safety
///
/// The processor has the instructions of the path.
#[inline]
unsafe fn fold(path: Path, dtype: DataType, op: ReduceOp, first: &mut [u8], rest: &[&[u8]]) -> Result<(), FoldError> {
    let cell = table::cell(dtype, op).ok_or(FoldError::Unsupported { dtype, op })?;
    check_lengths(dtype, first, rest)?;
    // Only floats need the standard environment: pairs are compared as integers.
    let _environment = (dtype.class() == Class::Float).then(Environment::enter);
    // SAFETY: the caller's contract.
    unsafe { cell.kernels.on(path)(first, rest, &cell.order) };
    Ok(())
}

fn check_lengths(dtype: DataType, first: &[u8], rest: &[&[u8]]) -> Result<(), FoldError> {
    let expected = first.len();
    if !expected.is_multiple_of(dtype.size()) {
        return Err(FoldError::PartialElement { dtype, length: expected });
    }
    check_equal(first, rest)
}

fn check_equal(first: &[u8], rest: &[&[u8]]) -> Result<(), FoldError> {
    let expected = first.len();
    match rest.iter().position(|source| source.len() != expected) {
        Some(index) => Err(FoldError::LengthMismatch { index, expected, found: rest[index].len() }),
        None => Ok(()),
    }
}

/// Merges pieces into `first`: the bytes of each are or-ed in at its offset.
///
/// This is how the data of a broadcast or an allgather climbs the tree: disjoint pieces over zeros.
///
/// # Panics
///
/// When a piece reaches beyond the end of `first`; offsets come from the group's own layout, never
/// unchecked from a peer.
pub fn merge_into(first: &mut [u8], rest_at: &[(usize, &[u8])]) {
    for &(offset, piece) in rest_at {
        let room = first.len();
        let target = offset.checked_add(piece.len()).and_then(|end| first.get_mut(offset..end));
        let Some(target) = target else {
            panic!("a piece of {} bytes at offset {offset} does not fit {room} bytes", piece.len());
        };
        fold_into(DataType::U8, ReduceOp::BitOr, target, &[piece]).expect("equal lengths of bytes");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_name_the_mistake_and_leave_the_vector() {
        let mut first = [1_u8; 8];
        let fold =
            |first: &mut [u8], dtype, op, rest: &[&[u8]]| fold_into(dtype, op, first, rest).unwrap_err().to_string();
        assert_eq!(
            fold(&mut first, DataType::F32, ReduceOp::BitXor, &[&[1; 8]]),
            "operator bxor is not defined for float32: the bits of a floating-point number are no operands"
        );
        assert_eq!(
            fold(&mut first, DataType::I32, ReduceOp::Sum, &[&[1; 8], &[1; 4]]),
            "source 1 has 4 bytes, the first vector has 8"
        );
        assert_eq!(
            fold(&mut first[..7], DataType::BF16, ReduceOp::Sum, &[&[1; 7]]),
            "7 bytes are not a whole number of bfloat16 elements of 2 bytes"
        );
        assert_eq!(first, [1; 8]);
    }

    #[test]
    fn pieces_merge_at_their_offsets() {
        let mut first = vec![0_u8; 300];
        first[1] = 0b10;
        let long = [0xa5; 200];
        merge_into(&mut first, &[(0, &[1, 1]), (3, &[]), (300, &[]), (99, &long)]);
        assert_eq!(first[..3], [1, 0b11, 0]);
        assert!(first[3..99].iter().all(|&byte| byte == 0));
        assert_eq!(first[99..299], long);
        assert_eq!(first[299], 0);
    }

    #[test]
    #[should_panic(expected = "a piece of 2 bytes at offset 3 does not fit 4 bytes")]
    fn a_piece_beyond_the_end_is_a_broken_invariant() {
        merge_into(&mut [0; 4], &[(3, &[1, 1])]);
    }
}
