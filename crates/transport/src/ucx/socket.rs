//! The stream of an edge over UCX, with the TCP connection that tells of the far end's end.
//!
//! ```text
//!   finish: | how many bytes were written (8) | end
//! ```
//! Who ends the stream says so over TCP, because the end must not overtake the last bytes. An end
//! without a number is that of a process.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use mio::net::TcpStream;

use super::edge::{Edge, Line};
use super::glance::UcxGlance;
use super::records::{UcxInbox, UcxOutbox, boxes};
use super::stub::Stub;
use super::worker::UcxWorker;

/// A connection whose frames go by UCX.
pub(crate) struct UcxSocket {
    pub(crate) control: TcpStream,
    worker: UcxWorker,
    edge: Arc<Edge>,
    records: Option<(UcxOutbox, UcxInbox)>,
    /// Whether the last read has found anything. If not, what woke the reader may be that the far
    /// end is gone.
    found: bool,
    /// Poll has said that the far end has closed.
    hung_up: bool,
    /// What the far end has said of its last byte, and how much of that has come.
    last: ([u8; 8], usize),
    finished: bool,
}

impl UcxSocket {
    /// The connection after the handshake. Datagrams come as from `peer`.
    pub(crate) fn new(control: TcpStream, stub: Stub, peer: SocketAddr) -> UcxSocket {
        let (worker, edge) = stub.take();
        let records = Some(boxes(&worker, &edge, peer));
        UcxSocket { control, worker, edge, records, found: false, hung_up: false, last: ([0; 8], 0), finished: false }
    }

    /// The datagrams of this edge, once.
    pub(crate) fn take_records(&mut self) -> Option<(UcxOutbox, UcxInbox)> {
        self.records.take()
    }

    /// A look at this edge.
    pub(crate) fn glance(&self) -> UcxGlance {
        UcxGlance { worker: self.worker.clone(), edge: self.edge.clone() }
    }

    /// Poll said that the far end has closed: from now on every read that finds nothing asks
    /// whether the end has come.
    pub(crate) fn expect_end(&mut self) {
        self.hung_up = true;
    }

    /// Lets UCX work in a thread that does nothing else.
    pub(crate) fn visit(&self) {
        self.worker.visit();
    }

    /// Nothing more will be written; the far end reads what was, and then the end.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.finished, true) {
            return Ok(());
        }
        let put = self.edge.with(|state| state.bytes.put());
        let said = socket2::SockRef::from(&self.control).send_with_flags(&put.to_le_bytes(), libc::MSG_NOSIGNAL)?;
        // Nothing was written before, so the few bytes fit into the socket's buffer.
        if said == 8 { self.control.shutdown(Shutdown::Write) } else { Err(ErrorKind::WriteZero.into()) }
    }

    /// Called when nothing waits: the connection's end, or that there is nothing now.
    fn end(&mut self) -> io::Result<usize> {
        let failure = self.edge.with(|state| state.failure());
        if std::mem::take(&mut self.found) && !self.hung_up && failure.is_none() {
            return Err(ErrorKind::WouldBlock.into());
        }
        loop {
            let (last, so_far) = self.last;
            if so_far == last.len() {
                return self.is_at_end(u64::from_le_bytes(last), failure);
            }
            match self.control.read(&mut self.last.0[so_far..]) {
                Ok(0) => return Ok(0),
                Ok(more) => self.last.1 += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(failure.unwrap_or(error)),
                Err(error) => return Err(error),
            }
        }
    }

    /// The far end has written so many bytes, and no more will come.
    fn is_at_end(&self, last: u64, failure: Option<io::Error>) -> io::Result<usize> {
        let (is_there, waits) = self.edge.with(|state| (state.come.has_come_to(last), state.come.waiting() > 0));
        match failure {
            _ if is_there && !waits => Ok(0),
            Some(failure) if !waits => Err(failure),
            _ => Err(ErrorKind::WouldBlock.into()),
        }
    }
}

impl Read for UcxSocket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.read_vectored(&mut [IoSliceMut::new(bytes)])
    }

    fn read_vectored(&mut self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let (got, owes_word) = self.edge.with(|state| (state.come.read(slices), state.come.owes_word()));
        if got == 0 {
            return self.end();
        }
        if owes_word {
            self.worker.say_word(&self.edge);
        }
        self.found = true;
        Ok(got)
    }
}

impl Write for UcxSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let offered: usize = slices.iter().map(|slice| slice.len()).sum();
        let mut parts = [&[][..]; PARTS];
        let mut written = 0;
        let turn = self.worker.turn();
        while written < offered {
            let count = skip(slices, written, &mut parts);
            let Some(post) = self.edge.put_bytes(&parts[..count]) else { break };
            written += post.len;
            self.worker.post(&turn, &self.edge, Line::Bytes, post);
        }
        drop(turn);
        self.edge.with(|state| {
            state.wants_room = written < offered;
            match state.failure() {
                Some(failure) => Err(failure),
                None if written == 0 && offered > 0 => Err(ErrorKind::WouldBlock.into()),
                None => Ok(written),
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What comes behind the first `skipped` bytes, as far as `parts` has room for it. Returns how many
/// parts it takes.
fn skip<'a>(slices: &'a [IoSlice<'_>], mut skipped: usize, parts: &mut [&'a [u8]; PARTS]) -> usize {
    let mut count = 0;
    for slice in slices {
        let rest = &slice[skipped.min(slice.len())..];
        skipped -= slice.len() - rest.len();
        if !rest.is_empty() && count < PARTS {
            parts[count] = rest;
            count += 1;
        }
    }
    count
}

impl AsFd for UcxSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}

impl Drop for UcxSocket {
    fn drop(&mut self) {
        // Without it the far end takes this for the death of the process.
        let _ = self.finish();
        self.worker.leave(&self.edge);
    }
}

impl std::fmt::Debug for UcxSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UcxSocket").field("control", &self.control).finish_non_exhaustive()
    }
}

/// The most slices that go into one message.
const PARTS: usize = 16;
