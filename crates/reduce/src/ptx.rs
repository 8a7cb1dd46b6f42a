//! Folds for GPUs, as text in PTX, which CUDA's driver compiles for its device.
//!
//! ```text
//!   out[i] = ((a0[i] op a1[i]) op a2[i]) ...     a thread for each i, and then for i + all threads
//! ```
//! A text is for one type, operator and number of vectors, so that it has no branch but the loop's.
//! Its results have the bits of the fold on the host: integers wrap; float16 and
//! bfloat16 are computed in float32 and rounded once; max and min give "not a number" where an
//! operand is one, and order zeros; what is no number in the end gets one pattern. The language is
//! that of NVIDIA's "Parallel Thread Execution ISA"; version 6.0 of it is known to drivers from
//! CUDA 9 on, and what is for devices of compute capability 5.0 runs on all later ones.

use std::fmt::Write;

use trib_wire::{DataType, ReduceOp, Scalar};

/// The name of the kernel in each text.
pub const NAME: &str = "fold";

/// Whether there are folds of such vectors.
pub fn is_known(dtype: DataType, op: ReduceOp) -> bool {
    Number::of(dtype).is_some_and(|number| number.step(op).is_some())
}

/// The text of a fold of so many vectors, one or more; `None` where there is none: of pairs, and of
/// what the tree does not reduce. The kernel takes, as 64 bits each, the address of the result, the
/// number of elements, and the addresses of the vectors, all at multiples of an element's size. It
/// is right with any number of threads in one dimension.
pub fn fold(dtype: DataType, op: ReduceOp, vectors: usize) -> Option<String> {
    let number = Number::of(dtype)?;
    let step = number.step(op)?;
    let each = |line: &dyn Fn(usize) -> String| (0..vectors).map(line).collect::<String>();
    let size = dtype.size();
    let parameters = each(&|at| format!(",\n    .param .u64 a{at}"));
    let addresses = each(&|at| format!("    ld.param.u64 %a{at}, [a{at}];\n"));
    let loads = each(&|at| format!("    add.u64 %at, %a{at}, %offset;\n{}", number.load(at)));
    let widened = each(&|at| number.widen(op, at));
    let steps = (1..vectors).fold(String::new(), |mut all, at| {
        let _ = write!(all, "{}", step.replace("NEXT", &format!("%v{at}")));
        all
    });
    let (bits, store) = (number.bits(), number.store());
    Some(format!(
        "\
.version 6.0
.target sm_50
.address_size 64
.visible .entry {NAME}(
    .param .u64 out,
    .param .u64 count{parameters}
)
{{
    .reg .pred %is, %unordered;
    .reg .b16 %h<{vectors}>;
    .reg .b32 %block, %width, %thread, %blocks;
    .reg .{bits} %v<{vectors}>, %t, %u;
    .reg .b64 %a<{vectors}>, %to, %count, %i, %all, %first, %offset, %at;
    ld.param.u64 %to, [out];
    ld.param.u64 %count, [count];
{addresses}    mov.u32 %block, %ctaid.x;
    mov.u32 %width, %ntid.x;
    mov.u32 %thread, %tid.x;
    mov.u32 %blocks, %nctaid.x;
    mul.wide.u32 %first, %thread, 1;
    mul.wide.u32 %i, %block, %width;
    add.u64 %i, %i, %first;
    mul.wide.u32 %all, %blocks, %width;
again:
    setp.ge.u64 %is, %i, %count;
    @%is bra done;
    mul.lo.u64 %offset, %i, {size};
{loads}{widened}{steps}    add.u64 %at, %to, %offset;
{store}    add.u64 %i, %i, %all;
    bra again;
done:
    ret;
}}
"
    ))
}

/// What a number is computed as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Number {
    /// Of so many bytes.
    Integer {
        size: usize,
        signed: bool,
    },
    Float16,
    Bfloat16,
    Float32,
    Float64,
}

impl Number {
    fn of(dtype: DataType) -> Option<Number> {
        if dtype.index().is_some() {
            return None;
        }
        Some(match dtype.value() {
            Scalar::F16 => Number::Float16,
            Scalar::BF16 => Number::Bfloat16,
            Scalar::F32 => Number::Float32,
            Scalar::F64 => Number::Float64,
            number => Number::Integer {
                size: number.size(),
                signed: matches!(number, Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64),
            },
        })
    }

    /// The registers in which it is computed.
    fn bits(self) -> &'static str {
        match self {
            Number::Float64 | Number::Integer { size: 8, .. } => "b64",
            _ => "b32",
        }
    }

    /// The type of arithmetic on it.
    fn kind(self) -> &'static str {
        match (self, self.bits()) {
            (Number::Integer { signed: false, .. }, "b64") => "u64",
            (Number::Integer { signed: true, .. }, "b64") => "s64",
            (Number::Integer { signed: false, .. }, _) => "u32",
            (Number::Integer { signed: true, .. }, _) => "s32",
            (_, "b64") => "f64",
            _ => "f32",
        }
    }

    /// What brings the number of a vector from `%at`.
    fn load(self, vector: usize) -> String {
        let kind = match self {
            Number::Float16 => return format!("    ld.global.b16 %h{vector}, [%at];\n"),
            Number::Bfloat16 => "u16",
            Number::Integer { size: 1, signed } => ["u8", "s8"][usize::from(signed)],
            Number::Integer { size: 2, signed } => ["u16", "s16"][usize::from(signed)],
            _ => self.bits(),
        };
        format!("    ld.global.{kind} %v{vector}, [%at];\n")
    }

    /// What makes of it what the operator takes.
    fn widen(self, op: ReduceOp, vector: usize) -> String {
        let (bits, kind) = (self.bits(), self.kind());
        match (self, op) {
            (Number::Float16, _) => format!("    cvt.f32.f16 %v{vector}, %h{vector};\n"),
            (Number::Bfloat16, _) => format!("    shl.b32 %v{vector}, %v{vector}, 16;\n"),
            (Number::Integer { .. }, ReduceOp::LogicalAnd | ReduceOp::LogicalOr | ReduceOp::LogicalXor) => {
                format!("    setp.ne.{kind} %is, %v{vector}, 0;\n    selp.{bits} %v{vector}, 1, 0, %is;\n")
            }
            _ => String::new(),
        }
    }

    /// A step of the fold, from `%v0` and `NEXT` to `%v0`; `None` where the tree has no such
    /// operator for the type.
    fn step(self, op: ReduceOp) -> Option<String> {
        let (bits, kind) = (self.bits(), self.kind());
        let simple = |instruction: String| Some(format!("    {instruction} %v0, %v0, NEXT;\n"));
        if let Number::Integer { .. } = self {
            return match op {
                ReduceOp::Max => simple(format!("max.{kind}")),
                ReduceOp::Min => simple(format!("min.{kind}")),
                ReduceOp::Sum => simple(format!("add.{kind}")),
                ReduceOp::Prod => simple(format!("mul.lo.{kind}")),
                ReduceOp::LogicalAnd | ReduceOp::BitAnd => simple(format!("and.{bits}")),
                ReduceOp::LogicalOr | ReduceOp::BitOr => simple(format!("or.{bits}")),
                ReduceOp::LogicalXor | ReduceOp::BitXor => simple(format!("xor.{bits}")),
                ReduceOp::MaxLoc | ReduceOp::MinLoc => None,
            };
        }
        match op {
            // With a rounding that is named, the compiler joins no product with a sum.
            ReduceOp::Sum => simple(format!("add.rn.{kind}")),
            ReduceOp::Prod => simple(format!("mul.rn.{kind}")),
            ReduceOp::Max => Some(extreme("gt", "and", (bits, kind))),
            ReduceOp::Min => Some(extreme("lt", "or", (bits, kind))),
            _ => None,
        }
    }

    /// What rounds `%v0` and stores it at `%at`.
    fn store(self) -> String {
        let (bits, kind) = (self.bits(), self.kind());
        let unordered = format!("    setp.nan.{kind} %unordered, %v0, %v0;\n");
        match self {
            Number::Integer { size, .. } => format!("    st.global.u{} [%at], %v0;\n", 8 * size),
            Number::Float16 => format!(
                "{unordered}    cvt.rn.f16.f32 %h0, %v0;\n    selp.b16 %h0, 0x7e00, %h0, %unordered;\n    st.global.b16 \
                 [%at], %h0;\n"
            ),
            // To nearest, and where that is between two, to the even one.
            Number::Bfloat16 => format!(
                "{unordered}    shr.u32 %t, %v0, 16;\n    and.b32 %t, %t, 1;\n    add.u32 %t, %t, 0x7fff;\n    add.u32 \
                 %v0, %v0, %t;\n    shr.u32 %v0, %v0, 16;\n    selp.b32 %v0, 0x7fc0, %v0, %unordered;\n    \
                 st.global.u16 [%at], %v0;\n"
            ),
            Number::Float32 | Number::Float64 => {
                let pattern = if self == Number::Float32 { "0x7fc00000" } else { "0x7ff8000000000000" };
                format!(
                    "{unordered}    selp.{bits} %v0, {pattern}, %v0, %unordered;\n    st.global.{bits} [%at], %v0;\n"
                )
            }
        }
    }
}

/// The larger or the smaller of two floats. Zeros of both signs are equal to a comparison, so both
/// orders select, and `join` keeps the one that is wanted; any other two numbers it joins twice the
/// same. All bits are set where an operand is no number, which every later step keeps.
fn extreme(compare: &str, join: &str, (bits, kind): (&str, &str)) -> String {
    let all = if bits == "b64" { "0xffffffffffffffff" } else { "0xffffffff" };
    format!(
        "    setp.{compare}.{kind} %is, %v0, NEXT;
    selp.{bits} %t, %v0, NEXT, %is;
    setp.{compare}.{kind} %is, NEXT, %v0;
    selp.{bits} %u, NEXT, %v0, %is;
    setp.nan.{kind} %unordered, %v0, NEXT;
    {join}.{bits} %v0, %t, %u;
    selp.{bits} %v0, {all}, %v0, %unordered;
"
    )
}
