//! The leaf: one rank of one job.
mod config;
mod output;

pub use config::LeafConfig;
pub use output::{GroupId, LeafOutput, Note, OpId, Payload, Slice};

use trib_wire::body::Fault;
use trib_wire::{Body, Header, RankList, Signature};

use crate::{Nanos, Path};

/// Why a call was refused at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LeafError {
    /// This rank is not in the member list, or the list is not valid.
    BadMembers,
    /// No such group here.
    UnknownGroup,
    /// The root is not a rank of the group.
    BadRoot,
    /// The vector is longer than 2^63 bytes.
    TooLong,
    /// The group has failed.
    Failed(Fault),
}

/// The state machine of one rank of one job.
pub struct LeafCore {
    #[allow(dead_code)]
    config: LeafConfig,
}

impl LeafCore {
    /// A rank without groups.
    pub fn new(config: LeafConfig) -> LeafCore {
        LeafCore { config }
    }

    /// Starts to make a group of `members` (order = rank in the group). Creations with equal members and tag are
    /// matched over the ranks in call order. Operations may be posted at once.
    pub fn create_group(
        &mut self,
        _now: Nanos,
        _members: RankList,
        _tag: u64,
        _out: &mut impl LeafOutput,
    ) -> Result<GroupId, LeafError> {
        todo!()
    }

    /// Leaves the group; operations still outstanding complete with a fault.
    pub fn free_group(&mut self, _now: Nanos, _group: GroupId, _out: &mut impl LeafOutput) {
        todo!()
    }

    /// Posts an operation; members post the operations of one group in the same order. Never waits. The vector of the
    /// operation and what of it this rank gives and gets: `window`.
    pub fn post(
        &mut self,
        _now: Nanos,
        _group: GroupId,
        _signature: Signature,
        _out: &mut impl LeafOutput,
    ) -> Result<OpId, LeafError> {
        todo!()
    }

    /// Where the payload of this (parsed, not yet authenticated) frame belongs, so that a driver can read it straight into
    /// place. `None`: nowhere, read it aside. Changes nothing; `on_frame` decides later by calling `deliver`.
    pub fn place(&self, _header: &Header) -> Option<Slice> {
        todo!()
    }

    /// An authenticated frame came from the node. Calls `deliver` at most once, for the payload of this frame.
    pub fn on_frame(
        &mut self,
        _now: Nanos,
        _path: Path,
        _header: &Header,
        _body: Body,
        _out: &mut impl LeafOutput,
    ) {
        todo!()
    }

    /// The stream connection is open and authenticated.
    pub fn on_link_up(&mut self, _now: Nanos, _out: &mut impl LeafOutput) {
        todo!()
    }

    /// The stream connection is gone: every group fails.
    pub fn on_link_down(&mut self, _now: Nanos, _out: &mut impl LeafOutput) {
        todo!()
    }

    /// The clock has reached `next_deadline`.
    pub fn on_timer(&mut self, _now: Nanos, _out: &mut impl LeafOutput) {
        todo!()
    }

    /// When `on_timer` wants to be called: probes and heartbeats.
    pub fn next_deadline(&self) -> Nanos {
        todo!()
    }

    /// Operations posted and not complete.
    pub fn outstanding(&self) -> usize {
        todo!()
    }
}
