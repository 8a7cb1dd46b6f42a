//! How fast users of one address may ask. Beyond that their requests wait: a thread that waits
//! costs others nothing.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// When each address may ask next, if it goes on at the pace that is allowed.
#[derive(Default)]
pub(super) struct Pace {
    next: Mutex<BTreeMap<IpAddr, Instant>>,
}

impl Pace {
    /// How long a request of this address has to wait. Each call stands for one.
    pub(super) fn wait(&self, address: IpAddr, now: Instant) -> Duration {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        // After a quiet while much may come at once: a host's ranks begin together.
        let earliest = now.checked_sub(BETWEEN * BURST).unwrap_or(now);
        if next.len() >= REMEMBERED {
            next.retain(|_, at| *at > earliest);
        }
        let at = next.entry(address).or_insert(earliest);
        *at = (*at).max(earliest) + BETWEEN;
        at.saturating_duration_since(now)
    }
}

/// The pace: 200 requests a second.
const BETWEEN: Duration = Duration::from_millis(5);
/// So many at once.
const BURST: u32 = 4000;
/// With so many addresses the quiet ones are forgotten.
const REMEMBERED: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_requests_have_a_pace() {
        let (pace, address) = (Pace::default(), IpAddr::from([10, 0, 0, 1]));
        let now = Instant::now() + Duration::from_secs(3600);
        assert!((0..BURST).all(|_| pace.wait(address, now).is_zero()));
        assert_eq!(pace.wait(address, now), BETWEEN);
        assert_eq!(pace.wait(address, now), 2 * BETWEEN);
        assert!(pace.wait(IpAddr::from([10, 0, 0, 2]), now).is_zero());
        assert!(pace.wait(address, now + 3 * BETWEEN).is_zero());
    }
}
