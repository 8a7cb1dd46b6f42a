//! Allreduces of all ranks of a CollNet communicator, through the tree.
//!
//! ```text
//!   listen    every rank makes a secret; NCCL carries them to all
//!   connect   all meet at the manager under the secret of rank 0: a job, and one group of it
//!   iallreduce, test    an operation of the group; several are under way at once
//! ```
//!
//! The modules are `member` (a rank of such a communicator), `numbers` (types and operators as NCCL
//! numbers them) and `sums` (how its sums are taken).

mod member;
mod numbers;
mod sums;

pub use member::{Member, OPERATION_MAX};
pub use numbers::{data_type, operator};
pub use sums::is_supported;

/// Whether this process has been told of a fabric.
pub fn has_manager() -> bool {
    std::env::var_os("TRIB_MANAGER").is_some_and(|text| !text.is_empty())
}
