//! The library that an application links: a context for the job, groups of its ranks, requests for
//! operations in flight.
//!
//! The modules are `context` (one rank of one job), `params` (how to join; `launch`: which rank
//! this is, from its launcher's variables), `join` (joining),
//! `agreement` (one verdict for all ranks over the caller's exchange), `group` (collectives),
//! `operation` (their signatures), `lanes` (which tree an operation takes), `request` (an operation
//! in flight), `device` (operations over memory of a GPU), `sums` (sums that do not depend on
//! order, or are quantised; `sum_kind` says which), `gate` (what one thread makes and others wait
//! for), `engine` (protocol core, sockets, waiting, the helper thread), what these handles share
//! with the engine: `group_state`, `posting` (an operation on its way there), `completion` (its
//! outcome) and `memory` (where a vector lies in the caller's buffers), then `fork`, `counters`,
//! `error`, `processors`, and `boundary` (for C interfaces over this library).
//!
//! ```text
//!   context --> join --> group, request --> device --> sums --> engine
//!          engine --> group_state, posting --> completion, memory
//! ```
//!
//! ```no_run
//! use trib_client::{Context, Params, RankList};
//! use trib_client::{DataType, ReduceOp};
//!
//! let context = Context::join(Params::from_env()?)?;
//! let world = context.create_group(RankList::world(context.size()), 0)?;
//! let mut vector = 1.5f32.to_le_bytes();
//! world.allreduce(None, &mut vector, DataType::F32, ReduceOp::Sum)?;
//! # Ok::<(), trib_client::Error>(())
//! ```
//!
//! Invariants: after joining nothing waits for the manager; no lock is held while a callback of the
//! caller's runs; the caller's memory is neither read nor written after its request is done; a
//! forked child touches nothing.

pub mod agreement;
pub mod boundary;
mod completion;
mod context;
mod counters;
mod derived_tag;
mod device;
mod engine;
mod error;
mod fork;
mod gate;
mod group;
mod group_state;
mod join;
mod lanes;
mod launch;
mod log;
mod memory;
pub mod operation;
pub mod params;
mod posting;
mod processors;
mod request;
mod sum_kind;
mod sums;
mod way;

pub use context::Context;
pub use counters::Counters;
pub use error::Error;
pub use group::Group;
pub use memory::Input;
pub use params::{OutOfBand, Params, Progress};
pub use request::Request;
pub use sum_kind::{SumKind, feed_back};
pub use trib_device::UserStream;
pub use trib_messages::prediction::{Range, ShapePrediction};
pub use trib_proto::{Limits, Path};
pub use trib_wire::ranks::WORLD_MAX;
pub use trib_wire::{Collective, DataType, Rank, RankList, ReduceOp, Scalar, Signature};
