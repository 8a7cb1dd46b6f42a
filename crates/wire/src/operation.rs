//! What an operation is: collective, datatype, operator, and the signature all ranks must share.

use core::fmt;

macro_rules! code {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $value:literal, $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum $name { $($(#[$vdoc])* $variant = $value,)* }

        impl $name {
            /// Every value, in the order of the codes.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The value with this code on the wire.
            pub const fn from_code(code: u8) -> Option<Self> {
                match code { $($value => Some($name::$variant),)* _ => None }
            }

            /// The code on the wire.
            pub const fn code(self) -> u8 { self as u8 }

            /// The name used in tables, options and messages.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            /// The value with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|v| v.name() == name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.pad(self.name()) }
        }
    };
}

code! {
    /// A collective operation as the tree sees it.
    Collective {
        /// No data: done when every member has entered.
        Barrier = 0, "barrier";
        /// Every member gives a vector, every member gets the sum.
        Allreduce = 1, "allreduce";
        /// Every member gives a vector, the root gets the sum.
        Reduce = 2, "reduce";
        /// The root gives a vector, everybody else gets it.
        Bcast = 3, "bcast";
        /// Every member gives N blocks, member i gets the sum of block i.
        ReduceScatter = 4, "reduce_scatter";
        /// Member i gives block i, every member gets all N blocks.
        Allgather = 5, "allgather";
    }
}

code! {
    /// Type of one element.
    DataType {
        /// Unsigned, 4 bytes.
        U32 = 0, "uint32";
        /// Signed, 4 bytes.
        I32 = 1, "int32";
        /// Unsigned, 8 bytes.
        U64 = 2, "uint64";
        /// Signed, 8 bytes.
        I64 = 3, "int64";
        /// IEEE 754 binary32.
        F32 = 4, "float32";
        /// IEEE 754 binary64.
        F64 = 5, "float64";
        /// Unsigned, 2 bytes.
        U16 = 6, "uint16";
        /// Signed, 2 bytes.
        I16 = 7, "int16";
        /// IEEE 754 binary16.
        F16 = 8, "float16";
        /// Upper half of a binary32.
        BF16 = 9, "bfloat16";
        /// Unsigned byte.
        U8 = 10, "uint8";
        /// Signed byte.
        I8 = 11, "int8";
    }
}

impl DataType {
    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            DataType::U8 | DataType::I8 => 1,
            DataType::U16 | DataType::I16 | DataType::F16 | DataType::BF16 => 2,
            DataType::U32 | DataType::I32 | DataType::F32 => 4,
            DataType::U64 | DataType::I64 | DataType::F64 => 8,
        }
    }

    /// Whether elements are floating-point numbers.
    pub const fn is_float(self) -> bool {
        matches!(self, DataType::F16 | DataType::BF16 | DataType::F32 | DataType::F64)
    }
}

code! {
    /// Reduction operator.
    ReduceOp {
        /// Larger of two.
        Max = 0, "max";
        /// Smaller of two.
        Min = 1, "min";
        /// Addition; integers wrap.
        Sum = 2, "sum";
        /// Multiplication; integers wrap.
        Prod = 3, "prod";
        /// Bitwise and.
        BitAnd = 5, "band";
        /// Bitwise or.
        BitOr = 7, "bor";
        /// Bitwise exclusive or.
        BitXor = 9, "bxor";
    }
}

/// What all members of a group must agree on for one operation.
///
/// It travels in every frame; a node that sees two different ones for one sequence number fails the
/// group and names a rank of each (rule R6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signature {
    /// The collective.
    pub collective: Collective,
    /// Element type (uint8 where the collective does not compute).
    pub dtype: DataType,
    /// Operator (bitwise or where the collective does not compute: data merges into zeros).
    pub op: ReduceOp,
    /// Group rank of the root, 0 for rootless collectives.
    pub root: u32,
    /// Elements: of the whole vector, or of one block for reduce-scatter and allgather.
    pub count: u64,
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({} x {}, {}, root {})", self.collective, self.count, self.dtype, self.op, self.root)
    }
}
