//! On which lane an operation, or each of its parts, travels.
//!
//! ```text
//!   long vectors   |---- lane 0 ----|-- lane 1 --|      a contiguous part for each lane, by weight
//!   the others     lane 0, lane 1, lane 0, lane 1, ...  by their number in the group
//! ```
//! Both depend only on what all members know, so all decide alike. In a collective with a block for
//! each rank, every block is cut at the same offsets, so that a part is the same collective with
//! shorter blocks. No element is ever cut, and each lane folds in the same order, so the bits of a
//! result do not depend on the number of lanes.

use std::ops::Range;

use trib_proto::window;
use trib_wire::Signature;

/// The lanes of a job, as all its ranks know them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Lanes {
    weights: Box<[u32]>,
    /// Vectors that take at least this many bytes on the wire are cut.
    threshold: u64,
}

impl Lanes {
    /// The lanes with these weights.
    ///
    /// # Panics
    /// If there is no weight, or one of them is 0.
    pub(crate) fn new(weights: impl IntoIterator<Item = u32>, threshold: u64) -> Lanes {
        let weights: Box<[u32]> = weights.into_iter().collect();
        assert!(!weights.is_empty() && !weights.contains(&0), "a group has lanes, and each carries something");
        Lanes { weights, threshold }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.weights.len()
    }

    /// Whether an operation is cut.
    pub(crate) fn cut(&self, signature: &Signature, size: u32) -> bool {
        let long = |len: u64| len > 0 && len >= self.threshold;
        self.weights.len() > 1 && window::vector_bytes(signature, size).is_some_and(long)
    }

    /// The parts of `count` elements, one for each lane. Empty parts are kept, so that a mismatch
    /// between ranks shows on every lane.
    pub(crate) fn parts(&self, count: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        let whole: u128 = self.weights.iter().map(|weight| u128::from(*weight)).sum();
        let mut before = 0u128;
        let part = move |weight: &u32| {
            let start = u128::from(count) * before / whole;
            before += u128::from(*weight);
            let end = u128::from(count) * before / whole;
            // Both are at most `count`, so they fit.
            start as u64..end as u64
        };
        self.weights.iter().map(part)
    }

    /// The lane of the operation with this number if it is not cut.
    pub(crate) fn turn(&self, number: u64) -> usize {
        (number % self.weights.len() as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trib_wire::{Collective, DataType, ReduceOp, WireFormat};

    use super::*;

    /// The lane of an element, found without a formula: the first whose share of the whole reaches
    /// beyond the element.
    fn lane_of(weights: &[u32], count: u64, element: u64) -> usize {
        let whole: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
        let mut reach = 0;
        for (lane, weight) in weights.iter().enumerate() {
            reach += u64::from(*weight);
            if element < count * reach / whole {
                return lane;
            }
        }
        unreachable!("the last lane reaches to the end")
    }

    proptest! {
        #[test]
        fn every_element_is_where_the_plain_rule_says(
            weights in prop::collection::vec(1u32..1000, 1..9),
            count in 0u64..500,
        ) {
            let lanes = Lanes::new(weights.iter().copied(), 0);
            let found: Vec<usize> =
                lanes.parts(count).enumerate().flat_map(|(lane, part)| part.map(move |_| lane)).collect();
            let expected: Vec<usize> = (0..count).map(|element| lane_of(&weights, count, element)).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn parts_are_contiguous_and_as_long_as_their_weights_say(
            weights in prop::collection::vec(any::<u32>().prop_map(|weight| weight.max(1)), 1..9),
            count in any::<u64>(),
        ) {
            let lanes = Lanes::new(weights.iter().copied(), 0);
            let whole: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
            let mut end = 0;
            for (lane, part) in lanes.parts(count).enumerate() {
                prop_assert_eq!(part.start, end);
                end = part.end;
                let fair = u128::from(count) * u128::from(weights[lane]) / whole;
                prop_assert!(u128::from(part.end - part.start).abs_diff(fair) <= 1);
            }
            prop_assert_eq!(end, count);
        }
    }

    #[test]
    fn one_lane_cuts_nothing_and_short_vectors_take_turns() {
        let signature = |collective, count| Signature {
            collective,
            dtype: DataType::F64,
            op: ReduceOp::Sum,
            format: WireFormat::Plain,
            root: 0,
            count,
        };
        let (one, two) = (Lanes::new([7], 0), Lanes::new([1, 1], 80));
        assert!(!one.cut(&signature(Collective::Allreduce, 1 << 40), 2));
        assert!(!two.cut(&signature(Collective::Allreduce, 9), 8) && two.cut(&signature(Collective::Allreduce, 10), 8));
        // Eight blocks of two are a vector of sixteen.
        assert!(two.cut(&signature(Collective::ReduceScatter, 2), 8));
        assert!(!Lanes::new([1, 1], 0).cut(&signature(Collective::Barrier, 0), 8));
        assert_eq!([0, 1, 2, 3].map(|number| two.turn(number)), [0, 1, 0, 1]);
    }
}
