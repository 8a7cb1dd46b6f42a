//! Types and operators, as `ncclDataType_t` and `ncclRedOp_t` number them.

use std::ffi::c_int;

use trib_client::{DataType, ReduceOp};

/// The type with this number, if nodes have it; they have no floating-point types of 8 bits.
pub fn data_type(number: c_int) -> Option<DataType> {
    const TYPES: [DataType; 10] = [
        DataType::I8,
        DataType::U8,
        DataType::I32,
        DataType::U32,
        DataType::I64,
        DataType::U64,
        DataType::F16,
        DataType::F32,
        DataType::F64,
        DataType::BF16,
    ];
    usize::try_from(number).ok().and_then(|number| TYPES.get(number)).copied()
}

/// The operator with this number. NCCL makes averages, and sums with factors, of sums itself.
pub fn operator(number: c_int) -> Option<ReduceOp> {
    const OPERATORS: [ReduceOp; 4] = [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min];
    usize::try_from(number).ok().and_then(|number| OPERATORS.get(number)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_nccl_h() {
        let names: Vec<_> = (0..12).map(|n| data_type(n).map_or("-".to_owned(), |dtype| dtype.to_string())).collect();
        assert_eq!(names.join(" "), "int8 uint8 int32 uint32 int64 uint64 float16 float32 float64 bfloat16 - -");
        let ops = [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min].map(Some);
        assert_eq!([0, 1, 2, 3].map(operator), ops);
        assert!([-1, 10].into_iter().all(|none| data_type(none).is_none()));
        assert!([-1, 4].into_iter().all(|none| operator(none).is_none()));
    }
}
