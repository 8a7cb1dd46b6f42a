//! Sleeping until a socket, another thread or the clock has something.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use trib_proto::Nanos;

/// Wakes a thread that sleeps in `poll`.
pub(crate) struct Waker {
    event: OwnedFd,
}

impl Waker {
    /// A waker nobody has touched.
    pub(crate) fn new() -> io::Result<Waker> {
        // SAFETY: no memory is involved; the result is checked.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a fresh descriptor that nobody else owns.
        Ok(Waker { event: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Wakes the sleeper, now or when it next goes to sleep.
    pub(crate) fn wake(&self) {
        let one = 1u64;
        // SAFETY: eight readable bytes. It can only fail when the counter is full, and then the sleeper is awake anyway.
        unsafe { libc::write(self.event.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Forgets earlier wakes.
    pub(crate) fn clear(&self) {
        let mut count = 0u64;
        // SAFETY: eight writable bytes. Failing means that there was nothing to forget.
        unsafe { libc::read(self.event.as_raw_fd(), (&raw mut count).cast(), 8) };
    }
}

/// What a sleeper watches.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sockets {
    /// The datagram socket, to read.
    pub(crate) datagram: Option<RawFd>,
    /// The stream connection, to read.
    pub(crate) stream: Option<RawFd>,
    /// Watch the stream for room to write as well.
    pub(crate) write: bool,
}

/// What a sleeper found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ready {
    /// Datagrams may be there.
    pub(crate) datagram: bool,
    /// Stream bytes, or the connection's end, may be there.
    pub(crate) stream: bool,
}

impl Ready {
    /// Look everywhere.
    pub(crate) const ALL: Ready = Ready { datagram: true, stream: true };
}

/// Sleeps for at most `span` or until the waker or a socket has something.
pub(crate) fn sleep(waker: &Waker, sockets: Sockets, span: Nanos) -> Ready {
    let watch = |fd: Option<RawFd>, events| libc::pollfd { fd: fd.unwrap_or(-1), events, revents: 0 };
    let write = if sockets.write { libc::POLLOUT } else { 0 };
    let mut entries = [
        watch(Some(waker.event.as_raw_fd()), libc::POLLIN),
        watch(sockets.datagram, libc::POLLIN),
        watch(sockets.stream, libc::POLLIN | write),
    ];
    let span = libc::timespec {
        tv_sec: (span.0 / 1_000_000_000).min(i32::MAX as u64) as libc::time_t,
        tv_nsec: (span.0 % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: the array and the timespec live across the call, the length is the array's.
    let count = unsafe { libc::ppoll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, &span, std::ptr::null()) };
    if count <= 0 {
        // The time is over, or a signal came: the caller looks at the clock.
        return Ready::default();
    }
    if entries[0].revents != 0 {
        waker.clear();
    }
    Ready { datagram: entries[1].revents != 0, stream: entries[2].revents & !libc::POLLOUT != 0 }
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
        sleep(&waker, Sockets::default(), Nanos::from_millis(60_000));
        assert!(start.elapsed().as_secs() < 30);
        let start = std::time::Instant::now();
        sleep(&waker, Sockets::default(), Nanos::from_millis(5));
        assert!(start.elapsed().as_millis() >= 4);
    }
}
