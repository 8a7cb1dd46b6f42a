//! What an operation is: a collective, an operator, and the signature that all ranks must share.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use crate::datatype::DataType;
use crate::directory::{Directory, Numbers};
use crate::format::WireFormat;

code! {
    /// A collective operation as the tree sees it.
    Collective {
        /// No data: done when every member has entered.
        Barrier = 0, "barrier";
        /// Every member gives a vector, every member gets the sum.
        Allreduce = 1, "allreduce";
        /// Every member gives a vector, the root gets the sum.
        Reduce = 2, "reduce";
        /// The root gives a vector, every other member gets it.
        Bcast = 3, "bcast";
        /// Every member gives N blocks, member i gets the sum of block i.
        ReduceScatter = 4, "reduce_scatter";
        /// Member i gives block i, every member gets all N blocks.
        Allgather = 5, "allgather";
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
        /// Logical and: 1 where no operand is 0, else 0.
        LogicalAnd = 4, "land";
        /// Bitwise and.
        BitAnd = 5, "band";
        /// Logical or: 1 where some operand is not 0, else 0.
        LogicalOr = 6, "lor";
        /// Bitwise or.
        BitOr = 7, "bor";
        /// Logical exclusive or: 1 where an odd number of operands are not 0, else 0.
        LogicalXor = 8, "lxor";
        /// Bitwise exclusive or.
        BitXor = 9, "bxor";
        /// The largest value of pairs, with the smallest of its indices.
        MaxLoc = 10, "maxloc";
        /// The smallest value of pairs, with the smallest of its indices.
        MinLoc = 11, "minloc";
    }
}

/// What all members of a group must agree on for one operation.
///
/// It travels in every frame; a node that sees two different ones for one sequence number fails the
/// group and names a rank of each (rule R6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Signature {
    /// The collective.
    pub collective: Collective,
    /// Element type (uint8 where the collective does not compute).
    pub dtype: DataType,
    /// Operator; where the collective does not compute it is bitwise or, because data merges into
    /// zeros.
    pub op: ReduceOp,
    /// How the elements travel.
    #[cfg_attr(feature = "serde", serde(default))]
    pub format: WireFormat,
    /// Group rank of the root, 0 for rootless collectives.
    pub root: u32,
    /// How many elements the whole vector has, or one block of a reduce-scatter or an allgather.
    pub count: u64,
}

impl Signature {
    /// In words: `allreduce of 1024 float64 (sum)`.
    pub fn words(&self) -> String {
        self.told(&Numbers)
    }

    /// The same for users of a program, who know its calls by other names.
    pub fn told(&self, by: &dyn Directory) -> String {
        let Signature { collective, dtype, root, count, .. } = self;
        let (call, op) = (by.call(*collective), self.computed());
        match collective {
            Collective::Barrier => call,
            Collective::Allreduce => format!("{call} of {count} {dtype} ({op})"),
            Collective::Reduce => {
                format!("{call} of {count} {dtype} ({op}) to rank {root} of the group")
            }
            Collective::Bcast => format!("{call} of {count} bytes from rank {root} of the group"),
            Collective::ReduceScatter => {
                format!("{call} of blocks of {count} {dtype} ({op})")
            }
            Collective::Allgather => format!("{call} of blocks of {count} bytes"),
        }
    }
}

impl Signature {
    /// The operator, and how the elements travel if not as they are.
    fn computed(&self) -> String {
        match self.format {
            WireFormat::Plain => self.op.to_string(),
            format => format!("{}, {format}", self.op),
        }
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({} x {}, {}, root {})", self.collective, self.count, self.dtype, self.computed(), self.root)
    }
}
