//! How long a thread sleeps if nothing wakes it.
//!
//! A pause is a share of the time waited so far, so that it delays the end of a wait by no more
//! than that share, and a long wait costs few wake-ups.

use std::time::Duration;

/// The bounds of a pause.
#[derive(Clone, Copy, Debug)]
pub struct Pause {
    shortest: Duration,
    longest: Duration,
    part: u32,
}

impl Pause {
    /// Pauses of a `part`-th of the time waited so far, between two bounds.
    pub const fn growing(shortest: Duration, longest: Duration, part: u32) -> Pause {
        assert!(part > 0 && shortest.as_nanos() <= longest.as_nanos());
        Pause { shortest, longest, part }
    }

    /// Pauses that are twice as long each time, which is as long as all before them together.
    pub const fn doubling(shortest: Duration, longest: Duration) -> Pause {
        Pause::growing(shortest, longest, 1)
    }

    /// The first pause.
    pub const fn first(&self) -> Duration {
        self.shortest
    }

    /// The longest pause.
    pub const fn longest(&self) -> Duration {
        self.longest
    }

    /// The next pause after a wait of `waited`.
    pub fn after(&self, waited: Duration) -> Duration {
        (waited / self.part).clamp(self.shortest, self.longest)
    }

    /// The pause after one of `last`, for a thread that only counts its pauses.
    pub fn after_pause(&self, last: Duration) -> Duration {
        self.after(last.saturating_mul(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_pause_is_a_share_of_the_wait_between_its_bounds() {
        let pause = Pause::growing(ms(1), ms(20), 200);
        let seen: Vec<Duration> = [0, 199, 400, 3_000, 4_000, 60_000].map(|waited| pause.after(ms(waited))).into();
        assert_eq!(seen, [ms(1), ms(1), ms(2), ms(15), ms(20), ms(20)]);
        assert_eq!(pause.after(Duration::MAX), ms(20));
    }

    /// In simulated time: a thread that only pauses is late by a two hundredth or a millisecond,
    /// and wakes 50 times a second in the end.
    #[test]
    fn pauses_delay_a_wait_by_their_share_only() {
        let pause = Pause::growing(ms(1), ms(20), 200);
        for end in [ms(5), ms(700), ms(3_000), ms(60_000)] {
            let (mut now, mut wakes) = (Duration::ZERO, 0);
            while now < end {
                now += pause.after(now);
                wakes += 1;
            }
            assert!(now - end <= (end / 200).clamp(ms(1), ms(20)), "{end:?}: ended at {now:?}");
            // The first 200 ms have a wake-up each; each doubling of the time then has 139.
            assert!(wakes <= 200 + 139 * 5 + (end.as_millis() / 20) as u32, "{end:?}: {wakes}");
        }
    }

    #[test]
    fn tries_are_twice_as_far_apart_each_time() {
        let pause = Pause::doubling(ms(5), ms(200));
        let pauses = std::iter::successors(Some(pause.first()), |last| Some(pause.after_pause(*last)));
        let seen: Vec<Duration> = pauses.take(8).collect();
        assert_eq!(seen, [5, 10, 20, 40, 80, 160, 200, 200].map(ms));
        assert_eq!(pause.after_pause(Duration::MAX), ms(200));
    }
}
