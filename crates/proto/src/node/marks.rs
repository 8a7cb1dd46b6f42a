//! Marks that no piece carries: who holds what, while the group rests.

use trib_wire::{ChildIndex, Header, Kind};

use super::at::At;
use super::info::Duty;
use super::output::{NodeOutput, Payload, Target};
use crate::Path;

/// All ranks below this node hold the results below `mark`. The group's root has nobody to tell.
pub(super) fn pass_up<B>(at: &mut At<'_, impl NodeOutput<Buffer = B>>, flags: u16, mark: u64) {
    if at.info.duty == Duty::Root {
        return;
    }
    if let Some(header) = at.up(Kind::Mark) {
        at.out.transmit(Target::Parent, Path::Stream, &Header { mark, flags, ..header }, Payload::None);
    }
}

/// All ranks of the group hold the results below `mark`.
pub(super) fn pass_down<B>(at: &mut At<'_, impl NodeOutput<Buffer = B>>, flags: u16, mark: u64) {
    let header = Header { mark, flags, ..at.down(Kind::Mark, ChildIndex::ALL) };
    at.out.transmit(Target::Children(at.info.all), Path::Stream, &header, Payload::None);
}
