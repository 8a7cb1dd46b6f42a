//! The numbers of a group's pieces are ones that every frame can carry.

use trib_proto::leaf::{LeafError, NewGroup, Post};
use trib_proto::{LeafConfig, LeafCore, Limits, Nanos, Path};
use trib_wire::header::NUMBER_MAX;
use trib_wire::{
    Body, ChildIndex, Collective, DataType, Epoch, Generation, GroupIndex, GroupKey, GroupName, Header, JobId, Kind,
    Marks, NodeId, Rank, RankList, ReduceOp, Signature, WireFormat,
};

use crate::flight::Wire;

/// Segments are as short as can be, so that few vectors have more of them than there are numbers.
const SEGMENT: u32 = 16;
const NOW: Nanos = Nanos(1);

#[test]
fn a_group_whose_numbers_are_used_up_takes_no_more_vectors() {
    let limits = Limits {
        groups: 1,
        window: 1,
        osts: 1,
        payload: SEGMENT,
        streams: 1,
        segment: SEGMENT,
        staging: 1,
        flight: 1,
        control_memory: 1 << 20,
        stream_threshold: 0,
        lease_operations: 0,
        heartbeat: Nanos::from_millis(1000),
        dead_after: Nanos::from_millis(60_000),
    };
    let (job, epoch, rank, node, child) = (JobId(1), Epoch(1), Rank(0), NodeId(2), ChildIndex(0));
    let (world_size, recovers, memory, strict) = (2, false, u64::MAX, false);
    let config = LeafConfig { job, epoch, rank, world_size, node, child, limits, recovers, memory, strict };
    let (mut core, mut wire) = (LeafCore::new(config), Wire::default());
    let (group, members) = (core.next_group(), RankList::world(2));
    let new = NewGroup { members: members.clone(), tag: 0, name: GroupName::default(), companion: false };
    core.create_group(group, new, &mut wire).unwrap();
    let of_group = |kind, seq| {
        let head = Header::new(kind, job, epoch, node, child);
        Header { group: GroupIndex(0), generation: Generation(1), seq, ..head }
    };
    let named = Body::Ready(GroupKey { tag: 0, creation: 0, members }, Marks::default());
    core.on_frame(NOW, Path::Stream, &of_group(Kind::Ready, 0), named, &mut wire);
    // The longest vector that there may be has an eighth of all numbers.
    let signature = Signature {
        collective: Collective::Allreduce,
        dtype: DataType::U8,
        op: ReduceOp::Max,
        format: WireFormat::Plain,
        root: 0,
        count: (1 << 63) - 1,
    };
    let mut post = |core: &mut LeafCore| {
        let post = Post { id: core.next_op(), number: None, signature };
        core.post(NOW, group, &post, &mut wire)
    };
    for _ in 0..NUMBER_MAX / ((1 << 63) / u64::from(SEGMENT)) {
        assert_eq!(post(&mut core), Ok(Path::Stream));
    }
    assert_eq!(post(&mut core), Err(LeafError::TooLong));
    // How far the rank has got can still be said.
    core.on_frame(NOW, Path::Stream, &of_group(Kind::Grant, 1), Body::None, &mut wire);
    core.on_frame(NOW, Path::Stream, &of_group(Kind::Revoke, 1), Body::None, &mut wire);
    assert!(wire.0.iter().any(|header| header.kind == Kind::StopAt && header.seq == NUMBER_MAX));
}
