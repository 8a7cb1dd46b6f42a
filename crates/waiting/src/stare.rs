//! Looking without giving way, where each of those who wait for each other has a core to itself.
//!
//! A yield takes a system call, and what comes meanwhile is found that much later. A stare finds it
//! within tens of nanoseconds, but is wrong where the thread that is waited for needs this core:
//! the kernel may have put both on one, though there are others. So stares are short, and who
//! stares in vain does so ever less often.

/// What a thread has learnt from its stares.
#[derive(Debug, Default)]
pub struct Stare {
    /// How many of the next waits do without.
    rest: u32,
    /// How many stares were in vain since the last that was not.
    failures: u32,
}

impl Stare {
    /// Looks a few times, which takes less time than a yield, and returns whether a look found
    /// something.
    #[inline]
    pub fn glance(&mut self, mut look: impl FnMut() -> bool) -> bool {
        let found = look()
            || (1..GLANCES).any(|_| {
                core::hint::spin_loop();
                look()
            });
        if found {
            (self.rest, self.failures) = (0, 0);
        }
        found
    }

    /// Looks some hundred times, unless that is of no use, and returns whether a look found
    /// something.
    #[inline]
    pub fn look(&mut self, mut look: impl FnMut() -> bool) -> bool {
        if self.rest > 0 {
            self.rest -= 1;
            return false;
        }
        let found = (0..LOOKS).any(|_| {
            core::hint::spin_loop();
            look()
        });
        self.end(found);
        found
    }

    fn end(&mut self, found: bool) {
        if found {
            self.failures = 0;
            return;
        }
        self.rest = (1 << self.failures) - 1;
        self.failures = (self.failures + 1).min(FAILURES_MAX);
    }
}

/// They take some ten microseconds: for so long members of one host are usually apart that do the
/// same between two operations, and a yield to a thread that computes may take a thousand times
/// that.
const LOOKS: u32 = 250;
/// They take some hundred nanoseconds, in which a cache line comes from another core.
const GLANCES: u32 = 12;
/// After so many stares in vain one wait in 32 stares.
const FAILURES_MAX: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_stares_in_vain_does_so_ever_less_often() {
        let mut stare = Stare::default();
        let mut looks = |find: bool| {
            let mut looks = 0;
            stare.look(|| {
                looks += 1;
                find && looks == 3
            });
            looks
        };
        assert_eq!([true, true, false, false].map(&mut looks), [3, 3, LOOKS, LOOKS]);
        assert_eq!([false; 8].map(&mut looks), [0, LOOKS, 0, 0, 0, LOOKS, 0, 0]);
        assert_eq!((0..5).map(|_| looks(true)).find(|looks| *looks > 0), None);
        assert_eq!([true, true, false].map(&mut looks), [3, 3, LOOKS], "one success makes up for all failures");
    }

    #[test]
    fn a_glance_is_short_and_what_it_finds_counts_like_what_a_stare_finds() {
        let mut stare = Stare::default();
        let mut looks = 0;
        let mut count = |stare: &mut Stare, glances: bool, finds: bool| {
            looks = 0;
            let look = || {
                looks += 1;
                finds
            };
            let found = if glances { stare.glance(look) } else { stare.look(look) };
            (found, looks)
        };
        assert_eq!(count(&mut stare, true, true), (true, 1), "the first look is at once");
        assert_eq!(count(&mut stare, true, false), (false, GLANCES));
        for _ in 0..4 {
            count(&mut stare, false, false);
        }
        assert_eq!(count(&mut stare, false, false).1, 0, "it rests");
        assert_eq!(count(&mut stare, true, true), (true, 1));
        assert_eq!(count(&mut stare, false, false).1, LOOKS);
    }
}
