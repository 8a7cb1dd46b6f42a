//! Frames of Tributary: what travels on the data path, byte by byte.
//!
//! Map: `ids` (identifiers), `operation` (collectives, operators), `datatype` (types of elements),
//! `combination` (which operators are defined on which types), `format` (how many bytes elements
//! take on the wire), `ranks` (lists of ranks), `header` (the fixed header of every frame), `short`
//! (its short form on a stream), `body` (typed payloads of control frames), `standing` (how far
//! ranks have come in a group), `placement` (where the nodes of a tree are), `auth` (the keyed
//! tag), `mode` (what protects payloads), `hello` (opening of a stream connection), `directory`
//! (how people call nodes, ranks and groups).
//!
//! Without features this is all that a packet filter, or a node that is not ours, has to know. With
//! the feature `serde`, what control messages say of frames (`trib_messages`) can stand in them.
//!
//! Invariants: parsing is total, bounds come before allocation, and nothing here reads a socket or
//! a clock.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod auth;
pub mod body;
mod bytes;
#[macro_use]
mod code;
pub mod combination;
pub mod datatype;
pub mod directory;
pub mod error;
pub mod format;
pub mod header;
pub mod hello;
pub mod ids;
pub mod mode;
pub mod offer;
pub mod operation;
pub mod placement;
pub mod ranks;
pub mod short;
pub mod standing;

pub use body::Body;
pub use body::{Fault, GroupKey, Reason};
pub use datatype::{DataType, Scalar};
pub use directory::{Directory, GroupName};
pub use error::ParseError;
pub use format::{Arithmetic, INT8_BLOCK, INT8_BLOCK_BYTES, Layout, Way, WireFormat};
pub use header::{Header, Kind};
pub use ids::{ChildIndex, ChildKind, Epoch, Generation, GroupIndex, JobId, NodeId, Rank};
pub use mode::{Mode, Seal};
pub use operation::{Collective, ReduceOp, Signature};
pub use placement::Placement;
pub use ranks::RankList;
pub use short::ShortHeader;
pub use standing::{Marks, Standing};

/// Version of the frames and of the control messages; both ends must speak the same.
pub const VERSION: u8 = 1;
