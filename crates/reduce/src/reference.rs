//! The oracle: the same folds, computed element by element in the simplest way.
//!
//! It shares no arithmetic with the kernels: integers are computed in 128 bits and cut, conversions
//! of half precision come from crate `half`. Tests compare every kernel with it, bit by bit.

use half::{bf16, f16};
use trib_wire::datatype::ELEMENT_MAX;
use trib_wire::{DataType, ReduceOp, Scalar};

/// The fold of `first` with `rest`, as [`fold_into`](crate::fold_into) defines it; `None` where the
/// operator is not defined for the type.
///
/// # Panics
///
/// When the lengths differ or are no whole number of elements.
pub fn fold(dtype: DataType, op: ReduceOp, first: &[u8], rest: &[&[u8]]) -> Option<Vec<u8>> {
    let size = dtype.size();
    assert_eq!(first.len() % size, 0, "a whole number of elements");
    assert!(rest.iter().all(|source| source.len() == first.len()), "equal lengths");
    let mut result = Vec::with_capacity(first.len());
    for start in (0..first.len()).step_by(size) {
        let vectors = core::iter::once(first).chain(rest.iter().copied());
        let operands: Vec<_> = vectors.map(|vector| &vector[start..start + size]).collect();
        result.extend(element(dtype, op, &operands)?);
    }
    // If the vectors have no elements, nothing above has asked whether there is such an operator.
    element(dtype, op, &[&[0; ELEMENT_MAX][..size], &[0; ELEMENT_MAX][..size]]).map(|_| result)
}

/// One element of a fold: the bytes of its operands to the bytes of the result.
fn element(dtype: DataType, op: ReduceOp, operands: &[&[u8]]) -> Option<Vec<u8>> {
    let (first, rest) = operands.split_first()?;
    if rest.is_empty() {
        return Some(first.to_vec());
    }
    match dtype.index() {
        Some(index) => pair(dtype.value(), index, op, operands),
        None => number(dtype.value(), op, operands),
    }
}

/// Follows the definition: the best of all values, and then the smallest index of those that equal
/// it.
fn pair(value: Scalar, index: Scalar, op: ReduceOp, operands: &[&[u8]]) -> Option<Vec<u8>> {
    let op = match op {
        ReduceOp::MaxLoc => ReduceOp::Max,
        ReduceOp::MinLoc => ReduceOp::Min,
        _ => return None,
    };
    let (values, indices): (Vec<&[u8]>, Vec<&[u8]>) = operands.iter().map(|pair| pair.split_at(value.size())).unzip();
    let best = number(value, op, &values)?;
    let same = |other: &[u8]| match float(value, &best).zip(float(value, other)) {
        Some((best, other)) => best == other || best.is_nan() && other.is_nan(),
        None => other == best,
    };
    let candidates = values.iter().zip(&indices).filter(|(other, _)| same(other));
    let signed = matches!(index, Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64);
    let smallest = candidates.map(|(_, index)| extend(index, signed)).min()?;
    Some([&best[..], &smallest.to_le_bytes()[..index.size()]].concat())
}

/// The exact value of a floating-point number; `None` for other types.
fn float(scalar: Scalar, operand: &[u8]) -> Option<f64> {
    match scalar {
        Scalar::F64 => Some(f64::from_le_bytes(bytes(operand))),
        Scalar::F32 => Some(f32::from_le_bytes(bytes(operand)).into()),
        Scalar::F16 => Some(f16::from_le_bytes(bytes(operand)).to_f64()),
        Scalar::BF16 => Some(bf16::from_le_bytes(bytes(operand)).to_f64()),
        _ => None,
    }
}

fn number(dtype: Scalar, op: ReduceOp, operands: &[&[u8]]) -> Option<Vec<u8>> {
    let (first, rest) = operands.split_first()?;
    match dtype {
        Scalar::F64 => {
            let mut sum = f64::from_le_bytes(bytes(first));
            for operand in rest {
                sum = float64(op, sum, f64::from_le_bytes(bytes(operand)))?;
            }
            let bits = if sum.is_nan() { 0x7ff8 << 48 } else { sum.to_bits() };
            Some(bits.to_le_bytes().to_vec())
        }
        Scalar::F32 => {
            let sum = float32(op, operands, |operand| f32::from_le_bytes(bytes(operand)))?;
            let bits = if sum.is_nan() { 0x7fc0 << 16 } else { sum.to_bits() };
            Some(bits.to_le_bytes().to_vec())
        }
        Scalar::F16 => {
            let sum = float32(op, operands, |operand| f16::from_le_bytes(bytes(operand)).to_f32())?;
            let bits = if sum.is_nan() { 0x7e00 } else { f16::from_f32(sum).to_bits() };
            Some(bits.to_le_bytes().to_vec())
        }
        Scalar::BF16 => {
            let sum = float32(op, operands, |operand| bf16::from_le_bytes(bytes(operand)).to_f32())?;
            let bits = if sum.is_nan() { 0x7fc0 } else { bf16::from_f32(sum).to_bits() };
            Some(bits.to_le_bytes().to_vec())
        }
        Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => integer(op, operands, false),
        Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => integer(op, operands, true),
    }
}

fn float32(op: ReduceOp, operands: &[&[u8]], value: impl Fn(&[u8]) -> f32) -> Option<f32> {
    let mut sum = value(operands[0]);
    for operand in &operands[1..] {
        let operand = value(operand);
        sum = match op {
            ReduceOp::Sum => sum + operand,
            ReduceOp::Prod => sum * operand,
            // Every binary32 is a binary64 too: the order of the latter decides, and the way back
            // is exact.
            ReduceOp::Max | ReduceOp::Min => float64(op, sum.into(), operand.into())? as f32,
            _ => return None,
        };
    }
    Some(sum)
}

fn float64(op: ReduceOp, left: f64, right: f64) -> Option<f64> {
    match op {
        ReduceOp::Sum => Some(left + right),
        ReduceOp::Prod => Some(left * right),
        ReduceOp::Max | ReduceOp::Min if left.is_nan() || right.is_nan() => Some(f64::NAN),
        // The total order of IEEE 754 puts -0 below +0; NaN was dealt with above.
        ReduceOp::Max if left.total_cmp(&right).is_ge() => Some(left),
        ReduceOp::Min if left.total_cmp(&right).is_le() => Some(left),
        ReduceOp::Max | ReduceOp::Min => Some(right),
        _ => None,
    }
}

fn integer(op: ReduceOp, operands: &[&[u8]], signed: bool) -> Option<Vec<u8>> {
    let size = operands[0].len();
    let mut sum = extend(operands[0], signed);
    for operand in &operands[1..] {
        let operand = extend(operand, signed);
        let exact = match op {
            ReduceOp::Max => sum.max(operand),
            ReduceOp::Min => sum.min(operand),
            ReduceOp::Sum => sum + operand,
            ReduceOp::Prod => sum.wrapping_mul(operand),
            ReduceOp::LogicalAnd => i128::from(sum != 0 && operand != 0),
            ReduceOp::LogicalOr => i128::from(sum != 0 || operand != 0),
            ReduceOp::LogicalXor => i128::from((sum == 0) != (operand == 0)),
            ReduceOp::BitAnd => sum & operand,
            ReduceOp::BitOr => sum | operand,
            ReduceOp::BitXor => sum ^ operand,
            ReduceOp::MaxLoc | ReduceOp::MinLoc => return None,
        };
        sum = extend(&exact.to_le_bytes()[..size], signed);
    }
    Some(sum.to_le_bytes()[..size].to_vec())
}

/// The value of a short little-endian integer.
fn extend(bytes: &[u8], signed: bool) -> i128 {
    let negative = signed && bytes.last().is_some_and(|&top| top >= 0x80);
    let mut wide = [if negative { 0xff } else { 0 }; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    i128::from_le_bytes(wide)
}

fn bytes<const N: usize>(operand: &[u8]) -> [u8; N] {
    operand.try_into().expect("operands are cut to the size of the type")
}
