//! Last frames over connections that close.
//!
//! If something that the far end has sent was not read, the kernel closes the connection with a
//! reset, and the reset discards what was written last. So the frames are written, what comes is
//! read to its end and forgotten, and then the connection is closed. A thread of its own does that
//! for a bounded time, because the far end may be slow to read.

use std::io::{ErrorKind, Read};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{FlushEnd, StreamSocket, StreamWriter};
use crate::landing::Source;

/// A connection that is to close when its last frames are written.
#[derive(Debug)]
pub struct Parting<P> {
    /// The connection.
    pub socket: StreamSocket,
    /// The queue of these frames.
    pub writer: StreamWriter<P>,
}

/// Writes the last frames of all these connections, and closes them, within this time. Returns the
/// thread that does it, if one is needed.
pub fn say<P: Source + Send + 'static>(mut partings: Vec<Parting<P>>, patience: Duration) -> Option<JoinHandle<()>> {
    // If no thread can be had, at least what the sockets have room for is written now, which is
    // nearly always everything.
    partings.retain_mut(Parting::go_on);
    if partings.is_empty() {
        return None;
    }
    let thread = thread::Builder::new().name("farewell".into()).spawn(move || linger(partings, patience));
    thread.inspect_err(|error| tracing::warn!(%error, "links close at once")).ok()
}

fn linger<P: Source>(mut partings: Vec<Parting<P>>, patience: Duration) {
    let (deadline, mut pause) = (Instant::now() + patience, PAUSE);
    while !partings.is_empty() && Instant::now() < deadline {
        thread::sleep(pause);
        pause = (pause + PAUSE).min(PAUSE_MAX);
        partings.retain_mut(Parting::go_on);
    }
}

impl<P: Source> Parting<P> {
    /// Writes what there is room for and forgets what has come. Returns false when the connection
    /// is over.
    fn go_on(&mut self) -> bool {
        match self.writer.flush(&mut self.socket) {
            Ok(FlushEnd::Idle) if self.socket.finish().is_err() => return false,
            Ok(_) => {}
            Err(_) => return false,
        }
        while self.writer.next_written().is_some() {}
        self.socket.visit();
        let mut scrap = [0; 64 * 1024];
        for _ in 0..READS {
            match self.socket.read(&mut scrap) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
        true
    }
}

/// The first pause of the thread, and the longest one.
const PAUSE: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(50);
/// The number of reads from one connection before it is the next one's turn.
const READS: usize = 64;
