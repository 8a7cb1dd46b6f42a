//! The hulls (docs/protocol.md#8), compared with the union over single ranks.

use core::ops::Range;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use trib_wire::{Collective, DataType, RankList, ReduceOp, Signature, WireFormat};

use super::{given, given_by, gotten, gotten_by, vector_bytes, vector_elements};

/// An operation of a group of this many ranks.
fn operation() -> impl Strategy<Value = (Signature, u32)> {
    let pair = DataType::from_name("float64:int32").expect("a pair of 12 bytes");
    let dtype = select(vec![DataType::U8, DataType::F32, DataType::I64, pair]);
    (select(Collective::ALL), dtype, 0u64..40, 1u32..48).prop_flat_map(|(collective, dtype, count, size)| {
        (0..size).prop_map(move |root| {
            (
                Signature {
                    collective,
                    dtype,
                    op: ReduceOp::Max,
                    format: WireFormat::Plain,
                    root,
                    count: count * u64::from(size % 3 + 1),
                },
                size,
            )
        })
    })
}

/// Some ranks of a group in an order that makes runs: ascending, backwards, by residue, or any
/// order.
fn some_ranks(size: u32) -> impl Strategy<Value = Vec<u32>> {
    let all: Vec<u32> = (0..size).collect();
    let strided = (1..=size, 0..size).prop_map(move |(step, first)| (first..size).step_by(step as usize).collect());
    let any_of = subsequence(all, 1..=size as usize);
    prop_oneof![strided, any_of.clone(), any_of.prop_shuffle()].prop_flat_map(|ranks: Vec<u32>| {
        any::<bool>().prop_map(
            move |backwards| {
                if backwards { ranks.iter().rev().copied().collect() } else { ranks.clone() }
            },
        )
    })
}

prop_compose! {
    fn case()((signature, size) in operation())(
        signature in Just(signature),
        size in Just(size),
        ranks in some_ranks(size),
        ends in prop::array::uniform2(0..=vector_elements(&signature, size).unwrap_or(0)),
    ) -> (Signature, u32, Vec<u32>, Range<u64>) {
        (signature, size, ranks, ends[0].min(ends[1])..ends[0].max(ends[1]))
    }
}

/// The smallest range inside `piece` that has all elements of all parts; `None` if there is
/// none.
fn hull(parts: impl Iterator<Item = Range<u64>>, piece: &Range<u64>) -> Option<Range<u64>> {
    parts
        .map(|part| part.start.max(piece.start)..part.end.min(piece.end))
        .filter(|part| !part.is_empty())
        .reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
}

fn non_empty(range: Range<u64>) -> Option<Range<u64>> {
    (!range.is_empty()).then_some(range)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_ranks_give_is_the_hull_of_what_each_gives((signature, size, ranks, piece) in case()) {
        let list = RankList::from_ranks(ranks.iter().copied());
        let naive = hull(ranks.iter().map(|rank| given(&signature, size, *rank)), &piece);
        prop_assert_eq!(non_empty(given_by(&signature, &list, &piece)), naive);
    }

    #[test]
    fn what_ranks_get_is_the_hull_of_what_each_gets((signature, size, ranks, piece) in case()) {
        let list = RankList::from_ranks(ranks.iter().copied());
        let gets = |rank: &u32| {
            let own = given(&signature, size, *rank);
            let has = signature.collective == Collective::Allgather && own.start <= piece.start && piece.end <= own.end;
            if has { 0..0 } else { gotten(&signature, size, *rank) }
        };
        let naive = hull(ranks.iter().map(gets), &piece);
        prop_assert_eq!(non_empty(gotten_by(&signature, &list, &piece)), naive);
    }

    #[test]
    fn an_empty_hull_still_lies_in_the_piece((signature, _, ranks, piece) in case()) {
        let list = RankList::from_ranks(ranks);
        for range in [given_by(&signature, &list, &piece), gotten_by(&signature, &list, &piece)] {
            prop_assert!(piece.start <= range.start && range.start <= range.end && range.end <= piece.end);
        }
    }

    #[test]
    fn all_ranks_together_give_the_whole_vector((signature, size, _, piece) in case()) {
        let all = RankList::world(size);
        prop_assert_eq!(given_by(&signature, &all, &piece), piece);
    }
}

#[test]
fn the_table_of_the_module() {
    let of = |collective| Signature {
        collective,
        dtype: DataType::F32,
        op: ReduceOp::Sum,
        format: WireFormat::Plain,
        root: 1,
        count: 10,
    };
    let table = [
        (Collective::Barrier, 0, [0..0, 0..0], [0..0, 0..0]),
        (Collective::Allreduce, 10, [0..10, 0..10], [0..10, 0..10]),
        (Collective::Reduce, 10, [0..10, 0..10], [0..0, 0..10]),
        (Collective::Bcast, 10, [0..0, 0..10], [0..10, 0..0]),
        (Collective::ReduceScatter, 30, [0..30, 0..30], [0..10, 10..20]),
        (Collective::Allgather, 30, [0..10, 10..20], [0..30, 0..30]),
    ];
    for (collective, len, gives, gets) in table {
        let signature = of(collective);
        assert_eq!(vector_elements(&signature, 3), Some(len), "{collective}");
        assert_eq!(vector_bytes(&signature, 3), Some(4 * len), "{collective}");
        for rank in 0..2 {
            assert_eq!(given(&signature, 3, rank), gives[rank as usize], "{collective}, rank {rank}");
            assert_eq!(gotten(&signature, 3, rank), gets[rank as usize], "{collective}, rank {rank}");
        }
    }
}

#[test]
fn vectors_of_more_than_63_bits_of_bytes_have_no_length() {
    let of = |collective, count| Signature {
        collective,
        dtype: DataType::F64,
        op: ReduceOp::Sum,
        format: WireFormat::Plain,
        root: 0,
        count,
    };
    assert_eq!(vector_elements(&of(Collective::Allreduce, (1 << 60) - 1), 4), Some((1 << 60) - 1));
    assert_eq!(vector_bytes(&of(Collective::Allreduce, (1 << 60) - 1), 4), Some((1 << 63) - 8));
    assert_eq!(vector_elements(&of(Collective::Allreduce, 1 << 60), 4), None);
    assert_eq!(vector_elements(&of(Collective::Allreduce, u64::MAX), 4), None);
    assert_eq!(vector_elements(&of(Collective::Barrier, u64::MAX), 4), None);
    assert_eq!(vector_elements(&of(Collective::Allgather, 1 << 58), 4), None);
    assert_eq!(vector_elements(&of(Collective::Allgather, 1 << 58), u32::MAX), None);
}
