//! Which results of a group's fragments are here: all below a number, and some of the next 64.

/// A set of numbers that is whole up to a point.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Delivered {
    /// Everything below this number is in the set, and this number is not.
    low: u64,
    /// Bit i is set if `low + i` is in the set.
    bits: u64,
}

impl Delivered {
    /// All numbers below this one.
    pub(super) fn below(low: u64) -> Delivered {
        Delivered { low, bits: 0 }
    }

    /// The lowest number that is not in the set.
    pub(super) fn low(self) -> u64 {
        self.low
    }

    pub(super) fn contains(self, number: u64) -> bool {
        match number.checked_sub(self.low) {
            None => true,
            Some(ahead) => ahead < 64 && self.bits >> ahead & 1 != 0,
        }
    }

    /// Adds a number less than 64 above the lowest missing one. Returns whether that one moves.
    pub(super) fn insert(&mut self, number: u64) -> bool {
        if let Some(ahead) = number.checked_sub(self.low).filter(|ahead| *ahead < 64) {
            self.bits |= 1 << ahead;
        }
        self.close_up()
    }

    /// Adds the numbers of another set.
    pub(super) fn unite(&mut self, other: Delivered) {
        let (lower, higher) = if self.low < other.low { (*self, other) } else { (other, *self) };
        let behind = higher.low - lower.low;
        let bits = if behind < 64 { lower.bits >> behind } else { 0 };
        *self = Delivered { low: higher.low, bits: higher.bits | bits };
        self.close_up();
    }

    fn close_up(&mut self) -> bool {
        let run = self.bits.trailing_ones();
        self.low += u64::from(run);
        self.bits = self.bits.checked_shr(run).unwrap_or(0);
        run > 0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn of(numbers: &BTreeSet<u64>) -> Delivered {
        let mut set = Delivered::default();
        for number in numbers {
            set.insert(*number);
        }
        set
    }

    proptest! {
        #[test]
        fn it_is_the_set_of_what_was_put_in(
            one in prop::collection::btree_set(0u64..64, 0..64),
            other in prop::collection::btree_set(0u64..64, 0..64),
        ) {
            let (first, mut both) = (of(&one), of(&other));
            both.unite(first);
            for number in 0..130 {
                prop_assert_eq!(first.contains(number), one.contains(&number));
                prop_assert_eq!(both.contains(number), one.contains(&number) || other.contains(&number));
            }
            prop_assert_eq!(both.low(), (0..).find(|n| !one.contains(n) && !other.contains(n)).unwrap());
        }
    }
}
