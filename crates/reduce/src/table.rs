//! What is supported: the one list of datatype, operators and the element type they are computed on.

use std::fmt::Write;

use trib_wire::{DataType, ReduceOp};

use crate::element::{BF16, F16};
use crate::operator;
use crate::simd::Kernels;

/// One datatype with one operator.
struct Cell {
    dtype: DataType,
    op: ReduceOp,
    kernels: Kernels,
}

macro_rules! cells {
    ($($dtype:ident as $element:ty => $($op:ident)*;)*) => {
        const CELLS: &[Cell] = &[$($(Cell {
            dtype: DataType::$dtype,
            op: ReduceOp::$op,
            kernels: Kernels::of::<$element, operator::$op>(),
        },)*)*];
    };
}

// Wrapping sums and products do not see the sign, bitwise operators do not see the width.
cells! {
    U8   as u8   => Max Min Sum Prod BitAnd BitOr BitXor;
    I8   as i8   => Max Min;
    I8   as u8   => Sum Prod BitAnd BitOr BitXor;
    U16  as u16  => Max Min Sum Prod;
    U16  as u8   => BitAnd BitOr BitXor;
    I16  as i16  => Max Min;
    I16  as u16  => Sum Prod;
    I16  as u8   => BitAnd BitOr BitXor;
    U32  as u32  => Max Min Sum Prod;
    U32  as u8   => BitAnd BitOr BitXor;
    I32  as i32  => Max Min;
    I32  as u32  => Sum Prod;
    I32  as u8   => BitAnd BitOr BitXor;
    U64  as u64  => Max Min Sum Prod;
    U64  as u8   => BitAnd BitOr BitXor;
    I64  as i64  => Max Min;
    I64  as u64  => Sum Prod;
    I64  as u8   => BitAnd BitOr BitXor;
    F16  as F16  => Max Min Sum Prod;
    BF16 as BF16 => Max Min Sum Prod;
    F32  as f32  => Max Min Sum Prod;
    F64  as f64  => Max Min Sum Prod;
}

/// Whether vectors of this type can be folded with this operator.
pub fn supports(dtype: DataType, op: ReduceOp) -> bool {
    kernels(dtype, op).is_some()
}

/// Every supported pair, types in the order of the list.
pub fn cells() -> impl Iterator<Item = (DataType, ReduceOp)> {
    CELLS.iter().map(|cell| (cell.dtype, cell.op))
}

/// The table as Markdown: a row per type, a column per operator.
pub fn markdown() -> String {
    let mut text = String::from("| type |");
    let mut rule = String::from("\n| --- |");
    for op in ReduceOp::ALL {
        write!(text, " {op} |").expect("writing to a string");
        rule.push_str(" --- |");
    }
    text.push_str(&rule);
    for &dtype in DataType::ALL {
        write!(text, "\n| {dtype} |").expect("writing to a string");
        for &op in ReduceOp::ALL {
            text.push_str(if supports(dtype, op) { " yes |" } else { " - |" });
        }
    }
    text.push('\n');
    text
}

/// The kernels of one cell.
pub(crate) fn kernels(dtype: DataType, op: ReduceOp) -> Option<&'static Kernels> {
    let place = PLACES[dtype.code() as usize][op.code() as usize];
    CELLS.get(usize::from(place)).map(|cell| &cell.kernels)
}

/// Position in the list by the two codes, so that a lookup costs two loads.
static PLACES: [[u8; CODES]; CODES] = places();

const fn places() -> [[u8; CODES]; CODES] {
    let mut places = [[NOWHERE; CODES]; CODES];
    let mut at = 0;
    while at < CELLS.len() {
        let place = &mut places[CELLS[at].dtype.code() as usize][CELLS[at].op.code() as usize];
        assert!(*place == NOWHERE, "one cell is listed twice");
        *place = at as u8;
        at += 1;
    }
    places
}

/// Above every code of a type or operator; with one beyond it, evaluating [`PLACES`] fails the build.
const CODES: usize = 16;

const NOWHERE: u8 = u8::MAX;

const _: () = assert!(CELLS.len() < NOWHERE as usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_arithmetic_and_integers_have_bits() {
        for &dtype in DataType::ALL {
            for &op in ReduceOp::ALL {
                let bitwise = matches!(op, ReduceOp::BitAnd | ReduceOp::BitOr | ReduceOp::BitXor);
                assert_eq!(supports(dtype, op), !(bitwise && dtype.is_float()), "{dtype} {op}");
            }
        }
        assert_eq!(cells().count(), 12 * 4 + 8 * 3);
    }

    #[test]
    fn the_text_shows_what_the_table_holds() {
        let text = markdown();
        assert_eq!(text.lines().count(), 2 + DataType::ALL.len());
        assert_eq!(text.matches(" yes |").count(), cells().count());
        assert!(text.contains("| bfloat16 | yes | yes | yes | yes | - | - | - |"), "{text}");
    }
}
