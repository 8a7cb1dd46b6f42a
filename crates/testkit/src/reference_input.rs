//! Input vectors that distinguish a wrong fold from a right one: each rank has its own, float sums
//! depend on their order, and nothing overflows or vanishes on the way.

use half::{bf16, f16};
use trib_wire::{DataType, ReduceOp, Scalar};

/// The vector that `rank` gives: `count` little-endian elements, a pure function of the arguments.
///
/// Integers are any bits for `max`, `min`, `sum` and `bxor`. They are odd for `prod` (an even
/// factor per rank would soon leave zeros), mostly ones for `band` and mostly zeros for `bor`. They
/// are rarely 0 for `land`, mostly 0 for `lor`, and 0 half of the time for `lxor`.
///
/// Floats are finite, and so are their sums and products over a hundred ranks. In a sum, large
/// numbers cancel between pairs of ranks, and small ones are lost or kept depending on what came
/// before. The factors of a product lie near 1.
///
/// Pairs have any index. At every third position most ranks give the same value, so that indices
/// decide, and now and then a value is not a number.
pub fn input(dtype: DataType, op: ReduceOp, seed: u64, rank: u32, count: usize) -> Vec<u8> {
    let own = mix(seed ^ mix(1 + u64::from(rank)));
    let pair = mix(!seed ^ mix(1 + u64::from(rank / 2)));
    let mut vector = Vec::with_capacity(count * dtype.size());
    for index in 0..count as u64 {
        let bits = mix(own.wrapping_add(index));
        let shared = mix(pair.wrapping_add(index));
        match dtype.index() {
            None => number(&mut vector, dtype.value(), op, bits, shared, rank),
            Some(integer) => {
                let common = mix(mix(seed).wrapping_add(index));
                value(&mut vector, dtype.value(), op, bits, common);
                vector.extend_from_slice(&mix(bits).to_le_bytes()[..integer.size()]);
            }
        }
    }
    vector
}

fn number(vector: &mut Vec<u8>, scalar: Scalar, op: ReduceOp, bits: u64, shared: u64, rank: u32) {
    if scalar.is_float() {
        put(vector, scalar, float(scalar, op, bits, shared, rank));
    } else {
        vector.extend_from_slice(&integer(op, bits).to_le_bytes()[..scalar.size()]);
    }
}

/// A pair's value. `bits` are this rank's own, `common` are those of all ranks at this position.
fn value(vector: &mut Vec<u8>, scalar: Scalar, op: ReduceOp, bits: u64, common: u64) {
    match common % 12 {
        0..=3 if !bits.is_multiple_of(8) => number(vector, scalar, op, common, common, 0),
        4 if scalar.is_float() => put(vector, scalar, if bits.is_multiple_of(2) { 0.0 } else { -0.0 }),
        5 if scalar.is_float() && bits.is_multiple_of(4) => put(vector, scalar, f64::NAN),
        _ => number(vector, scalar, op, bits, common, 0),
    }
}

fn integer(op: ReduceOp, bits: u64) -> u64 {
    let (second, third) = (mix(bits), mix(!bits));
    match op {
        ReduceOp::Prod => bits | 1,
        // A number that is not 0 has a bit in its lowest byte, so it is not 0 in any width.
        ReduceOp::LogicalAnd if second.is_multiple_of(8) => 0,
        ReduceOp::LogicalOr if !second.is_multiple_of(8) => 0,
        ReduceOp::LogicalXor if second.is_multiple_of(2) => 0,
        ReduceOp::LogicalAnd | ReduceOp::LogicalOr | ReduceOp::LogicalXor => bits | 1 << (third % 8),
        ReduceOp::BitAnd => bits | second | third,
        ReduceOp::BitOr => bits & second & third,
        _ => bits,
    }
}

/// A float; `bits` are this rank's own, `shared` are those of its pair of ranks.
fn float(dtype: Scalar, op: ReduceOp, bits: u64, shared: u64, rank: u32) -> f64 {
    let sign = if bits & 1 == 0 { 1.0 } else { -1.0 };
    // 52 random bits, in [0, 1).
    let fraction = (bits >> 12) as f64 / (1_u64 << 52) as f64;
    let scale = 2_f64.powi((bits >> 1 & 7) as i32);
    match op {
        ReduceOp::Prod => sign * (1.0 + (fraction - 0.5) / 8.0),
        ReduceOp::Sum if shared.is_multiple_of(3) => {
            let first = (shared >> 32 & 1) ^ u64::from(rank & 1);
            if first == 0 { large(dtype) } else { -large(dtype) }
        }
        ReduceOp::Sum => sign * scale * (1.0 + fraction) * small(dtype),
        // Now and then a zero, of either sign.
        _ if bits >> 8 & 0xff == 0 => sign * 0.0,
        _ => sign * scale * (1.0 + fraction),
    }
}

/// A number so large that, in the accumulator's precision, it pushes out the low bits of the small
/// numbers.
fn large(dtype: Scalar) -> f64 {
    2_f64.powi(match dtype {
        Scalar::F16 => 11,
        Scalar::BF16 => 28,
        Scalar::F64 => 50,
        _ => 22,
    })
}

/// The scale of what is summed between the large numbers.
fn small(dtype: Scalar) -> f64 {
    if dtype == Scalar::F16 { 2_f64.powi(-10) } else { 1.0 }
}

fn put(vector: &mut Vec<u8>, dtype: Scalar, value: f64) {
    match dtype {
        Scalar::F16 => vector.extend(f16::from_f64(value).to_le_bytes()),
        Scalar::BF16 => vector.extend(bf16::from_f64(value).to_le_bytes()),
        Scalar::F32 => vector.extend((value as f32).to_le_bytes()),
        _ => vector.extend(value.to_le_bytes()),
    }
}

/// Scrambles 64 bits (the finaliser of splitmix64 after its step).
fn mix(seed: u64) -> u64 {
    let seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let seed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let seed = (seed ^ (seed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    seed ^ (seed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold;

    const FLOATS: [DataType; 4] = [DataType::F16, DataType::BF16, DataType::F32, DataType::F64];

    fn inputs(dtype: DataType, op: ReduceOp, ranks: u32) -> Vec<Vec<u8>> {
        (0..ranks).map(|rank| input(dtype, op, 7, rank, 400)).collect()
    }

    fn folded<'a>(dtype: DataType, op: ReduceOp, order: impl Iterator<Item = &'a Vec<u8>>) -> Vec<u8> {
        fold(dtype, op, &order.map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// Elements that differ.
    fn differences(dtype: DataType, left: &[u8], right: &[u8]) -> usize {
        left.chunks(dtype.size()).zip(right.chunks(dtype.size())).filter(|(a, b)| a != b).count()
    }

    #[test]
    fn sums_of_floats_show_their_order() {
        for dtype in FLOATS {
            let inputs = inputs(dtype, ReduceOp::Sum, 8);
            let upwards = folded(dtype, ReduceOp::Sum, inputs.iter());
            let downwards = folded(dtype, ReduceOp::Sum, inputs.iter().rev());
            let differ = differences(dtype, &upwards, &downwards);
            assert!(differ > 100, "{dtype}: only {differ} of 400 sums depend on the order");
        }
    }

    #[test]
    fn floats_stay_finite_over_a_hundred_ranks() {
        for dtype in FLOATS {
            for op in [ReduceOp::Max, ReduceOp::Min, ReduceOp::Sum, ReduceOp::Prod] {
                let result = folded(dtype, op, inputs(dtype, op, 100).iter());
                let exponent: u16 = if dtype == DataType::F16 { 0x7c00 } else { 0x7f80 };
                let exponent = if dtype == DataType::F64 { 0x7ff0 } else { exponent };
                for element in result.chunks(dtype.size()) {
                    let top = u16::from_le_bytes(element[element.len() - 2..].try_into().unwrap());
                    assert!(top & exponent != exponent, "{dtype} {op}: {element:x?}");
                }
            }
        }
    }

    #[test]
    fn integer_results_neither_vanish_nor_saturate() {
        for op in [ReduceOp::Prod, ReduceOp::BitAnd, ReduceOp::BitOr, ReduceOp::BitXor] {
            let result = folded(DataType::U8, op, inputs(DataType::U8, op, 8).iter());
            let distinct: std::collections::BTreeSet<_> = result.iter().collect();
            assert!(distinct.len() > 50, "{op}: only {} different results", distinct.len());
        }
    }

    #[test]
    fn logical_results_are_sometimes_true_and_sometimes_not() {
        for op in [ReduceOp::LogicalAnd, ReduceOp::LogicalOr, ReduceOp::LogicalXor] {
            for ranks in [2, 8] {
                let result = folded(DataType::I32, op, inputs(DataType::I32, op, ranks).iter());
                let truths = result.chunks(4).filter(|element| *element == [1, 0, 0, 0]).count();
                let falsehoods = result.chunks(4).filter(|element| *element == [0; 4]).count();
                assert!(truths > 40 && falsehoods > 40 && truths + falsehoods == 400, "{op}: {truths}, {falsehoods}");
            }
        }
    }

    #[test]
    fn indices_decide_about_some_pairs_and_values_about_others() {
        for name in ["uint8:int8", "float32:int64", "float16:uint16"] {
            let dtype = DataType::from_name(name).unwrap();
            let inputs = inputs(dtype, ReduceOp::MinLoc, 8);
            let result = folded(dtype, ReduceOp::MinLoc, inputs.iter());
            let size = dtype.size();
            let givers = |at: usize| {
                let values = inputs.iter().map(|input| &input[at..at + dtype.value().size()]);
                values.filter(|value| **value == result[at..at + dtype.value().size()]).count()
            };
            let shared = (0..400).filter(|element| givers(element * size) > 1).count();
            assert!((40..360).contains(&shared), "{name}: {shared} of 400 values were given by several");
        }
    }

    #[test]
    fn ranks_and_seeds_have_their_own_vectors() {
        for &dtype in DataType::ALL {
            let vector = |seed, rank| input(dtype, ReduceOp::Max, seed, rank, 64);
            assert_eq!(vector(1, 0), vector(1, 0));
            assert_ne!(vector(1, 0), vector(2, 0));
            assert_ne!(vector(1, 0), vector(1, 1));
            assert_eq!(vector(1, 0).len(), 64 * dtype.size());
        }
    }
}
