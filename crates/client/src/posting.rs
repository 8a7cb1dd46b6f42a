//! Operations on their way from the caller to the engine.

use trib_wire::Signature;

use crate::memory::Memory;

/// An operation, ready to be posted.
pub(crate) enum Posting {
    /// The operation is posted on the lane whose turn it is.
    Whole(Signature, Memory),
    /// The operation is cut over the lanes. This holds the signature of the whole and a part for
    /// each lane.
    Cut(Signature, Vec<Part>),
}

/// The part of an operation for one lane.
pub(crate) struct Part {
    pub(crate) signature: Signature,
    pub(crate) memory: Memory,
}
