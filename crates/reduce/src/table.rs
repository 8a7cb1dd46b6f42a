//! What is supported: this is the one list of data types, their operators, and the element types on
//! which these are computed.

use trib_wire::{DataType, ReduceOp, Scalar};

use crate::element::{BF16, F16};
use crate::operator;
use crate::pair::{Bits, Order};
use crate::simd::Kernels;

/// One datatype with one operator.
#[derive(Clone, Copy)]
pub(crate) struct Cell {
    dtype: DataType,
    op: ReduceOp,
    /// What its kernels have to know of the cell.
    pub(crate) order: Order,
    pub(crate) kernels: Kernels,
}

macro_rules! cells {
    ($($dtype:ident as $element:ty => $($op:ident)*;)*) => {
        const NUMBERS: &[Cell] = &[$($(Cell {
            dtype: DataType::$dtype,
            op: ReduceOp::$op,
            order: Order::NONE,
            kernels: Kernels::of::<$element, operator::$op>(),
        },)*)*];
    };
}

// Wrapping sums and products and logical operators do not depend on the sign, and bitwise operators
// do not depend on the width.
cells! {
    U8   as u8   => Max Min Sum Prod LogicalAnd LogicalOr LogicalXor BitAnd BitOr BitXor;
    I8   as i8   => Max Min;
    I8   as u8   => Sum Prod LogicalAnd LogicalOr LogicalXor BitAnd BitOr BitXor;
    U16  as u16  => Max Min Sum Prod LogicalAnd LogicalOr LogicalXor;
    U16  as u8   => BitAnd BitOr BitXor;
    I16  as i16  => Max Min;
    I16  as u16  => Sum Prod LogicalAnd LogicalOr LogicalXor;
    I16  as u8   => BitAnd BitOr BitXor;
    U32  as u32  => Max Min Sum Prod LogicalAnd LogicalOr LogicalXor;
    U32  as u8   => BitAnd BitOr BitXor;
    I32  as i32  => Max Min;
    I32  as u32  => Sum Prod LogicalAnd LogicalOr LogicalXor;
    I32  as u8   => BitAnd BitOr BitXor;
    U64  as u64  => Max Min Sum Prod LogicalAnd LogicalOr LogicalXor;
    U64  as u8   => BitAnd BitOr BitXor;
    I64  as i64  => Max Min;
    I64  as u64  => Sum Prod LogicalAnd LogicalOr LogicalXor;
    I64  as u8   => BitAnd BitOr BitXor;
    F16  as F16  => Max Min Sum Prod;
    BF16 as BF16 => Max Min Sum Prod;
    F32  as f32  => Max Min Sum Prod;
    F64  as f64  => Max Min Sum Prod;
}

/// Every pair under both of its operators.
const PAIRS: &[Cell] = &pairs();

const fn pairs() -> [Cell; 2 * DataType::PAIRS.len()] {
    let mut cells = [NUMBERS[0]; 2 * DataType::PAIRS.len()];
    let mut at = 0;
    while at < cells.len() {
        let dtype = DataType::PAIRS[at / 2];
        let op = if at % 2 == 0 { ReduceOp::MaxLoc } else { ReduceOp::MinLoc };
        let (value, index) = (dtype.value(), dtype.index().expect("a pair"));
        cells[at] = Cell { dtype, op, order: Order::of(value, index, op), kernels: with_value(value, index) };
        at += 1;
    }
    cells
}

/// Pairs share the kernels of their widths; those whose values are floats have kernels of their
/// own.
const fn with_value(value: Scalar, index: Scalar) -> Kernels {
    match (value.is_float(), value.size()) {
        (false, 1) => with_index::<u8, false>(index),
        (false, 2) => with_index::<u16, false>(index),
        (false, 4) => with_index::<u32, false>(index),
        (false, _) => with_index::<u64, false>(index),
        (true, 2) => with_index::<u16, true>(index),
        (true, 4) => with_index::<u32, true>(index),
        (true, _) => with_index::<u64, true>(index),
    }
}

const fn with_index<V: Bits, const FLOAT: bool>(index: Scalar) -> Kernels {
    match index.size() {
        1 => Kernels::of_pairs::<V, u8, FLOAT>(),
        2 => Kernels::of_pairs::<V, u16, FLOAT>(),
        4 => Kernels::of_pairs::<V, u32, FLOAT>(),
        _ => Kernels::of_pairs::<V, u64, FLOAT>(),
    }
}

/// Every type with every operator on it, types in the order of the list.
pub fn cells() -> impl Iterator<Item = (DataType, ReduceOp)> {
    all().map(|cell| (cell.dtype, cell.op))
}

fn all() -> impl Iterator<Item = &'static Cell> {
    NUMBERS.iter().chain(PAIRS)
}

/// One cell.
pub(crate) fn cell(dtype: DataType, op: ReduceOp) -> Option<&'static Cell> {
    BY_CODES[usize::from(dtype.code())][usize::from(op.code())]
}

/// The cells by the two codes, so that a lookup costs one load.
static BY_CODES: [[Option<&Cell>; OPERATORS]; TYPES] = by_codes();

const fn by_codes() -> [[Option<&'static Cell>; OPERATORS]; TYPES] {
    let mut by_codes = [[None; OPERATORS]; TYPES];
    enter(NUMBERS, &mut by_codes);
    enter(PAIRS, &mut by_codes);
    by_codes
}

const fn enter(cells: &'static [Cell], by_codes: &mut [[Option<&'static Cell>; OPERATORS]; TYPES]) {
    let mut at = 0;
    while at < cells.len() {
        let entry = &mut by_codes[cells[at].dtype.code() as usize][cells[at].op.code() as usize];
        assert!(entry.is_none(), "one cell is listed twice");
        *entry = Some(&cells[at]);
        at += 1;
    }
}

/// Codes that a byte can hold; those of no type have no cells.
const TYPES: usize = 256;

/// Codes of operators; with one beyond, evaluating [`BY_CODES`] fails the build.
const OPERATORS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use trib_wire::combination::combinations;

    #[test]
    fn there_are_kernels_for_what_is_defined_and_for_nothing_else() {
        let sorted = |mut cells: Vec<_>| {
            cells.sort_unstable();
            cells
        };
        let defined = combinations().collect::<Vec<_>>();
        assert_eq!(sorted(cells().collect()), sorted(defined));
    }
}
