//! Counts how long something took, by upper bounds.
//!
//! The bounds are powers of two, from 16 us to 17 s: the position of a duration's highest bit tells
//! which bound holds it. This has to be quick: a worker counts its folds, and the time that it
//! spends on counting is added to every operation.

use std::time::Duration;

/// Counts of durations.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Histogram {
    counts: [u64; BOUNDS + 1],
    total_ns: u64,
}

/// How many bounds there are; durations above the last one are counted too.
const BOUNDS: usize = 21;
/// The first bound, as a power of two of nanoseconds: it is the distance of two datagrams that meet
/// at a node. The last bound is an admission that waits for nodes that do not answer.
const FIRST: u32 = 14;

impl Histogram {
    /// Counts one duration, in nanoseconds: the unit of code that measures while data waits.
    #[inline]
    pub fn observe_ns(&mut self, duration: u64) {
        let above_first = duration.saturating_sub(1) >> FIRST;
        let bucket = (u64::BITS - above_first.leading_zeros()) as usize;
        self.counts[bucket.min(BOUNDS)] += 1;
        self.total_ns = self.total_ns.wrapping_add(duration);
    }

    /// Counts one duration.
    pub fn observe(&mut self, duration: Duration) {
        self.observe_ns(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Adds the counts of another histogram.
    pub fn add(&mut self, other: &Histogram) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.total_ns = self.total_ns.wrapping_add(other.total_ns);
    }

    /// Upper bounds with how many durations lie below each and above the one before; `None` bounds
    /// the last.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<Duration>, u64)> + '_ {
        let bounds = (FIRST..).take(BOUNDS).map(|power| Some(Duration::from_nanos(1 << power)));
        bounds.chain([None]).zip(self.counts)
    }

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Sum of all durations.
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.total_ns)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_duration_is_counted_below_the_first_bound_that_holds_it() {
        let mut histogram = Histogram::default();
        for duration in [Duration::ZERO, Duration::from_millis(1), Duration::from_millis(2), Duration::from_secs(60)] {
            histogram.observe(duration);
        }
        let filled: Vec<_> = histogram.buckets().filter(|(_, count)| *count > 0).collect();
        let bound = |nanos| Some(Duration::from_nanos(nanos));
        assert_eq!(filled, [(bound(16_384), 1), (bound(1 << 20), 1), (bound(1 << 21), 1), (None, 1)]);
        assert_eq!(histogram.total(), Duration::from_millis(60_003));
        let bounds: Vec<_> = histogram.buckets().filter_map(|(bound, _)| bound).collect();
        assert!(bounds.is_sorted() && bounds[BOUNDS - 1] == Duration::from_nanos(1 << 34));
    }

    proptest! {
        // This is the plain reference: it counts what is not above each bound.
        #[test]
        fn two_histograms_count_together_what_one_would(durations in proptest::collection::vec(0u64..40_000_000_000, 0..50), cut in 0usize..50) {
            let (mut first, mut second) = (Histogram::default(), Histogram::default());
            for (i, duration) in durations.iter().enumerate() {
                if i < cut { first.observe_ns(*duration) } else { second.observe_ns(*duration) }
            }
            first.add(&second);
            prop_assert_eq!(first.count(), durations.len() as u64);
            prop_assert_eq!(first.total(), Duration::from_nanos(durations.iter().sum()));
            let mut sum = 0;
            for (bound, count) in first.buckets() {
                sum += count;
                let below = |duration: &&u64| bound.is_none_or(|bound| Duration::from_nanos(**duration) <= bound);
                prop_assert_eq!(sum as usize, durations.iter().filter(below).count());
            }
        }
    }
}
