//! Reduction kernels: one vector folded with others, operator by datatype.
//!
//! ```text
//!   fold_into(dtype, op, first, rest)      first = (((first op rest[0]) op rest[1]) ...)
//!        |
//!     dispatch -- table (the one list of cells) -- simd (one source, compiled per instruction set)
//!                                                        |
//!                                              element x operator
//! ```
//!
//! Blocks of quantised elements have kernels of their own: [`blocks`].
//!
//! Map: `table` (what is supported), `dispatch` (entry points and choice of the path), `simd`
//! (kernels), `element`, `operator`, `pair` and `joint` (what they compute), `environment`
//! (rounding mode and denormals of the calling thread), `error`, [`reference`](mod@reference) (the
//! naive oracle), [`ptx`] (the same folds for GPUs), [`bandwidth`] (kernels against memory speed).
//!
//! # Same bits on every path
//!
//! Elements are little-endian and need no alignment. For one datatype, operator and list of vectors
//! the result is the same bits on every machine and instruction set:
//!
//! - Integers wrap. Logical operators take 0 for false and all else for true, and give 0 or 1.
//! - float32 and float64 are computed in their own precision, one rounding per step, to nearest
//!   even; float16 and bfloat16 accumulate in float32 and are rounded to nearest even once, at the
//!   end.
//! - Denormals are kept and rounding is to nearest, whatever the calling thread has set.
//! - A fold whose result is not a number gives one quiet pattern: float32 `7fc00000`, float64
//!   `7ff8000000000000`, float16 `7e00`, bfloat16 `7fc0`. Processors disagree on signs and
//!   payloads.
//! - `max` and `min` give "not a number" when either operand is one, and order zeros: -0 < +0.
//! - Of pairs, `maxloc` gives the largest value and the smallest index of a value that equals it,
//!   and `minloc` the smallest value likewise. Zeros of both signs are equal, and the result has
//!   the one that `max` or `min` gives. A value that is not a number wins. The order of the
//!   operands changes none of these bits.
//! - Without a source the first vector stays as it is, NaN payloads included.
//!
//! Invariants: nothing here allocates, takes a lock, or reads a clock outside [`bandwidth`].

#[cfg(target_endian = "big")]
compile_error!("vectors travel in little-endian order and the kernels compute on them in place");

pub mod bandwidth;
pub mod blocks;
mod dispatch;
mod element;
mod environment;
mod error;
mod joint;
mod operator;
mod pair;
pub mod ptx;
pub mod reference;
mod simd;
mod table;

pub use dispatch::{fold_as, fold_blocks_on, fold_into, fold_into_on, merge_into};
pub use environment::Environment;
pub use error::FoldError;
pub use simd::Path;
pub use table::cells;
