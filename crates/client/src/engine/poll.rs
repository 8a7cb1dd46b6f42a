//! Sleeping until a socket, another thread or the clock has something.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use trib_messages::job::LANES_MAX;
use trib_proto::Nanos;

/// Wakes a thread that sleeps in `poll`.
pub(crate) struct Waker {
    event: OwnedFd,
}

impl Waker {
    /// A waker that no thread has touched yet.
    pub(crate) fn new() -> io::Result<Waker> {
        // SAFETY: the call touches no memory; its result is checked.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is fresh, and nothing else owns it.
        Ok(Waker { event: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Wakes the sleeper, now or when it next goes to sleep.
    pub(crate) fn wake(&self) {
        let one = 1u64;
        // SAFETY: the eight bytes are readable. The call can only fail when the counter is full,
        // and then the sleeper is awake anyway.
        unsafe { libc::write(self.event.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Forgets earlier wakes.
    pub(crate) fn clear(&self) {
        let mut count = 0u64;
        // SAFETY: the eight bytes are writable. A failure means that there was nothing to forget.
        unsafe { libc::read(self.event.as_raw_fd(), (&raw mut count).cast(), 8) };
    }
}

/// What a sleeper watches on one lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneSockets {
    /// The datagram socket, to read.
    pub(crate) datagram: RawFd,
    /// The stream connection, to read.
    pub(crate) stream: RawFd,
    /// Whether the stream is watched for room to write as well.
    pub(crate) write: bool,
}

impl LaneSockets {
    /// In place of a descriptor: none is watched.
    pub(crate) const NONE: RawFd = -1;
    /// Nothing of the lane is watched.
    pub(crate) const NEITHER: LaneSockets =
        LaneSockets { datagram: LaneSockets::NONE, stream: LaneSockets::NONE, write: false };
}

/// What a sleeper watches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sockets {
    lanes: [LaneSockets; LANES_MAX],
    count: usize,
    /// What others ring that give to a board.
    bell: RawFd,
}

impl Sockets {
    /// No socket is watched.
    pub(crate) const NONE: Sockets =
        Sockets { lanes: [LaneSockets::NEITHER; LANES_MAX], count: 0, bell: LaneSockets::NONE };

    /// The sockets of these lanes.
    pub(crate) fn of(lanes: impl Iterator<Item = LaneSockets>) -> Sockets {
        let mut sockets = Sockets::NONE;
        for (watched, lane) in sockets.lanes.iter_mut().zip(lanes) {
            *watched = lane;
            sockets.count += 1;
        }
        sockets
    }

    /// The same, and a bell.
    pub(crate) fn with_bell(self, bell: Option<RawFd>) -> Sockets {
        Sockets { bell: bell.unwrap_or(LaneSockets::NONE), ..self }
    }
}

/// What a sleeper found, with a bit for each lane.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ready {
    datagrams: u8,
    streams: u8,
    bell: bool,
}

impl Ready {
    /// Any socket may have something, so all are read. A bell is heard by who sleeps.
    pub(crate) const ALL: Ready = Ready { datagrams: u8::MAX, streams: u8::MAX, bell: false };

    /// The same, after sleeps in one of which the bell may have been heard.
    pub(crate) fn all_with_bell(bell: bool) -> Ready {
        Ready { bell, ..Ready::ALL }
    }

    /// Whether the bell was rung.
    pub(crate) fn bell(self) -> bool {
        self.bell
    }

    /// Whether datagrams may be there.
    pub(crate) fn datagram(self, lane: usize) -> bool {
        self.datagrams >> lane & 1 != 0
    }

    /// Whether there may be something on any stream.
    pub(crate) fn any_stream(self) -> bool {
        self.streams != 0
    }

    /// Whether stream bytes, or the connection's end, may be there.
    pub(crate) fn stream(self, lane: usize) -> bool {
        self.streams >> lane & 1 != 0
    }
}

/// Sleeps for at most `span` or until the waker or a socket has something.
pub(crate) fn sleep(waker: &Waker, sockets: &Sockets, span: Nanos) -> Ready {
    let watch = |fd: RawFd, events| libc::pollfd { fd, events, revents: 0 };
    let mut entries = [watch(LaneSockets::NONE, 0); 2 + 2 * LANES_MAX];
    let entries = &mut entries[..2 + 2 * sockets.count];
    entries[0] = watch(waker.event.as_raw_fd(), libc::POLLIN);
    entries[1] = watch(sockets.bell, libc::POLLIN);
    for (pair, lane) in entries[2..].chunks_exact_mut(2).zip(&sockets.lanes) {
        let write = if lane.write { libc::POLLOUT } else { 0 };
        pair[0] = watch(lane.datagram, libc::POLLIN);
        pair[1] = watch(lane.stream, libc::POLLIN | write);
    }
    let span = libc::timespec {
        tv_sec: (span.0 / 1_000_000_000).min(i32::MAX as u64) as libc::time_t,
        tv_nsec: (span.0 % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: the array and the timespec live across the call, the length is the slice's.
    let count = unsafe { libc::ppoll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, &span, std::ptr::null()) };
    if count <= 0 {
        // The time is over, or a signal came. The caller looks at the clock.
        return Ready::default();
    }
    if entries[0].revents != 0 {
        waker.clear();
    }
    let mut ready = Ready { bell: entries[1].revents != 0, ..Ready::default() };
    for (lane, pair) in entries[2..].chunks_exact(2).enumerate() {
        ready.datagrams |= u8::from(pair[0].revents != 0) << lane;
        ready.streams |= u8::from(pair[1].revents & !libc::POLLOUT != 0) << lane;
    }
    ready
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_before_sleep_is_not_lost_and_not_repeated() {
        let waker = Waker::new().unwrap();
        waker.wake();
        waker.wake();
        let start = std::time::Instant::now();
        sleep(&waker, &Sockets::NONE, Nanos::from_millis(60_000));
        assert!(start.elapsed().as_secs() < 30);
        let start = std::time::Instant::now();
        sleep(&waker, &Sockets::NONE, Nanos::from_millis(5));
        assert!(start.elapsed().as_millis() >= 4);
    }
}
