//! Last words over connections that close.
//!
//! What the far end has sent and nobody has read makes the kernel close with a reset, and a reset
//! takes what was written last with it. So the words are written, the way up is read to its end and
//! forgotten, and then the connection closes. A thread of its own does that for a bounded time: the
//! worker goes on with other jobs.

use std::io::Read;
use std::thread;
use std::time::{Duration, Instant};

use trib_transport::tcp::{FlushEnd, StreamSocket, StreamWriter};

use crate::job::JobBuffer;

/// A connection that is to close when its words are written.
pub(crate) struct Parting {
    pub socket: StreamSocket,
    /// Holds the words.
    pub writer: StreamWriter<JobBuffer>,
}

/// Says them all, and closes the connections.
pub(super) fn say(mut partings: Vec<Parting>) {
    // Where no thread can be had they have been written as far as sockets had room, which is nearly
    // always.
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
    /// Writes what there is room for and forgets what has come; false when the connection is over.
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

/// For so long the far ends may read and close.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);
/// Of one connection, before it is the next one's turn.
const READS: usize = 64;
