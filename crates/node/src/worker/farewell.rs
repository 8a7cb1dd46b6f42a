//! Last frames over connections that close.
//!
//! If something that the far end has sent was not read, the kernel closes the connection with a
//! reset, and the reset discards what was written last. So the frames are written, what comes is
//! read to its end and forgotten, and then the connection is closed. A thread of its own does that
//! for a bounded time, while the worker goes on with other jobs.

use std::io::Read;
use std::thread;
use std::time::{Duration, Instant};

use trib_transport::tcp::{FlushEnd, StreamSocket, StreamWriter};

use crate::job::JobBuffer;

/// A connection that is to close when its last frames are written.
pub(crate) struct Parting {
    pub socket: StreamSocket,
    /// The queue of these frames.
    pub writer: StreamWriter<JobBuffer>,
}

/// Writes the last frames of all these connections, and closes them.
pub(super) fn say(mut partings: Vec<Parting>) {
    // If no thread can be had, at least what the sockets have room for is written now, which is
    // nearly always everything.
    partings.retain_mut(Parting::go_on);
    if partings.is_empty() {
        return;
    }
    if let Err(error) = thread::Builder::new().name("farewell".into()).spawn(move || linger(partings)) {
        tracing::warn!(%error, "links close at once");
    }
}

fn linger(mut partings: Vec<Parting>) {
    let deadline = Instant::now() + PATIENCE;
    while !partings.is_empty() && Instant::now() < deadline {
        thread::sleep(PAUSE);
        partings.retain_mut(Parting::go_on);
    }
}

impl Parting {
    /// Writes what there is room for and forgets what has come. Returns false when the connection
    /// is over.
    fn go_on(&mut self) -> bool {
        match self.writer.flush(&mut self.socket) {
            Ok(FlushEnd::Idle) if self.socket.finish().is_err() => return false,
            Ok(_) => {}
            Err(_) => return false,
        }
        while self.writer.next_written().is_some() {}
        let mut scrap = [0; 64 * 1024];
        for _ in 0..READS {
            match self.socket.read(&mut scrap) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) => return error.kind() == std::io::ErrorKind::WouldBlock,
            }
        }
        true
    }
}

/// How long the far ends may take to read and to close.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);
/// The number of reads from one connection before it is the next one's turn.
const READS: usize = 64;
