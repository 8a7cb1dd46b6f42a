//! The hulls (docs/protocol.md#8), compared with the union over single ranks.

use core::ops::Range;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use trib_wire::{Collective, DataType, RankList, ReduceOp, Signature};

use super::{given, given_by, gotten, gotten_by, vector_len};

/// An operation of a group of this many ranks.
fn operation() -> impl Strategy<Value = (Signature, u32)> {
    let pair = DataType::from_name("float64:int32").expect("a pair of 12 bytes");
    let dtype = select(vec![DataType::U8, DataType::F32, DataType::I64, pair]);
    (select(Collective::ALL), dtype, 0u64..40, 1u32..48).prop_flat_map(|(collective, dtype, count, size)| {
        (0..size).prop_map(move |root| {
            (Signature { collective, dtype, op: ReduceOp::Max, root, count: count * u64::from(size % 3 + 1) }, size)
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
        ends in prop::array::uniform2(0..=vector_len(&signature, size).unwrap_or(0)),
    ) -> (Signature, u32, Vec<u32>, Range<u64>) {
        (signature, size, ranks, ends[0].min(ends[1])..ends[0].max(ends[1]))
    }
}

/// The smallest range inside `fragment` that has all bytes of all parts; `None` if there is no
/// byte.
fn hull(parts: impl Iterator<Item = Range<u64>>, fragment: &Range<u64>) -> Option<Range<u64>> {
    parts
        .map(|part| part.start.max(fragment.start)..part.end.min(fragment.end))
        .filter(|part| !part.is_empty())
        .reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
}

fn non_empty(range: Range<u64>) -> Option<Range<u64>> {
    (!range.is_empty()).then_some(range)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_ranks_give_is_the_hull_of_what_each_gives((signature, size, ranks, fragment) in case()) {
        let list = RankList::from_ranks(ranks.iter().copied());
        let naive = hull(ranks.iter().map(|rank| given(&signature, size, *rank)), &fragment);
        prop_assert_eq!(non_empty(given_by(&signature, &list, &fragment)), naive);
    }

    #[test]
    fn what_ranks_get_is_the_hull_of_what_each_gets((signature, size, ranks, fragment) in case()) {
        let list = RankList::from_ranks(ranks.iter().copied());
        let naive = hull(ranks.iter().map(|rank| gotten(&signature, size, *rank)), &fragment);
        prop_assert_eq!(non_empty(gotten_by(&signature, &list, &fragment)), naive);
    }

    #[test]
    fn an_empty_hull_still_lies_in_the_fragment((signature, _, ranks, fragment) in case()) {
        let list = RankList::from_ranks(ranks);
        for range in [given_by(&signature, &list, &fragment), gotten_by(&signature, &list, &fragment)] {
            prop_assert!(fragment.start <= range.start && range.start <= range.end && range.end <= fragment.end);
        }
    }

    #[test]
    fn all_ranks_together_give_the_whole_vector((signature, size, _, fragment) in case()) {
        let all = RankList::world(size);
        prop_assert_eq!(given_by(&signature, &all, &fragment), fragment);
    }
}

#[test]
fn the_table_of_the_module() {
    let of = |collective| Signature { collective, dtype: DataType::F32, op: ReduceOp::Sum, root: 1, count: 10 };
    let table = [
        (Collective::Barrier, 0, [0..0, 0..0], [0..0, 0..0]),
        (Collective::Allreduce, 40, [0..40, 0..40], [0..40, 0..40]),
        (Collective::Reduce, 40, [0..40, 0..40], [0..0, 0..40]),
        (Collective::Bcast, 40, [0..0, 0..40], [0..40, 0..0]),
        (Collective::ReduceScatter, 120, [0..120, 0..120], [0..40, 40..80]),
        (Collective::Allgather, 120, [0..40, 40..80], [0..120, 0..120]),
    ];
    for (collective, len, gives, gets) in table {
        let signature = of(collective);
        assert_eq!(vector_len(&signature, 3), Some(len), "{collective}");
        for rank in 0..2 {
            assert_eq!(given(&signature, 3, rank), gives[rank as usize], "{collective}, rank {rank}");
            assert_eq!(gotten(&signature, 3, rank), gets[rank as usize], "{collective}, rank {rank}");
        }
    }
}

#[test]
fn vectors_beyond_63_bits_have_no_length() {
    let of = |collective, count| Signature { collective, dtype: DataType::F64, op: ReduceOp::Sum, root: 0, count };
    assert_eq!(vector_len(&of(Collective::Allreduce, (1 << 60) - 1), 4), Some((1 << 63) - 8));
    assert_eq!(vector_len(&of(Collective::Allreduce, 1 << 60), 4), None);
    assert_eq!(vector_len(&of(Collective::Allreduce, u64::MAX), 4), None);
    assert_eq!(vector_len(&of(Collective::Allgather, 1 << 58), 4), None);
    assert_eq!(vector_len(&of(Collective::Allgather, 1 << 58), u32::MAX), None);
}
