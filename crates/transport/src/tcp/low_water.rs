//! The low-water mark: a thread sleeps until enough bytes have come.
//!
//! A thread that is woken for every packet of a long vector spends more time on waking up than on
//! the bytes. So before it sleeps it sets a low-water mark: the kernel wakes it when so many bytes
//! are there, or when the connection ends. The mark relies on the far end to send that many bytes.
//! While it does not, a frame may be there, below the mark, and wait. Therefore a sleep under a
//! mark is bounded in time, and after a sleep in vain the next ones go without a mark.
//!
//! ```text
//!   arm(due) --> mark set, sleep at most SPAN --+-- bytes came: end(true)
//!                                               '-- nothing: end(false), next sleeps unmarked
//! ```

use std::time::Duration;

use super::StreamSocket;

/// Bytes that will come over a connection before anything else on it matters to its reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Due {
    /// The bytes that come without anything more from the reader's own side.
    pub now: u64,
    /// Those bytes, and the ones behind them that do need something from it.
    pub total: u64,
}

/// The low-water mark of one connection.
#[derive(Debug)]
pub struct LowWater {
    /// The mark that the socket has.
    mark: u32,
    /// How many of the next sleeps go without a mark.
    rest: u32,
    /// Sleeps in vain, less those that were not in vain.
    failures: u32,
}

impl LowWater {
    /// The low-water mark of a fresh socket.
    pub fn new() -> LowWater {
        LowWater { mark: 1, rest: 0, failures: 0 }
    }

    /// Sets the mark before a sleep. Returns how long the sleep may last at most, if there is a
    /// mark now.
    pub fn arm(&mut self, socket: &StreamSocket, due: Due) -> Option<Duration> {
        let mark = if self.is_resting() { 1 } else { mark(due) };
        if mark != self.mark {
            // If the kernel refuses, every byte wakes the thread, as without a mark.
            self.mark = if socket.set_low_water(mark).is_ok() { mark } else { 1 };
        }
        (self.mark > 1).then_some(SPAN)
    }

    /// Learns from a sleep under a mark: either bytes ended it, or it lasted as long as it was
    /// allowed to.
    pub fn end(&mut self, came: bool) {
        if came {
            self.failures = self.failures.saturating_sub(1);
        } else {
            self.rest = 1 << self.failures;
            self.failures = (self.failures + 1).min(FAILURES_MAX);
        }
    }

    fn is_resting(&mut self) -> bool {
        let rests = self.rest > 0;
        self.rest = self.rest.saturating_sub(1);
        rests
    }
}

impl Default for LowWater {
    fn default() -> LowWater {
        LowWater::new()
    }
}

/// The mark is half of what is on its way, so that the other half comes while the first is read.
/// Towards the end it is small, because what is still to be read when the last byte comes adds to
/// the operation's time. It is rounded, so that few sleeps have to change it.
fn mark(due: Due) -> u32 {
    let mark = (due.now / 2).min(due.total / TAPER).min(MOST);
    ((mark / STEP * STEP) as u32).max(1)
}

/// The highest mark: three packets of a network card that segments. Beyond that little is saved,
/// and the cache no longer holds what came.
const MOST: u64 = 192 * 1024;
/// Marks are multiples of this: the smallest segment that streams are cut into.
const STEP: u64 = 16 * 1024;
/// A mark is at most this part of what is to come.
const TAPER: u64 = 32;
/// How long a frame may lie below the mark. A wait that is longer than this does not need a mark.
const SPAN: Duration = Duration::from_millis(5);
const FAILURES_MAX: u32 = 6;

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    use super::*;

    fn pair() -> (StreamSocket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (StreamSocket::new(listener.accept().unwrap().0).unwrap(), far)
    }

    fn is_readable(socket: &StreamSocket, limit_ms: libc::c_int) -> bool {
        let mut entry = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry that lives across the call.
        unsafe { libc::poll(&raw mut entry, 1, limit_ms) == 1 }
    }

    const LONG: Due = Due { now: 1 << 20, total: 16 << 20 };

    #[test]
    fn a_mark_is_half_of_what_is_on_its_way_and_tapers() {
        let of = |now, total| mark(Due { now, total });
        assert_eq!(of(1 << 20, 16 << 20), 192 * 1024);
        assert_eq!(of(256 * 1024, 16 << 20), 128 * 1024);
        assert_eq!(of(250_000, 16 << 20), 112 * 1024);
        assert_eq!(of(1 << 20, 2 << 20), 64 * 1024);
        assert_eq!(of(1 << 20, 1 << 20), 32 * 1024);
        assert_eq!(of(100_000, 100_000), 1);
        assert_eq!(of(0, 0), 1);
        assert_eq!(of(u64::MAX, u64::MAX), 192 * 1024);
    }

    #[test]
    fn fewer_bytes_than_the_mark_do_not_wake_but_the_end_does() {
        let (socket, mut far) = pair();
        let mut low_water = LowWater::new();
        assert_eq!(low_water.arm(&socket, LONG), Some(SPAN));
        far.write_all(&[0; 60_000]).unwrap();
        assert!(!is_readable(&socket, 100));
        far.write_all(&[0; 140_000]).unwrap();
        assert!(is_readable(&socket, 10_000));

        let (socket, mut far) = pair();
        assert!(LowWater::new().arm(&socket, LONG).is_some());
        far.write_all(&[0; 100]).unwrap();
        drop(far);
        assert!(is_readable(&socket, 10_000));
    }

    #[test]
    fn a_lower_mark_counts_at_once() {
        let (socket, mut far) = pair();
        let mut low_water = LowWater::new();
        assert!(low_water.arm(&socket, LONG).is_some());
        far.write_all(&[0; 100]).unwrap();
        assert!(!is_readable(&socket, 100));
        assert_eq!(low_water.arm(&socket, Due::default()), None);
        assert!(is_readable(&socket, 10_000));
    }

    #[test]
    fn sleeps_in_vain_make_the_next_ones_go_without() {
        let (socket, _far) = pair();
        let mut low_water = LowWater::new();
        let mut rests = Vec::new();
        for _ in 0..8 {
            assert!(low_water.arm(&socket, LONG).is_some());
            low_water.end(false);
            rests.push((0..).take_while(|_| low_water.arm(&socket, LONG).is_none()).count());
        }
        assert_eq!(rests, [1, 2, 4, 8, 16, 32, 64, 64]);
        for _ in 0..FAILURES_MAX {
            assert!(low_water.arm(&socket, LONG).is_some());
            low_water.end(true);
        }
        low_water.end(false);
        assert_eq!(low_water.rest, 1);
    }
}
