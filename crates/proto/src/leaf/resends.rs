//! How many fragments a rank sends again at once. A receive buffer that holds two loses most of a
//! whole window each time that it is sent, and all that is sent then is in vain: while most of what
//! was sent again is lost again, half as much is sent the next time, and twice as much when most of
//! it arrives.

/// What was sent again last, and how much may be the next time.
pub(super) struct Resends {
    /// The first fragment that the bits are about.
    base: u64,
    /// A bit for each fragment that was sent again last.
    sent: u64,
    /// How many may be sent again, from 1 to 64.
    most: u32,
}

impl Resends {
    /// Of the fragments that the node lacks, a bit for each from `base` on, returns those that are
    /// to be sent again now: the oldest.
    pub(super) fn choose(&mut self, base: u64, lacking: u64) -> u64 {
        let gone = base.checked_sub(self.base).and_then(|gone| u32::try_from(gone).ok());
        let before = gone.and_then(|gone| self.sent.checked_shr(gone)).unwrap_or(0);
        let (count, lost) = (self.sent.count_ones(), (before & lacking).count_ones());
        if 2 * lost > count {
            self.most = (count / 2).max(1);
        } else if count > 0 {
            self.most = (2 * self.most).min(u64::BITS);
        }
        let mut rest = lacking;
        for _ in 0..self.most {
            rest &= rest.wrapping_sub(1);
        }
        (self.base, self.sent) = (base, lacking & !rest);
        self.sent
    }
}

impl Default for Resends {
    fn default() -> Resends {
        Resends { base: 0, sent: 0, most: u64::BITS }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn what_is_lost_again_is_halved_and_what_arrives_doubles_it() {
        let mut resends = Resends::default();
        let lacking = (1 << 33) - 1;
        assert_eq!(resends.choose(10, lacking), lacking);
        // Two of them have arrived, the oldest ones.
        assert_eq!(resends.choose(12, lacking >> 2), (1 << 16) - 1);
        assert_eq!(resends.choose(14, lacking >> 4), (1 << 8) - 1);
        assert_eq!(resends.choose(15, lacking >> 5), (1 << 4) - 1);
        assert_eq!(resends.choose(17, lacking >> 7), (1 << 8) - 1, "half of them have arrived");
        assert_eq!(resends.choose(25, lacking >> 15), (1 << 16) - 1);
        for _ in 0..9 {
            resends.choose(25, lacking >> 15);
        }
        assert_eq!(resends.choose(25, lacking >> 15), 1, "one is sent again at least");
    }

    #[test]
    fn a_few_that_are_lost_by_chance_are_all_sent_again() {
        let mut resends = Resends::default();
        assert_eq!(resends.choose(0, 0b1001), 0b1001);
        assert_eq!(resends.choose(0, 0b1000_1000), 0b1000_1000);
        assert_eq!(resends.choose(64, u64::MAX), u64::MAX);
        assert_eq!(resends.choose(64, 0), 0);
    }

    /// The largest number of fragments that are sent again after so many questions, whatever
    /// arrives of them. `resends` chooses first among the `lacking` oldest; so many of those that
    /// it sent before have `arrived`.
    fn most_sent(
        known: &mut HashMap<(u32, u32, u32), u32>,
        mut resends: Resends,
        (lacking, arrived): (u32, u64),
        questions: u32,
    ) -> u32 {
        let sent = resends.choose(arrived, u64::MAX.checked_shr(u64::BITS - lacking).unwrap_or(0));
        let (count, most) = (sent.count_ones(), resends.most);
        if questions == 1 || count == 0 {
            return count;
        }
        if let Some(known) = known.get(&(lacking, most, questions)) {
            return *known;
        }
        let after = |arrived| {
            let resends = Resends { base: 0, sent, most };
            most_sent(known, resends, (lacking - arrived, u64::from(arrived)), questions - 1)
        };
        let total = count + (0..=count).map(after).max().unwrap_or(0);
        known.insert((lacking, most, questions), total);
        total
    }

    #[test]
    fn whatever_arrives_less_than_six_windows_are_sent_again_in_a_second() {
        // A rank that waits asks at most so often.
        const QUESTIONS: u32 = 14;
        let mut known = HashMap::new();
        for window in 1..=u64::BITS {
            let sent = most_sent(&mut known, Resends::default(), (window, 0), QUESTIONS);
            assert!(sent < QUESTIONS + 6 * window, "{sent} fragments of a window of {window}");
        }
        let sent = most_sent(&mut known, Resends::default(), (64, 0), QUESTIONS);
        assert!(sent > 5 * 64, "{sent} fragments: fewer windows would be no bound");
    }
}
