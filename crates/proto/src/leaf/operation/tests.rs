//! Pieces (docs/protocol.md#5.1, 6.1) hold whole elements of any size, and together they are the
//! vector.

use proptest::prelude::*;
use proptest::sample::select;
use trib_wire::datatype::ELEMENT_MAX;
use trib_wire::{ChildIndex, Collective, DataType, Epoch, Header, JobId, Kind, NodeId, RankList, ReduceOp, Signature};

use super::{OpId, Operation, Seat, overlap};
use crate::limits::Limits;
use crate::time::Nanos;
use crate::window;

fn limits(payload: u32, segment: u32) -> Limits {
    Limits {
        groups: 1,
        window: 4,
        osts: 4,
        payload,
        streams: 1,
        segment,
        staging: 1,
        flight: 1,
        stream_threshold: 0,
        lease_operations: 0,
        heartbeat: Nanos::from_millis(100),
        dead_after: Nanos::from_millis(1000),
    }
}

#[derive(Debug)]
struct Case {
    signature: Signature,
    size: u32,
    me: u32,
    limits: Limits,
    streamed: bool,
    base: u64,
}

fn case() -> impl Strategy<Value = Case> {
    let computing = select(vec![Collective::Allreduce, Collective::Reduce, Collective::ReduceScatter]);
    let what = (computing, select(DataType::ALL), 0u64..3000, 1u32..9);
    // Limits are drawn in units of 8 bytes: the smallest ones, where the choice of the piece
    // matters most, and those of real jobs.
    let eighths = || prop_oneof![ELEMENT_MAX as u32 / 8..20, Just(171u32), Just(6144u32)];
    (what, eighths(), eighths(), any::<bool>(), 0u64..100, any::<(u32, u32)>()).prop_map(
        |((collective, dtype, count, size), payload, segment, streamed, base, (root, me))| Case {
            signature: Signature { collective, dtype, op: ReduceOp::MaxLoc, root: root % size, count },
            size,
            me: me % size,
            limits: limits(8 * payload, 8 * segment),
            streamed,
            base,
        },
    )
}

impl Case {
    fn operation(&self) -> (Operation, u64) {
        let total = window::vector_len(&self.signature, self.size).expect("a short vector");
        let element = self.signature.dtype.size() as u32;
        let limits = &self.limits;
        assert!(limits.are_valid());
        let piece = if self.streamed { limits.segment_for(total, element) } else { limits.fragment_for(element) };
        let most = if self.streamed { limits.segment } else { limits.payload };
        assert!(piece <= most && piece + element > most.min(16 * 1024), "{piece} of {most}, elements of {element}");
        let operation =
            Operation::new(OpId(0), self.signature, Seat { size: self.size, me: self.me }, (1, 0), total, piece);
        (operation.starting_at(self.base), total)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn pieces_follow_each_other_and_cut_no_element(case in case()) {
        let (operation, total) = case.operation();
        let element = case.signature.dtype.size() as u64;
        // These ranks stand for those below one node.
        let some = RankList::from_ranks(0..=case.me);
        let mut at = 0;
        for seq in operation.base..operation.end() {
            let empty = Header::new(Kind::Contribution, JobId(1), Epoch(1), NodeId(0), ChildIndex(0));
            let (header, slice) = operation.describe(seq, empty);
            prop_assert_eq!(header.offset, at);
            at += u64::from(header.extent);
            let whole = |bytes: u64| bytes.is_multiple_of(element);
            prop_assert!(whole(header.offset) && whole(u64::from(header.extent)), "{:?}", header);
            prop_assert!(whole(u64::from(header.window)) && whole(u64::from(header.payload_len)), "{:?}", header);
            prop_assert_eq!(slice.map_or(0, |s| s.len), header.payload_len);
            // This is what one rank gets of the piece, and what a node passes on to several.
            let piece = header.offset..at;
            let hulls = [window::gotten_by(&case.signature, &some, &piece), overlap(&piece, &operation.gotten)];
            prop_assert!(hulls.iter().all(|hull| whole(hull.start) && whole(hull.end)), "{:?} in {:?}", hulls, piece);
        }
        prop_assert_eq!(at, total);
    }
}
