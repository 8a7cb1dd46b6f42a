//! What people and tools are told. Everything here looks at the fabric and changes nothing.
//!
//! ```text
//!   status    the fabric at one moment
//!   homes     where the logical nodes of a job are
//!   survey    every job that is or was, a line each
//!   explain   one job in detail, as its nodes tell it
//!   report    figures for people who watch the manager
//! ```

pub(crate) mod explain;
mod homes;
pub(crate) mod report;
pub(crate) mod status;
pub(crate) mod survey;
