//! Which operators are defined on which types, and why the others are not. This is the one table
//! that kernels, the protocol core, the libraries' answers, the specification and the tests follow.

use crate::datatype::DataType;
use crate::operation::{Collective, ReduceOp, Signature};

/// Types on which the same operators are defined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Signed and unsigned numbers of 8 to 64 bits.
    Integer,
    /// float16, bfloat16, float32, float64.
    Float,
    /// A number of either class together with an integer, its index.
    Pair,
}

/// Operators that are defined on the same types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// max, min, sum, prod.
    Arithmetic,
    /// land, lor, lxor.
    Logical,
    /// band, bor, bxor.
    Bitwise,
    /// maxloc, minloc.
    Located,
}

impl Class {
    /// Every class.
    pub const ALL: &'static [Class] = &[Class::Integer, Class::Float, Class::Pair];

    /// The name used in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Integer => "integers",
            Class::Float => "floating point",
            Class::Pair => "pairs",
        }
    }
}

impl DataType {
    /// The class, on which depends what operators the type has.
    pub const fn class(self) -> Class {
        match self.index() {
            Some(_) => Class::Pair,
            None if self.value().is_float() => Class::Float,
            None => Class::Integer,
        }
    }
}

impl ReduceOp {
    /// The family, on which depends what types the operator has.
    pub const fn family(self) -> Family {
        match self {
            ReduceOp::Max | ReduceOp::Min | ReduceOp::Sum | ReduceOp::Prod => Family::Arithmetic,
            ReduceOp::LogicalAnd | ReduceOp::LogicalOr | ReduceOp::LogicalXor => Family::Logical,
            ReduceOp::BitAnd | ReduceOp::BitOr | ReduceOp::BitXor => Family::Bitwise,
            ReduceOp::MaxLoc | ReduceOp::MinLoc => Family::Located,
        }
    }

    /// Why there is no such operator on these types; `None` if there is.
    pub const fn refusal(self, class: Class) -> Option<&'static str> {
        match (self.family(), class) {
            (Family::Arithmetic, Class::Integer | Class::Float)
            | (Family::Logical | Family::Bitwise, Class::Integer)
            | (Family::Located, Class::Pair) => None,
            (Family::Logical, Class::Float) => Some("a floating-point number is no truth value"),
            (Family::Bitwise, Class::Float) => Some("the bits of a floating-point number are no operands"),
            (Family::Arithmetic | Family::Logical | Family::Bitwise, Class::Pair) => {
                Some("a value with its index takes maxloc and minloc only")
            }
            (Family::Located, Class::Integer | Class::Float) => {
                Some("maxloc and minloc take pairs: a value with its index")
            }
        }
    }

    /// Whether the operator is defined on the type.
    pub const fn is_defined_on(self, dtype: DataType) -> bool {
        self.refusal(dtype.class()).is_none()
    }
}

impl Collective {
    /// Whether the collective computes. The others lay pieces over zeros, whatever type and
    /// operator say.
    pub const fn computes(self) -> bool {
        matches!(self, Collective::Allreduce | Collective::Reduce | Collective::ReduceScatter)
    }
}

impl Signature {
    /// Whether the operator is defined on the type, or the collective asks for neither.
    pub const fn is_defined(&self) -> bool {
        !self.collective.computes() || self.op.is_defined_on(self.dtype)
    }
}

/// Every type with every operator that is defined on it, types in the order of their list.
pub fn combinations() -> impl Iterator<Item = (DataType, ReduceOp)> {
    let defined = |dtype: DataType| ReduceOp::ALL.iter().copied().filter(move |op| op.is_defined_on(dtype));
    DataType::ALL.iter().flat_map(move |dtype| defined(*dtype).map(move |op| (*dtype, op)))
}
