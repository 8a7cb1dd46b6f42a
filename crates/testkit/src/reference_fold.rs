//! The arithmetic of one node, written down type by type.

use half::{bf16, f16};
use trib_wire::{DataType, ReduceOp, Scalar};

/// Folds equally long vectors of little-endian elements from the left; a single vector is passed on
/// as it is.
///
/// Integers wrap. A logical result is 0 or 1. Half precision is computed in single precision and
/// rounded at the end. `max` and `min` let NaN win and put -0 below +0. For pairs they decide about
/// the value, and of equal values the smallest index wins. A result that is not a number has the
/// one quiet, positive pattern without payload.
///
/// # Panics
///
/// When there are no operands, when lengths differ or cut an element, or when the operator is not
/// defined.
pub fn fold(dtype: DataType, op: ReduceOp, operands: &[&[u8]]) -> Vec<u8> {
    let lengths = operands.iter().map(|operand| operand.len());
    let length = operands.first().expect("a node has children").len();
    assert!(lengths.into_iter().all(|other| other == length), "operands of one length");
    assert_eq!(length % dtype.size(), 0, "whole elements of {dtype}");
    if let [only] = operands {
        return only.to_vec();
    }
    match dtype.index() {
        Some(index) => pairs(dtype.value(), index, op, operands),
        None => numbers(dtype.value(), op, operands),
    }
}

/// The fold of pairs: the fold of the values, and for each the smallest index among those that gave
/// it.
fn pairs(value: Scalar, index: Scalar, op: ReduceOp, operands: &[&[u8]]) -> Vec<u8> {
    let op = match op {
        ReduceOp::MaxLoc => ReduceOp::Max,
        ReduceOp::MinLoc => ReduceOp::Min,
        _ => panic!("{op} is not defined for pairs"),
    };
    let (cut, stride) = (value.size(), value.size() + index.size());
    let mut result = Vec::with_capacity(operands[0].len());
    for at in (0..operands[0].len()).step_by(stride) {
        let values: Vec<&[u8]> = operands.iter().map(|operand| &operand[at..at + cut]).collect();
        let best = numbers(value, op, &values);
        let indices = operands.iter().map(|operand| &operand[at + cut..at + stride]);
        let winners = values.iter().zip(indices).filter(|(other, _)| equal(value, &best, other));
        let smallest = winners.map(|(_, bytes)| bytes).min_by_key(|bytes| in_order(index, bytes));
        result.extend(&best);
        result.extend(smallest.expect("somebody gave the best value"));
    }
    result
}

/// Whether two values compare equal, or neither is a number.
fn equal(value: Scalar, left: &[u8], right: &[u8]) -> bool {
    let number = |bytes: &[u8]| match *bytes {
        [a, b] if value == Scalar::F16 => f16::from_le_bytes([a, b]).to_f64(),
        [a, b] => bf16::from_le_bytes([a, b]).to_f64(),
        [a, b, c, d] => f32::from_le_bytes([a, b, c, d]).into(),
        _ => f64::from_le_bytes(bytes.try_into().expect("8 bytes")),
    };
    if !value.is_float() {
        return left == right;
    }
    let (left, right) = (number(left), number(right));
    left == right || left.is_nan() && right.is_nan()
}

/// Bytes that compare as the integer does: the most significant byte comes first, and the sign bit
/// is flipped.
fn in_order(index: Scalar, bytes: &[u8]) -> Vec<u8> {
    let mut bytes: Vec<u8> = bytes.iter().rev().copied().collect();
    if matches!(index, Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64) {
        bytes[0] ^= 0x80;
    }
    bytes
}

fn numbers(dtype: Scalar, op: ReduceOp, operands: &[&[u8]]) -> Vec<u8> {
    match dtype {
        Scalar::U8 => run(operands, u8::from_le_bytes, unsigned8(op), u8::to_le_bytes),
        Scalar::I8 => run(operands, i8::from_le_bytes, signed8(op), i8::to_le_bytes),
        Scalar::U16 => run(operands, u16::from_le_bytes, unsigned16(op), u16::to_le_bytes),
        Scalar::I16 => run(operands, i16::from_le_bytes, signed16(op), i16::to_le_bytes),
        Scalar::U32 => run(operands, u32::from_le_bytes, unsigned32(op), u32::to_le_bytes),
        Scalar::I32 => run(operands, i32::from_le_bytes, signed32(op), i32::to_le_bytes),
        Scalar::U64 => run(operands, u64::from_le_bytes, unsigned64(op), u64::to_le_bytes),
        Scalar::I64 => run(operands, i64::from_le_bytes, signed64(op), i64::to_le_bytes),
        Scalar::F64 => run(operands, f64::from_le_bytes, double(op), |sum: f64| {
            if sum.is_nan() { 0x7ff8_0000_0000_0000 } else { sum.to_bits() }.to_le_bytes()
        }),
        Scalar::F32 => run(operands, f32::from_le_bytes, single(op), |sum: f32| {
            if sum.is_nan() { 0x7fc0_0000 } else { sum.to_bits() }.to_le_bytes()
        }),
        Scalar::F16 => run(
            operands,
            |bytes| f16::from_le_bytes(bytes).to_f32(),
            single(op),
            |sum: f32| if sum.is_nan() { 0x7e00 } else { f16::from_f32(sum).to_bits() }.to_le_bytes(),
        ),
        Scalar::BF16 => run(
            operands,
            |bytes| bf16::from_le_bytes(bytes).to_f32(),
            single(op),
            |sum: f32| if sum.is_nan() { 0x7fc0 } else { bf16::from_f32(sum).to_bits() }.to_le_bytes(),
        ),
    }
}

/// Works element by element: decodes, combines from the left, encodes.
fn run<const N: usize, W: Copy>(
    operands: &[&[u8]],
    decode: impl Fn([u8; N]) -> W,
    combine: fn(W, W) -> W,
    encode: impl Fn(W) -> [u8; N],
) -> Vec<u8> {
    let mut result = Vec::with_capacity(operands[0].len());
    for at in (0..operands[0].len()).step_by(N) {
        let value = |operand: &&[u8]| decode(operand[at..at + N].try_into().expect("N bytes"));
        let sum = operands.iter().map(value).reduce(combine).expect("a node has children");
        result.extend(encode(sum));
    }
    result
}

macro_rules! integer {
    ($($name:ident: $type:ty;)*) => { $(
        fn $name(op: ReduceOp) -> fn($type, $type) -> $type {
            match op {
                ReduceOp::Max => |left, right| left.max(right),
                ReduceOp::Min => |left, right| left.min(right),
                ReduceOp::Sum => <$type>::wrapping_add,
                ReduceOp::Prod => <$type>::wrapping_mul,
                ReduceOp::LogicalAnd => |left, right| <$type>::from(left != 0 && right != 0),
                ReduceOp::LogicalOr => |left, right| <$type>::from(left != 0 || right != 0),
                ReduceOp::LogicalXor => |left, right| <$type>::from((left != 0) != (right != 0)),
                ReduceOp::BitAnd => |left, right| left & right,
                ReduceOp::BitOr => |left, right| left | right,
                ReduceOp::BitXor => |left, right| left ^ right,
                ReduceOp::MaxLoc | ReduceOp::MinLoc => panic!("{op} is defined for pairs"),
            }
        }
    )* };
}

integer! {
    unsigned8: u8;
    unsigned16: u16;
    unsigned32: u32;
    unsigned64: u64;
    signed8: i8;
    signed16: i16;
    signed32: i32;
    signed64: i64;
}

macro_rules! float {
    ($($name:ident: $type:ty;)*) => { $(
        fn $name(op: ReduceOp) -> fn($type, $type) -> $type {
            match op {
                ReduceOp::Max => |left, right| match left.partial_cmp(&right) {
                    None => <$type>::NAN,
                    Some(order) if order.is_gt() => left,
                    Some(order) if order.is_lt() => right,
                    Some(_) if left.is_sign_positive() => left,
                    Some(_) => right,
                },
                ReduceOp::Min => |left, right| match left.partial_cmp(&right) {
                    None => <$type>::NAN,
                    Some(order) if order.is_lt() => left,
                    Some(order) if order.is_gt() => right,
                    Some(_) if left.is_sign_negative() => left,
                    Some(_) => right,
                },
                ReduceOp::Sum => |left, right| left + right,
                ReduceOp::Prod => |left, right| left * right,
                _ => panic!("{op} is not defined for floating point"),
            }
        }
    )* };
}

float! {
    single: f32;
    double: f64;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn single(op: ReduceOp, operands: &[f32]) -> u32 {
        let operands: Vec<_> = operands.iter().map(|operand| operand.to_le_bytes()).collect();
        let operands: Vec<_> = operands.iter().map(|operand| operand.as_slice()).collect();
        u32::from_le_bytes(fold(DataType::F32, op, &operands).try_into().unwrap())
    }

    #[test]
    fn integers_wrap_and_keep_their_sign() {
        let fold = |dtype, op| fold(dtype, op, &[&[200], &[100]])[0];
        assert_eq!(fold(DataType::U8, ReduceOp::Sum), 44);
        assert_eq!(fold(DataType::U8, ReduceOp::Max), 200);
        assert_eq!(fold(DataType::I8, ReduceOp::Max), 100);
        assert_eq!(fold(DataType::I8, ReduceOp::BitXor), 200 ^ 100);
    }

    #[test]
    fn logical_results_are_zero_or_one() {
        let fold = |op, operands: &[&[u8]]| fold(DataType::U16, op, operands);
        assert_eq!(fold(ReduceOp::LogicalAnd, &[&[0, 1], &[2, 0]]), [1, 0]);
        assert_eq!(fold(ReduceOp::LogicalAnd, &[&[7, 7], &[0, 0], &[1, 0]]), [0, 0]);
        assert_eq!(fold(ReduceOp::LogicalOr, &[&[0, 0], &[0, 2]]), [1, 0]);
        assert_eq!(fold(ReduceOp::LogicalXor, &[&[3, 0], &[5, 0]]), [0, 0]);
        assert_eq!(fold(ReduceOp::LogicalXor, &[&[3, 0], &[5, 0], &[0, 9]]), [1, 0]);
    }

    #[test]
    fn zeros_are_ordered_and_nan_has_one_pattern() {
        assert_eq!(single(ReduceOp::Max, &[-0.0, 0.0]), 0);
        assert_eq!(single(ReduceOp::Max, &[0.0, -0.0]), 0);
        assert_eq!(single(ReduceOp::Min, &[0.0, -0.0]), 1 << 31);
        assert_eq!(single(ReduceOp::Min, &[-0.0, 0.0]), 1 << 31);
        assert_eq!(single(ReduceOp::Max, &[1.0, -f32::NAN, 2.0]), 0x7fc0_0000);
        assert_eq!(single(ReduceOp::Sum, &[f32::INFINITY, f32::NEG_INFINITY]), 0x7fc0_0000);
        assert_eq!(single(ReduceOp::Sum, &[-f32::NAN]), (-f32::NAN).to_bits());
    }

    #[test]
    fn the_smallest_index_of_the_best_value_wins() {
        let pair = DataType::from_name("bfloat16:int8").unwrap();
        let fold = |op, operands: &[&[u8]]| fold(pair, op, operands);
        let (one, two, minus_zero) = ([0x80, 0x3f], [0x00, 0x40], [0x00, 0x80]);
        let with = |value: [u8; 2], index: i8| [value[0], value[1], index as u8];
        assert_eq!(fold(ReduceOp::MaxLoc, &[&with(two, 3), &with(one, -5), &with(two, -1)]), with(two, -1));
        assert_eq!(fold(ReduceOp::MinLoc, &[&with(two, 3), &with(one, 5), &with(one, 7)]), with(one, 5));
        assert_eq!(fold(ReduceOp::MaxLoc, &[&with(minus_zero, 1), &with([0, 0], 2)]), with([0, 0], 1));
        assert_eq!(fold(ReduceOp::MinLoc, &[&with([0xff, 0xff], 9), &with(one, 1)]), with([0xc0, 0x7f], 9));
    }

    #[test]
    #[should_panic(expected = "bor is not defined for floating point")]
    fn floats_have_no_bits() {
        single(ReduceOp::BitOr, &[1.0, 2.0]);
    }
}
