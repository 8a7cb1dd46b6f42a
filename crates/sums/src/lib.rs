//! Sums of floating-point numbers that have the same bits in any order: the numbers travel as
//! integers, whose sum does not depend on order, whatever tree, cut or board they meet in.
//!
//! ```text
//!   every member                        all members                        every member
//!   survey of each block   -- max -->   the same surveys   -- shape -->    limbs of each block
//!                                       the sums of limbs  <-- sum --      |
//!                                       settle: one rounding per element
//! ```
//!
//! A vector is cut into blocks of [`BLOCK`] elements from its element 0 on. What a member has to
//! know of the others' elements before it can lay its own out, is the [`Survey`] of a block: how
//! large the largest element is, how fine the finest, and whether some are not ordinary. Surveys
//! of all members merge by `max`. What follows from a merged survey, the [`Shape`] of a block, is
//! the same at all members.
//!
//! There are two kinds. In a [`Kind::Fixed`] sum an element is rounded once, to a multiple of a
//! power of two that its block shares, so that it fits into one integer. In a [`Kind::Exact`] sum
//! it is cut into as many integers as the block needs, and the result is the sum of all, rounded
//! once.
//!
//! Modules: `float` (the parts of a number, and one rounding of an integer to a number), `survey`,
//! `shape` (what a block's limbs are), `limbs` (numbers to limbs), `settle` (sums of limbs to
//! numbers), `native` (both by the processor's arithmetic), `tail` (what is not an ordinary
//! number), `wide` (integers of any length), `processor` (one source for several instruction sets).
//!
//! Invariants: nothing here does I/O or takes a lock; whatever bytes come as surveys or sums of
//! limbs, nothing panics and nothing beyond the buffers is touched.

mod float;
mod kind;
mod limbs;
mod native;
mod processor;
mod settle;
mod shape;
mod survey;
mod tail;
mod wide;

pub use kind::{Kind, Refusal};
pub use limbs::spread;
pub use settle::settle;
pub use shape::{Layout, Shape, Width};
pub use survey::{merge, survey};

/// The elements of a block. A survey of 4 or 6 bytes stands for it.
pub const BLOCK: usize = 256;

/// The most members of a group whose sums can be taken so. A limb of 64 bits has room for their
/// number above a limb, and for a counter of each kind.
pub const MEMBERS_MAX: u32 = 1 << 20;
