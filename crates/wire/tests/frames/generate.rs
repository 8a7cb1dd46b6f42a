//! Generates any header and any body that a sender may write.

use proptest::prelude::*;
use proptest::sample::select;
use trib_wire::body::{Held, LATE_MAX, Late};
use trib_wire::header::{NUMBER_MAX, PAYLOAD_MAX};
use trib_wire::standing::MARK_MAX;
use trib_wire::{
    Body, ChildIndex, Collective, DataType, Epoch, Fault, Generation, GroupIndex, GroupKey, GroupName, Header, JobId,
    Kind, Marks, NodeId, Placement, Rank, RankList, Reason, ReduceOp, Signature, Standing, Way, WireFormat,
};

pub(crate) fn signature() -> impl Strategy<Value = Signature> {
    let what = (select(Collective::ALL), select(DataType::ALL), select(ReduceOp::ALL), select(WireFormat::ALL));
    (what, any::<u32>(), any::<u64>()).prop_map(|((collective, dtype, op, format), root, count)| Signature {
        collective,
        dtype,
        op,
        format,
        root,
        count,
    })
}

fn child() -> impl Strategy<Value = ChildIndex> {
    prop_oneof![(0u16..64).prop_map(ChildIndex), Just(ChildIndex::ALL)]
}

/// Header fields before the vector's: job, epoch, node, child, group, generation, flags, lane,
/// witness.
fn base() -> impl Strategy<Value = Header> {
    let edge = (select(Kind::ALL), any::<u32>(), any::<u32>(), any::<u16>(), child());
    (edge, any::<(u32, u32, u16, u16, u32)>(), signature()).prop_map(|(edge, more, signature)| {
        let (kind, job, epoch, node, child) = edge;
        let (group, generation, flags, lane, witness) = more;
        Header {
            group: GroupIndex(group),
            generation: Generation(generation),
            flags,
            lane,
            witness,
            signature,
            ..Header::new(kind, JobId(job), Epoch(epoch), NodeId(node), child)
        }
    })
}

prop_compose! {
    /// The payload is a run of elements of the piece, and the piece one of 2^64, whatever the kind.
    pub(crate) fn header()(
        base in base(),
        (op_seq, seq) in (0..=NUMBER_MAX, 0..=NUMBER_MAX),
        (mark, payload_crc) in any::<(u64, u32)>(),
        first in 0..u64::MAX - PAYLOAD_MAX as u64,
        most in 0..=PAYLOAD_MAX as u32,
        way in select(Way::ALL),
        (low, high) in (any::<proptest::sample::Index>(), any::<proptest::sample::Index>()),
    ) -> Header {
        let layout = base.signature.layout();
        let elements = layout.within(most);
        let ends = [low.index(elements as usize + 1) as u64, high.index(elements as usize + 1) as u64];
        let (skip, end) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        let way = *Way::of(base.kind).iter().find(|of_kind| **of_kind == way).unwrap_or(&Way::Down);
        let payload_len = layout.bytes(&(first + skip..first + end), way) as u32;
        Header { op_seq, seq, mark, payload_crc, first, elements, skip: skip as u32, payload_len, ..base }
    }
}

pub(crate) fn ranks() -> impl Strategy<Value = RankList> {
    let runs = (0u32..1000, 1u32..6, prop_oneof![-3i64..0, 1i64..4]);
    prop::collection::vec(runs, 0..5).prop_map(|runs| {
        RankList::from_ranks(runs.into_iter().flat_map(|(first, count, stride)| {
            (0..i64::from(count)).map(move |i| (i64::from(first) + 20 + i * stride) as u32)
        }))
    })
}

fn key() -> impl Strategy<Value = GroupKey> {
    (any::<u64>(), any::<u32>(), ranks()).prop_map(|(tag, creation, members)| GroupKey { tag, creation, members })
}

fn fault() -> impl Strategy<Value = Fault> {
    let ends = any::<(u16, u32, u32)>();
    (select(Reason::ALL), ends, prop::option::of((signature(), signature()))).prop_map(
        |(reason, (node, rank_a, rank_b), signatures)| Fault {
            reason,
            node: NodeId(node),
            rank_a: Rank(rank_a),
            rank_b: Rank(rank_b),
            signatures,
        },
    )
}

fn marks() -> impl Strategy<Value = Marks> {
    (0..=MARK_MAX, 0..=MARK_MAX).prop_map(|(fragments, segments)| Marks { fragments, segments })
}

fn standing() -> impl Strategy<Value = Standing> {
    (any::<[bool; 7]>(), marks()).prop_map(|([resumed, exists, some_left, all, freed, waits, companion], marks)| {
        let all_left = some_left && all;
        Standing { resumed, exists, some_left, all_left, freed: freed || all_left, waits, companion, marks }
    })
}

/// A placement in which some nodes have moved once or more.
pub(crate) fn placement() -> impl Strategy<Value = Placement> {
    prop::collection::vec(0u16..6, 0..12)
        .prop_map(|moves| moves.into_iter().fold(Placement::FIRST, |placement, node| placement.without(NodeId(node))))
}

/// A kind with a body that it may have.
pub(crate) fn body() -> impl Strategy<Value = (Kind, Body)> {
    let bare: Vec<Kind> = Kind::ALL.iter().copied().filter(|kind| !has_body(*kind)).collect();
    prop_oneof![
        select(bare).prop_map(|kind| (kind, Body::None)),
        (key(), prop::option::of(fault()), standing(), ranks(), any::<String>()).prop_map(
            |(key, fault, standing, nodes, name)| {
                (Kind::Join, Body::Join { key, fault, standing, nodes, name: GroupName::new(&name) })
            }
        ),
        (key(), marks()).prop_map(|(key, marks)| (Kind::Ready, Body::Ready(key, marks))),
        key().prop_map(|key| (Kind::Ask, Body::Ask(key))),
        placement().prop_map(|placement| (Kind::Move, Body::Move(placement))),
        (key(), fault()).prop_map(|(key, fault)| (Kind::Refused, Body::Refused(key, fault))),
        any::<(u16, u64, u64, u64)>().prop_map(|(node, missing, have, have_base)| {
            (Kind::Held, Body::Held(Held { node: NodeId(node), missing, have, have_base }))
        }),
        select(Reason::ALL).prop_map(|reason| (Kind::Nack, Body::Nack(reason))),
        fault().prop_map(|fault| (Kind::GroupError, Body::GroupError(fault))),
        ranks().prop_map(|ranks| (Kind::Lost, Body::Lost(ranks))),
        (any::<u32>(), ranks()).prop_map(|(waited_ms, ranks)| {
            let ranks = RankList::from_ranks(ranks.iter().take(LATE_MAX as usize).map(|rank| rank.0));
            (Kind::Late, Body::Late(Late { waited_ms, ranks }))
        }),
    ]
}

pub(crate) fn has_body(kind: Kind) -> bool {
    use Kind::*;
    matches!(kind, Join | Ready | Refused | Ask | Held | Nack | GroupError | Lost | Move | Late)
}
