//! How long a probe takes. This is the only base of the retransmission time.
//!
//! The time of an operation is never taken for it, because it contains the computing of other
//! ranks. The estimate is that of RFC 6298, with bounds that fit a machine room.

use trib_wire::Rank;

use super::output::GroupId;
use crate::time::Nanos;

/// The timeout before the first sample.
const INITIAL: Nanos = Nanos::from_millis(10);
/// The shortest timeout. An earlier probe would mostly find its answer already on the way.
const SHORTEST: Nanos = Nanos::from_millis(2);
/// The longest timeout. It is also the pause between the probes of a rank that waits for long: with
/// the answers these are about 20 small packets a second.
const LONGEST: Nanos = Nanos::from_millis(100);

#[derive(Default)]
pub(super) struct RoundTrip {
    smoothed: u64,
    variation: u64,
    sampled: bool,
}

impl RoundTrip {
    pub(super) fn sample(&mut self, span: Nanos) {
        let span = span.0.min(LONGEST.0);
        if self.sampled {
            self.variation = (3 * self.variation + self.smoothed.abs_diff(span)) / 4;
            self.smoothed = (7 * self.smoothed + span) / 8;
        } else {
            *self = RoundTrip { smoothed: span, variation: span / 2, sampled: true };
        }
    }

    /// How long to wait before asking about a contribution that has no answer.
    pub(super) fn timeout(&self) -> Nanos {
        if !self.sampled {
            return INITIAL;
        }
        Nanos(self.smoothed + 4 * self.variation).clamp(SHORTEST, LONGEST)
    }
}

/// The longest pause between two probes of one group when this many groups of the rank wait. A rank
/// that waits in several groups stays below 50 packets a second in all, unless a lost result would
/// then stay unnoticed for more than a second.
pub(super) fn longest_pause(waiting: usize) -> Nanos {
    Nanos(LONGEST.0 * waiting.div_ceil(3).clamp(1, 10) as u64)
}

/// A pause shortened by up to a quarter, differently for each rank, group and time. Otherwise ranks
/// that wait for the same fragment would ask in step for ever, and a receive buffer that is too
/// small for all of them would always drop the same ones. So would the groups of one rank, and what
/// one of them sends again would always come behind the questions of the others.
pub(super) fn spread(pause: Nanos, (rank, group): (Rank, GroupId), now: Nanos) -> Nanos {
    let mixed = (now.0 ^ u64::from(rank.0) << 40 ^ group.0 << 52).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
    Nanos(pause.0 - pause.0 / 4 * mixed / 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_that_waits_in_many_groups_asks_less_for_each() {
        for waiting in 1..=30 {
            let shortest = longest_pause(waiting).0 * 3 / 4;
            assert!(waiting as u64 * 1_000_000_000 / shortest < 50, "{waiting} groups");
        }
        assert_eq!(longest_pause(1), LONGEST);
        assert_eq!(longest_pause(10_000), Nanos::from_millis(1000));
    }

    #[test]
    fn ranks_and_groups_in_step_come_out_of_step() {
        let pause = Nanos::from_millis(100);
        let of = |rank, group| spread(pause, (Rank(rank), GroupId(group)), Nanos(7_000_000));
        let (ranks, groups) = ((0..64).map(|rank| of(rank, 0)), (0..64).map(|group| of(0, group)));
        for mut spans in [ranks.collect::<Vec<Nanos>>(), groups.collect()] {
            assert!(spans.iter().all(|s| (Nanos::from_millis(75)..=pause).contains(s)));
            spans.sort();
            spans.dedup();
            assert!(spans.len() > 32, "{} different pauses of 64", spans.len());
        }
    }

    #[test]
    fn the_timeout_follows_the_samples_within_its_bounds() {
        let mut trip = RoundTrip::default();
        assert_eq!(trip.timeout(), INITIAL);
        for _ in 0..50 {
            trip.sample(Nanos::from_micros(100));
        }
        assert_eq!(trip.timeout(), SHORTEST);
        for _ in 0..50 {
            trip.sample(Nanos::from_millis(20));
        }
        assert!(trip.timeout() > Nanos::from_millis(15) && trip.timeout() < Nanos::from_millis(40));
        trip.sample(Nanos::from_millis(60_000));
        assert!(trip.timeout() <= LONGEST);
    }
}
