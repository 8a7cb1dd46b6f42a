//! Frames over one TLS connection, read by one thread while another writes.
//!
//! The TLS state is locked only while bytes are encrypted or decrypted, never while a socket call
//! waits. Two more locks keep whole records, and whole frames, in order on each direction.

use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustls::Connection;
use socket2::{SockRef, TcpKeepalive};

use crate::parties::Parties;
use crate::unfinished::Room;
use crate::{Error, frame};

/// A TLS connection over a blocking socket.
pub(crate) struct Secure {
    stream: TcpStream,
    name: String,
    parties: Parties,
    tls: Mutex<Connection>,
    // This lock is taken before `tls`, and held until the records are in the socket.
    sending: Mutex<()>,
    inbox: Mutex<Inbox>,
}

struct Inbox {
    // Records as they come from the socket.
    records: Box<[u8; READ_BYTES]>,
    // Bytes that are decrypted and not yet taken.
    plain: Vec<u8>,
    /// When the first byte of a message came that is not whole.
    began: Option<Instant>,
    /// The memory that the connection may take for `plain`, and for the message taken last.
    room: Room,
    closed: bool,
}

impl Secure {
    /// Prepares `stream` (connected, blocking) for `tls` between `parties`; `name` stands for the
    /// other side in errors, and long messages need `room`.
    pub(crate) fn new(
        stream: TcpStream,
        mut tls: Connection,
        name: String,
        parties: Parties,
        room: Room,
    ) -> Result<Self, Error> {
        let alive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE / 3).with_retries(3);
        let socket = SockRef::from(&stream);
        stream
            .set_nodelay(true)
            .and_then(|()| socket.set_tcp_keepalive(&alive))
            .and_then(|()| socket.set_tcp_user_timeout(Some(2 * KEEPALIVE)))
            .map_err(|cause| Error::Socket { what: "prepare a connection".into(), cause })?;
        tls.set_buffer_limit(None);
        let inbox = Inbox { records: Box::new([0; READ_BYTES]), plain: Vec::new(), began: None, room, closed: false };
        Ok(Secure { stream, name, parties, tls: Mutex::new(tls), sending: Mutex::new(()), inbox: Mutex::new(inbox) })
    }

    /// The TLS state.
    pub(crate) fn tls(&self) -> MutexGuard<'_, Connection> {
        lock(&self.tls)
    }

    /// Does the TLS handshake.
    pub(crate) fn handshake(&self, limit: Limit) -> Result<(), Error> {
        let mut inbox = lock(&self.inbox);
        loop {
            self.flush(limit)?;
            if !self.tls().is_handshaking() {
                return Ok(());
            }
            if inbox.closed {
                return Err(self.closed());
            }
            if limit.is_over() {
                return Err(self.timeout(limit));
            }
            self.fill(&mut inbox, Some(limit))?;
        }
    }

    /// Sends bytes. After a failure the connection is closed, because half a record may have been
    /// sent.
    pub(crate) fn send(&self, bytes: &[u8], limit: Limit) -> Result<(), Error> {
        let turn = lock(&self.sending);
        self.tls().writer().write_all(bytes).map_err(|cause| self.failed("encrypt", cause, limit))?;
        self.write_records(turn, limit)
    }

    /// Returns the next frame. Without a limit it waits until a frame comes or the connection ends.
    /// Nothing is lost at a time-out.
    pub(crate) fn recv(&self, limit: Option<Limit>) -> Result<Vec<u8>, Error> {
        let mut inbox = lock(&self.inbox);
        // The message before has been dealt with.
        let waiting = inbox.plain.len();
        inbox.room.hold(waiting);
        // A side that sends on and on has no more time than one that says nothing.
        let mut over = None;
        loop {
            match frame::take(&mut inbox.plain) {
                Ok(Some(json)) => {
                    inbox.began = (!inbox.plain.is_empty()).then(Instant::now);
                    return Ok(json);
                }
                Ok(None) if inbox.closed => return Err(self.closed()),
                Ok(None) => {
                    if let Some(limit) = over {
                        return Err(self.timeout(limit));
                    }
                    self.fill_in_time(&mut inbox, limit)?;
                    over = limit.filter(Limit::is_over);
                }
                Err(cause) => {
                    self.close();
                    return Err(Error::Malformed { address: self.name.clone(), cause });
                }
            }
        }
    }

    /// Ends the connection in both directions and wakes any thread that waits in it.
    pub(crate) fn close(&self) {
        // It may be closed already; then there is nothing to do.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Announces the end and waits, at most `limit`, until the other side has read everything and
    /// closed. If this side closed with bytes of the other side unread, the kernel would discard
    /// our own.
    pub(crate) fn linger(&self, limit: Limit) {
        self.tls().send_close_notify();
        let said = self.flush(limit).is_ok() && self.stream.shutdown(Shutdown::Write).is_ok();
        let mut inbox = lock(&self.inbox);
        while said && !inbox.closed && !limit.is_over() && self.fill(&mut inbox, Some(limit)).is_ok() {
            inbox.plain.clear();
        }
        self.close();
    }

    /// Whether the other side has closed, as far as the kernel knows without waiting.
    pub(crate) fn is_closed(&self) -> bool {
        let mut byte = [MaybeUninit::uninit()];
        match SockRef::from(&self.stream).recv_with_flags(&mut byte, libc::MSG_PEEK | libc::MSG_DONTWAIT) {
            Ok(bytes) => bytes == 0,
            Err(cause) => !matches!(cause.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
        }
    }

    /// The other side is no user: what it says needs no part of what users share.
    pub(crate) fn trust(&self) {
        lock(&self.inbox).room = Room::default();
    }

    /// The socket.
    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    fn flush(&self, limit: Limit) -> Result<(), Error> {
        let turn = lock(&self.sending);
        self.write_records(turn, limit)
    }

    fn write_records(&self, _turn: MutexGuard<'_, ()>, limit: Limit) -> Result<(), Error> {
        let mut records = Vec::new();
        {
            let mut tls = self.tls();
            while tls.wants_write() {
                tls.write_tls(&mut records).map_err(|cause| self.failed("encrypt", cause, limit))?;
            }
        }
        let mut left = &records[..];
        while !left.is_empty() {
            let wrote = self.stream.set_write_timeout(Some(limit.left())).and_then(|()| (&self.stream).write(left));
            match wrote {
                Ok(bytes) => left = &left[bytes..],
                Err(cause) if is_wait(&cause) && !limit.is_over() => {}
                Err(cause) => {
                    self.close();
                    return Err(self.failed("send", cause, limit));
                }
            }
        }
        Ok(())
    }

    /// Receives more of a message. One that has begun has to be whole some time later, and there
    /// has to be memory for it.
    fn fill_in_time(&self, inbox: &mut Inbox, limit: Option<Limit>) -> Result<(), Error> {
        let whole = inbox
            .began
            .zip(inbox.room.patience())
            .map(|(began, patience)| Limit { whole: patience, end: began + patience });
        let filled = match (limit, whole) {
            (Some(limit), Some(whole)) if whole.end < limit.end => self.fill(inbox, Some(whole)),
            (None, Some(whole)) => self.fill(inbox, Some(whole)),
            _ => self.fill(inbox, limit),
        };
        if whole.is_some_and(|whole| whole.is_over()) {
            self.close();
            return Err(self.malformed("it has begun a message and not ended it".into()));
        }
        filled?;
        let waiting = inbox.plain.len();
        if !inbox.room.hold(waiting) {
            self.close();
            return Err(
                self.malformed("its message is long, and other long ones have used up the memory for them".into())
            );
        }
        if waiting > 0 {
            inbox.began.get_or_insert_with(Instant::now);
        }
        Ok(())
    }

    fn fill(&self, inbox: &mut Inbox, limit: Option<Limit>) -> Result<(), Error> {
        let got = self.stream.set_read_timeout(limit.map(|l| l.left())).and_then(|()| {
            let mut stream = &self.stream;
            stream.read(&mut inbox.records[..])
        });
        match got {
            Ok(bytes) => self.decrypt(inbox, bytes),
            Err(cause) if is_wait(&cause) => match limit {
                Some(limit) if limit.is_over() => Err(self.timeout(limit)),
                _ => Ok(()),
            },
            Err(cause) if is_reset(&cause) => {
                inbox.closed = true;
                Ok(())
            }
            Err(cause) => Err(Error::Socket { what: format!("receive from {}", self.name), cause }),
        }
    }

    fn decrypt(&self, inbox: &mut Inbox, bytes: usize) -> Result<(), Error> {
        let mut records = &inbox.records[..bytes];
        let mut verdict = Ok(());
        {
            let mut tls = self.tls();
            inbox.closed |= bytes == 0;
            while !records.is_empty() && verdict.is_ok() {
                tls.read_tls(&mut records).map_err(|cause| self.malformed(cause.to_string()))?;
                match tls.process_new_packets() {
                    Ok(state) => {
                        inbox.closed |= state.peer_has_closed();
                        let plain = &mut inbox.plain;
                        let start = plain.len();
                        plain.resize(start + state.plaintext_bytes_to_read(), 0);
                        tls.reader()
                            .read_exact(&mut plain[start..])
                            .map_err(|cause| self.malformed(cause.to_string()))?;
                    }
                    Err(cause) => verdict = Err(cause),
                }
            }
        }
        // This is an answer to what came (an alert, most likely); the other side may not read it
        // any more.
        let answered = self.flush(Limit::after(ANSWER));
        match verdict {
            Ok(()) => answered,
            Err(cause) => Err(self.rejected(cause)),
        }
    }

    fn rejected(&self, cause: rustls::Error) -> Error {
        self.parties.rejection(&self.name, &cause).unwrap_or_else(|| self.malformed(cause.to_string()))
    }

    fn failed(&self, what: &str, cause: io::Error, limit: Limit) -> Error {
        match cause {
            cause if is_wait(&cause) => self.timeout(limit),
            cause if is_reset(&cause) => self.closed(),
            cause => Error::Socket { what: format!("{what} to {}", self.name), cause },
        }
    }

    fn malformed(&self, cause: String) -> Error {
        Error::Malformed { address: self.name.clone(), cause }
    }

    fn timeout(&self, limit: Limit) -> Error {
        Error::Timeout { address: self.name.clone(), waited: limit.whole }
    }

    fn closed(&self) -> Error {
        Error::Closed { address: self.name.clone() }
    }
}

/// A time limit that several waits share.
#[derive(Clone, Copy)]
pub(crate) struct Limit {
    whole: Duration,
    end: Instant,
}

impl Limit {
    /// A limit from now on, of a day at most.
    pub(crate) fn after(whole: Duration) -> Self {
        let whole = whole.min(Duration::from_secs(86_400));
        Limit { whole, end: Instant::now() + whole }
    }

    /// The time that is left. It is never zero, because sockets take zero for "no limit".
    pub(crate) fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
    }

    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }
}

fn is_wait(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

fn is_reset(cause: &io::Error) -> bool {
    matches!(
        cause.kind(),
        io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::NotConnected
    )
}

// If a thread has panicked with a lock held, the worst that can follow is that the connection's
// next use fails cleanly.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const READ_BYTES: usize = 16 << 10;
const KEEPALIVE: Duration = Duration::from_secs(30);
const ANSWER: Duration = Duration::from_secs(1);
