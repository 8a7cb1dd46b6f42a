//! Which sums a group takes.

use trib_reduce::blocks;
use trib_sums::Kind;
use trib_wire::{Collective, DataType, INT8_BLOCK, ReduceOp, Signature};

use crate::error::Error;

/// How a group takes sums of floating-point numbers, if not as they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SumKind {
    /// The bits depend on no order; each element is rounded once before it is added.
    Fixed,
    /// The bits depend on no order; the sum is that of the numbers, rounded once.
    Exact,
    /// Elements travel as integers of 8 bits with a scale for each block of 32, in 0.28 of the
    /// bytes of float32. A sum is rounded at every node.
    Int8,
}

impl SumKind {
    /// All kinds.
    pub const ALL: [SumKind; 3] = [SumKind::Fixed, SumKind::Exact, SumKind::Int8];

    /// What it is called in settings.
    pub const fn name(self) -> &'static str {
        match self {
            SumKind::Fixed => Kind::Fixed.name(),
            SumKind::Exact => Kind::Exact.name(),
            SumKind::Int8 => "int8",
        }
    }

    /// The kind of this name.
    pub fn from_name(name: &str) -> Option<SumKind> {
        SumKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The sum that depends on no order which it is, if it is one.
    pub(crate) const fn order_free(self) -> Option<Kind> {
        match self {
            SumKind::Fixed => Some(Kind::Fixed),
            SumKind::Exact => Some(Kind::Exact),
            SumKind::Int8 => None,
        }
    }

    /// Whether an operation of a group of `size` is done so. All that depend on order are sums and
    /// products of floating-point numbers, and a product is refused. What is quantised are sums for
    /// which blocks take fewer bytes, and of types whose users do not ask for more digits.
    pub(crate) fn concerns(self, signature: &Signature, size: u32) -> bool {
        let Signature { collective, dtype, op, count, .. } = *signature;
        let reduces = matches!(collective, Collective::Allreduce | Collective::Reduce | Collective::ReduceScatter);
        let is_float = dtype.index().is_none() && dtype.value().is_float();
        reduces
            && is_float
            && match self {
                SumKind::Fixed | SumKind::Exact => matches!(op, ReduceOp::Sum | ReduceOp::Prod),
                SumKind::Int8 => {
                    let pays = count == 0 || count >= INT8_BLOCK as u64;
                    op == ReduceOp::Sum && blocks::are_defined_on(dtype) && pays && size > 1
                }
            }
    }
}

/// Error feedback for vectors that are summed over and over in [`SumKind::Int8`]: multiplies
/// `vector` by `factor` (1, or for an average 1 by the number of members), adds the residual,
/// rounds each element to the nearest that travels as it is, and leaves in `residual` what that has
/// taken away, as far as the type has digits for it. Both hold elements of this type; a residual
/// begins as zeros. A block of 32 elements with one that is not finite, or above 127 x 2^121,
/// becomes no numbers, and leaves none.
///
/// # Errors
/// `Unsupported` for types that are not quantised, and `Invalid` if the two have not one length.
pub fn feed_back(dtype: DataType, factor: f32, vector: &mut [u8], residual: &mut [u8]) -> Result<(), Error> {
    if !blocks::are_defined_on(dtype) {
        return Err(Error::Unsupported(format!("int8 sums are of float32, float16 and bfloat16, not of {dtype}")));
    }
    if vector.len() != residual.len() || !vector.len().is_multiple_of(dtype.size()) {
        let (own, other) = (vector.len(), residual.len());
        return Err(Error::Invalid(format!("a vector of {own} bytes with a residual of {other}")));
    }
    blocks::feed_back(dtype, factor, vector, residual);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{allreduce, bcast, reduce_scatter};

    #[test]
    fn only_sums_of_floats_are_taken_otherwise() {
        use DataType as T;
        let sum = |count, dtype| allreduce(count, dtype, ReduceOp::Sum);
        let concerned = |signature: Signature| SumKind::ALL.map(|kind| kind.concerns(&signature, 2));
        assert_eq!(concerned(sum(32, T::F32)), [true; 3]);
        assert_eq!(concerned(reduce_scatter(32, T::BF16, ReduceOp::Sum)), [true; 3]);
        assert_eq!(concerned(sum(31, T::F32)), [true, true, false], "it would take more bytes");
        assert_eq!(concerned(sum(320, T::F64)), [true, true, false]);
        assert_eq!(concerned(allreduce(320, T::F32, ReduceOp::Prod)), [true, true, false]);
        for none in [sum(320, T::I32), allreduce(320, T::F32, ReduceOp::Max), bcast(320, 0)] {
            assert_eq!(concerned(none), [false; 3]);
        }
        assert!(!SumKind::Int8.concerns(&sum(320, T::F32), 1), "a member alone has nobody to send to");
    }

    #[test]
    fn error_feedback_is_for_vectors_that_are_quantised() {
        let mut vector = 1.01f32.to_le_bytes();
        let mut residual = 0.5f32.to_le_bytes();
        feed_back(DataType::F32, 2.0, &mut vector, &mut residual).unwrap();
        let [rounded, rest] = [vector, residual].map(f32::from_le_bytes);
        assert!(rounded + rest == 2.52 && rest != 0.0, "{rounded} and {rest}");
        assert!(matches!(feed_back(DataType::F64, 1.0, &mut [0; 8], &mut [0; 8]), Err(Error::Unsupported(_))));
        assert!(matches!(feed_back(DataType::F32, 1.0, &mut [0; 8], &mut [0; 4]), Err(Error::Invalid(_))));
    }

    #[test]
    fn names_lead_back_to_kinds() {
        assert!(SumKind::ALL.into_iter().all(|kind| SumKind::from_name(kind.name()) == Some(kind)));
        assert_eq!(SumKind::from_name("plain"), None);
    }
}
