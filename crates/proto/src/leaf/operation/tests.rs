//! Pieces (docs/protocol.md#5.1, 6.1) hold whole elements of any size, and together they are the
//! vector, whatever its wire format.

use proptest::prelude::*;
use proptest::sample::select;
use trib_wire::datatype::ELEMENT_MAX;
use trib_wire::{
    ChildIndex, Collective, DataType, Epoch, Header, JobId, Kind, Layout, NodeId, RankList, ReduceOp, Signature, Way,
    WireFormat,
};

use super::{Cut, OpId, Operation, Seat, overlap};
use crate::limits::{Limits, SEGMENT_MIN};
use crate::time::Nanos;
use crate::{Path, window};

fn limits(payload: u32, segment: u32, stream_threshold: u64) -> Limits {
    Limits {
        groups: 1,
        window: 4,
        osts: 4,
        payload,
        streams: 1,
        segment,
        staging: 1,
        flight: 1,
        control_memory: 1 << 20,
        stream_threshold,
        lease_operations: 0,
        heartbeat: Nanos::from_millis(100),
        dead_after: Nanos::from_millis(1000),
    }
}

#[derive(Debug)]
struct Case {
    signature: Signature,
    layout: Layout,
    size: u32,
    me: u32,
    limits: Limits,
    base: u64,
    /// How many times as long the call is of which it is a stretch.
    stretches: u64,
}

/// The layout of a type that exists, or one of which elements are wider or narrower than the
/// program's, each way differently.
fn layout(dtype: DataType) -> impl Strategy<Value = Layout> {
    let size = || 1..=ELEMENT_MAX as u64;
    let made_up = (size(), size(), size()).prop_map(|(from_rank, between, down)| Layout::new(from_rank, between, down));
    prop_oneof![Just(WireFormat::Plain.layout(dtype)), made_up]
}

fn case() -> impl Strategy<Value = Case> {
    let computing = select(vec![Collective::Allreduce, Collective::Reduce, Collective::ReduceScatter]);
    let typed = select(DataType::ALL).prop_flat_map(|dtype| (Just(dtype), layout(dtype)));
    let what = (computing, typed, 0u64..3000, 1u32..9);
    // Limits are drawn in units of 8 bytes: the smallest ones, where the choice of the piece
    // matters most, and those of real jobs.
    let eighths = || prop_oneof![ELEMENT_MAX as u32 / 8..20, Just(171u32), Just(6144u32)];
    let threshold = prop_oneof![Just(0), Just(u64::MAX), 0u64..60_000];
    (what, eighths(), eighths(), threshold, (0u64..100, 1u64..40), any::<(u32, u32)>()).prop_map(
        |((collective, (dtype, layout), count, size), payload, segment, threshold, (base, stretches), (root, me))| {
            let (op, format) = (ReduceOp::MaxLoc, WireFormat::Plain);
            Case {
                signature: Signature { collective, dtype, op, format, root: root % size, count },
                layout,
                size,
                me: me % size,
                limits: limits(8 * payload, 8 * segment, threshold),
                base,
                stretches,
            }
        },
    )
}

impl Case {
    fn operation(&self) -> (Operation, u64) {
        let total = window::vector_elements(&self.signature, self.size).expect("a short vector");
        assert!(self.limits.are_valid());
        let lengths = (total, self.stretches * total);
        let cut = Cut::new(&self.limits, self.layout, lengths).expect("elements are no longer than the least piece");
        let cut = cut.with_turns(&self.signature);
        let seat = Seat { size: self.size, me: self.me };
        (Operation::new(OpId(0), self.signature, seat, (1, 0), cut).starting_at(self.base), total)
    }

    /// The most bytes that elements take on any way, counted without the code under test.
    fn most(&self, elements: u64) -> u64 {
        Way::ALL.iter().map(|way| elements * self.layout.bytes(&(0..1), *way)).max().unwrap_or(0)
    }
}

fn contribution(operation: &Operation, seq: u64) -> Header {
    operation.describe(seq, Header::new(Kind::Contribution, JobId(1), Epoch(1), NodeId(0), ChildIndex(0))).0
}

#[test]
fn a_piece_without_room_for_an_element_is_no_piece() {
    let layout = Layout::new(36, 36, 36);
    let cut = |payload, segment, threshold| Cut::new(&limits(payload, segment, threshold), layout, (5, 5));
    assert!(cut(32, 64, u64::MAX).is_none() && cut(64, 32, 0).is_none());
    assert!(cut(40, 32, u64::MAX).is_some() && cut(32, 40, 0).is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn pieces_follow_each_other_and_cut_no_element(case in case()) {
        let (operation, total) = case.operation();
        let streamed = case.most(total) > case.limits.stream_threshold;
        prop_assert_eq!(operation.cut.path, if streamed { Path::Stream } else { Path::Datagram });
        let most = u64::from(if streamed { case.limits.segment } else { case.limits.payload });
        let mut at = 0;
        for seq in operation.base..operation.end() {
            let empty = Header::new(Kind::Contribution, JobId(1), Epoch(1), NodeId(0), ChildIndex(0));
            let (header, slice) = operation.describe(seq, empty);
            let piece = header.piece();
            prop_assert_eq!(piece.start, at);
            at = piece.end;
            // Every piece but the last is as large as the limit allows on the widest way.
            prop_assert!(case.most(header.elements.into()) <= most, "{:?} has more than {} bytes", header, most);
            if seq + 1 < operation.end() {
                let one_more = case.most(u64::from(header.elements) + 1);
                prop_assert!(one_more > most.min(SEGMENT_MIN.into()), "{:?} has room to {} bytes", header, most);
            }
            // The payload is what this rank gives, in the form of a rank.
            let given = overlap(&piece, &operation.given);
            let bytes = (given.end - given.start) * case.layout.bytes(&(0..1), Way::FromRank);
            prop_assert_eq!(u64::from(header.payload_len), bytes);
            prop_assert_eq!(slice.map_or(0, |s| s.bytes), header.payload_len);
            prop_assert_eq!(slice.map_or(given.start..given.start, |s| s.range()), given.start..given.end);
            prop_assert!(bytes <= most && (bytes == 0 || piece.start + u64::from(header.skip) == given.start));
        }
        prop_assert_eq!(at, total);
    }

    #[test]
    fn a_result_is_accepted_in_the_form_of_results_and_no_other(case in case(), by in 1u32..5) {
        let (operation, _) = case.operation();
        let seqs = operation.base..operation.end();
        let mut due = operation.due(operation.end());
        for seq in seqs.start..seqs.end.min(seqs.start + 20) {
            let piece = contribution(&operation, seq);
            // A node works out what the ranks below get by the hull over them; this rank is one.
            let gotten = window::gotten_by(&case.signature, &RankList::from_ranks([case.me]), &piece.piece());
            let bytes = (gotten.end - gotten.start) * case.layout.bytes(&(0..1), Way::Down);
            let result = Header { kind: Kind::Result, ..piece }.carrying(&gotten, bytes as u32);
            prop_assert!(operation.accepts(&result), "{:?}", result);
            let slice = operation.result_slice(&result);
            prop_assert_eq!(slice.map(|s| (s.range(), u64::from(s.bytes))), (bytes > 0).then_some((gotten, bytes)));
            let others = [
                Header { first: result.first + u64::from(by), ..result },
                Header { elements: result.elements + by, ..result },
                Header { payload_len: result.payload_len + by, ..result },
                Header { skip: result.skip + by, ..result },
            ];
            // A payload of no elements begins nowhere.
            for other in &others[..if bytes > 0 { 4 } else { 3 }] {
                prop_assert!(!operation.accepts(other), "{:?}", other);
            }
            due -= bytes;
        }
        prop_assert!(due == 0 || seqs.end - seqs.start > 20, "{} bytes are due for nothing", due);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn long_blocks_of_an_allgather_take_turns_and_nobody_gets_its_own(case in case()) {
        let case = Case { signature: Signature { collective: Collective::Allgather, ..case.signature }, ..case };
        let ((operation, total), block) = (case.operation(), case.signature.count);
        let pieces: Vec<_> = (operation.base..operation.end()).map(|seq| contribution(&operation, seq).piece()).collect();
        let mut ordered = pieces.clone();
        ordered.sort_by_key(|piece| piece.start);
        let ends: Vec<u64> = std::iter::once(0).chain(ordered.iter().map(|piece| piece.end)).collect();
        let starts: Vec<u64> = ordered.iter().map(|piece| piece.start).collect();
        prop_assert_eq!((&ends[..starts.len()], ends.last()), (&starts[..], Some(&total)));
        let takes_turns = operation.cut.path == Path::Stream && block > 0 && operation.cut.piece <= block && case.size > 1;
        prop_assert_eq!(operation.cut.blocks > 1, takes_turns);
        if takes_turns {
            for (number, piece) in (0..).zip(&pieces) {
                let turn = number % u64::from(case.size);
                prop_assert_eq!((piece.start / block, (piece.end - 1) / block), (turn, turn));
            }
        }
        let me = RankList::from_ranks([case.me]);
        let gets = |piece: &core::ops::Range<u64>| {
            let gotten = window::gotten_by(&case.signature, &me, piece);
            case.layout.bytes(&gotten, Way::Down)
        };
        let given: Vec<_> = pieces.iter().map(|piece| overlap(piece, &operation.given)).collect();
        for (number, piece) in pieces.iter().enumerate() {
            let seq = operation.base + number as u64;
            let gotten = window::gotten_by(&case.signature, &me, piece);
            let own = operation.given.start <= piece.start && piece.end <= operation.given.end;
            prop_assert_eq!(gotten.is_empty(), own || piece.is_empty());
            let result = Header { kind: Kind::Result, ..contribution(&operation, seq) }.carrying(&gotten, gets(piece) as u32);
            prop_assert!(operation.accepts(&result), "{:?}", result);
            let slice = operation.result_slice(&result).map(|slice| slice.range());
            prop_assert_eq!(slice, Some(gotten).filter(|gotten| !gotten.is_empty()));
            // What is due of the pieces before this one, and what is needed from it on.
            prop_assert_eq!(operation.due(seq), pieces[..number].iter().map(gets).sum::<u64>());
            let left: u64 = given[number..].iter().map(|given| given.end - given.start).sum();
            let needed = operation.given_from(seq);
            prop_assert_eq!((needed.end - needed.start, needed.end), (left, if left > 0 { operation.given.end } else { needed.end }));
            let resumed = case.operation().0.resuming_at(seq);
            prop_assert_eq!(resumed.due(operation.end()), pieces[number..].iter().map(gets).sum::<u64>());
        }
    }
}

/// A node may say any mark. Beyond the operation nothing of it is needed, however far.
#[test]
fn of_an_operation_that_a_mark_is_beyond_nothing_is_given() {
    let signature = Signature {
        collective: Collective::Allreduce,
        dtype: DataType::F64,
        op: ReduceOp::Sum,
        format: WireFormat::Plain,
        root: 0,
        count: 100,
    };
    let case = Case {
        signature,
        layout: signature.layout(),
        size: 2,
        me: 0,
        limits: limits(16, 16, u64::MAX),
        base: 5,
        stretches: 1,
    };
    let (operation, total) = case.operation();
    for mark in [operation.end(), operation.end() + 1, 1 << 62, u64::MAX] {
        assert_eq!(operation.given_from(mark), total..total, "mark {mark}");
    }
    assert_eq!(operation.given_from(operation.end() - 1), total - 2..total);
}
