//! How sums of floating-point numbers are taken, and what that leaves out.

use std::ffi::c_int;

use trib_client::{DataType, Error, Params, ReduceOp, SumKind};

use super::numbers::{data_type, operator};
use crate::log;

/// How a communicator takes them: as `TRIB_SUMS` says, but never quantised. NCCL's programs sum
/// losses and counts with the same calls as gradients, and nobody asked them which may lose digits.
pub(super) fn kind() -> Result<Option<SumKind>, Error> {
    Ok(Params::sums()?.filter(|kind| !is_quantised(*kind)))
}

/// Says so, if it is not as `TRIB_SUMS` says.
pub(super) fn tell() -> Result<(), Error> {
    if Params::sums()?.is_some_and(is_quantised) {
        log::warn(
            "TRIB_SUMS=int8 is not for CollNet, whose programs sum counts and losses with the same calls as gradients: \
             sums are plain; set it to plain, fixed or exact",
        );
    }
    Ok(())
}

/// Whether the tree can do this.
pub fn is_supported(dtype: c_int, op: c_int) -> Result<bool, Error> {
    Ok(is_supported_with(kind()?, dtype, op))
}

fn is_supported_with(kind: Option<SumKind>, dtype: c_int, op: c_int) -> bool {
    let Some((dtype, op)) = data_type(dtype).zip(operator(op)) else { return false };
    // A product depends on the order of its factors, which a group with such sums refuses.
    kind.is_none() || op != ReduceOp::Prod || !is_float(dtype)
}

fn is_quantised(kind: SumKind) -> bool {
    kind == SumKind::Int8
}

fn is_float(dtype: DataType) -> bool {
    dtype.value().is_float()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_tree_does_is_supported() {
        let cases =
            [(0, 0, true), (9, 3, true), (7, 1, true), (10, 0, false), (7, 4, false), (-1, 0, false), (7, -1, false)];
        for (dtype, op, fine) in cases {
            assert_eq!(is_supported_with(None, dtype, op), fine, "type {dtype}, operator {op}");
        }
    }

    #[test]
    fn where_sums_depend_on_no_order_products_of_floats_are_not_supported() {
        for kind in [SumKind::Fixed, SumKind::Exact].map(Some) {
            // Types from 6 on are floating-point numbers, and operator 1 is the product.
            for (dtype, op) in (0..10).flat_map(|dtype| (0..4).map(move |op| (dtype, op))) {
                assert_eq!(is_supported_with(kind, dtype, op), dtype < 6 || op != 1, "type {dtype}, operator {op}");
            }
        }
    }
}
