//! The group of the heads, over the lane of the engine.

use std::sync::Arc;

use trib_proto::Nanos;
use trib_proto::leaf::GroupId;
use trib_wire::body::{Fault, Reason};
use trib_wire::{NodeId, Rank, Signature};

use super::heads::Trunk;
use crate::completion::Completion;
use crate::engine::lane::Lane;
use crate::engine::operation::Operation;
use crate::memory::Memory;

/// The lane of the engine, as the way between the hosts.
pub(super) struct OverLane<'a> {
    lane: &'a mut Lane,
    now: Nanos,
    /// The group of the heads, if this member is one.
    heads: Option<GroupId>,
    /// Something has been posted.
    posted: bool,
}

impl OverLane<'_> {
    pub(super) fn new(lane: &mut Lane, now: Nanos, heads: Option<GroupId>) -> OverLane<'_> {
        OverLane { lane, now, heads, posted: false }
    }

    /// Whether something has been posted, which is to be written.
    pub(super) fn has_posted(&self) -> bool {
        self.posted
    }
}

impl Trunk for OverLane<'_> {
    fn post(
        &mut self,
        number: (u64, u16),
        signature: Signature,
        stretch_of: u64,
        memory: Memory,
    ) -> Result<Arc<Completion>, Fault> {
        let Some(heads) = self.heads else { return Err(self.fault()) };
        let completion = Arc::new(Completion::on_lane(0, signature));
        let operation = Operation::new(heads, memory, completion.clone()).stretch_of(stretch_of);
        self.posted = true;
        match self.lane.post(self.now, Some(number), signature, operation) {
            Ok(()) => Ok(completion),
            Err(_) => Err(self.fault()),
        }
    }

    fn fault(&self) -> Fault {
        let known = self.heads.and_then(|heads| self.lane.fault_of(heads));
        let (rank_a, rank_b) = (Rank(0), Rank(0));
        known.unwrap_or(Fault { reason: Reason::Protocol, node: NodeId(0), rank_a, rank_b, signatures: None })
    }
}
