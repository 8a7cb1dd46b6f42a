//! The threads that sleep on one lane, as far as its edge over memory is concerned.
//!
//! ```text
//!   fall_asleep ---> the far end rings once ---> each sleeper wakes, or hears nothing any more:
//!                                                one of them has cleared the bell meanwhile
//! ```
//! The far end rings once, for all who sleep, and then no more until somebody says again that it
//! sleeps. So who wakes says it for the others, and so does who has cleared the bell: a thread that
//! was rung for may find the bell cleared before it looked, and sleep on.

use trib_transport::edge::Glance;

/// How many threads sleep until something comes.
#[derive(Default)]
pub(super) struct Sleepers {
    count: u32,
}

impl Sleepers {
    /// Called before every sleep: who puts something into shared memory has to ring from now on.
    pub(super) fn fall_asleep(&mut self, near: Option<&Glance>) {
        self.count += 1;
        if let Some(near) = near {
            near.fall_asleep_or_ring();
        }
    }

    /// Called after every sleep: the far end need not ring any more, unless another thread sleeps.
    pub(super) fn wake_up(&mut self, near: Option<&Glance>) {
        self.count = self.count.saturating_sub(1);
        match near {
            Some(near) if self.count > 0 => near.fall_asleep_or_ring(),
            Some(near) => near.wake_up(),
            None => {}
        }
    }

    /// Whether any thread sleeps.
    pub(super) fn are_any(&self) -> bool {
        self.count > 0
    }

    /// A thread has cleared the bell, and taken what it was rung for. The mark is for what is to
    /// come still.
    pub(super) fn cleared(&self, near: &Glance) {
        if self.count > 0 {
            near.fall_asleep_or_ring();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use trib_transport::memory::NearSocket;

    use super::*;

    fn is_rung(glance: &Glance) -> bool {
        let mut bell = libc::pollfd { fd: glance.bell(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry that lives across the call.
        unsafe { libc::poll(&raw mut bell, 1, 0) == 1 }
    }

    #[test]
    fn who_sleeps_on_is_rung_for_what_comes_after_another_has_cleared_the_bell() {
        let (mut rank, mut node) = NearSocket::pair("127.0.0.1:1".parse().unwrap()).unwrap();
        let glance = Glance::Memory(rank.glance().unwrap());
        let mut sleepers = Sleepers::default();
        sleepers.fall_asleep(Some(&glance));
        sleepers.fall_asleep(Some(&glance));
        node.write_all(b"one").unwrap();
        assert!(is_rung(&glance), "for both");
        // The first to wake takes what has come before the second has looked.
        sleepers.wake_up(Some(&glance));
        glance.clear_bell();
        rank.read_exact(&mut [0; 3]).unwrap();
        sleepers.cleared(&glance);
        assert!(!is_rung(&glance));
        node.write_all(b"two").unwrap();
        assert!(is_rung(&glance), "for the second");
        sleepers.wake_up(Some(&glance));
        glance.clear_bell();
        rank.read_exact(&mut [0; 3]).unwrap();
        sleepers.cleared(&glance);
        node.write_all(b"three").unwrap();
        assert!(!is_rung(&glance), "nobody sleeps");
    }
}
