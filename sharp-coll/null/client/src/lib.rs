//! The interface of `trib-client` without a network. Every operation ends at once, moves nothing,
//! allocates nothing and makes no system call, so that the code above it can be measured alone. A
//! script (see `script`) makes operations fail or stay under way, in orders that a network gives
//! rarely or never.

#[path = "../../../../crates/client/src/agreement.rs"]
pub mod agreement;
#[path = "../../../../crates/client/src/boundary.rs"]
pub mod boundary;
mod context;
#[allow(dead_code)]
#[path = "../../../../crates/client/src/counters.rs"]
mod counters;
#[allow(dead_code)]
#[path = "../../../../crates/client/src/error.rs"]
mod error;
mod group;
#[path = "../../../../crates/client/src/operation.rs"]
pub mod operation;
mod script;

pub use context::{Context, OutOfBand, Params, Progress};
pub use counters::Counters;
pub use error::Error;
pub use group::{Group, Input, Request};
pub use script::{null_input, null_release, null_script};
pub use trib_proto::{Limits, Path};
pub use trib_wire::ranks::WORLD_MAX;
pub use trib_wire::{Collective, DataType, RankList, ReduceOp, Scalar, Signature};
