//! One end of an edge: what goes and what has come, and what became of it.
//!
//! Who has the lock calls nothing of UCX, because UCX may call back here.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::abi::Endpoint;
use super::incoming::Incoming;
use super::message::{Head, Kind};
use super::outgoing::{Outgoing, Post};
use super::{PIECE, RECORDS, WINDOW};

/// One end of an edge.
pub(super) struct Edge {
    /// The name by which the far end calls it.
    pub(super) name: u64,
    /// The far end's name for its own, once it is known.
    far: OnceLock<u64>,
    /// The way to the far end, once it is known.
    endpoint: AtomicPtr<Endpoint>,
    state: Mutex<State>,
    /// Its worker looks after its edges when this is set.
    attention: Arc<AtomicBool>,
    /// What who looks without the lock has to know.
    waiting: AtomicU64,
    records: AtomicU64,
    has_room: AtomicBool,
    failed: AtomicBool,
    left: AtomicBool,
}

/// What of an edge changes.
pub(super) struct State {
    pub(super) bytes: Outgoing,
    pub(super) datagrams: Outgoing,
    words: Outgoing,
    pub(super) come: Incoming,
    /// Datagrams that have come, each behind its length.
    pub(super) inbox: VecDeque<u8>,
    /// How many bytes of the stream the far end has read.
    taken: u64,
    /// A write has found no room.
    pub(super) wants_room: bool,
    /// Why the edge is of no use any more.
    failure: Option<String>,
}

/// Which of its three kinds of messages is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Line {
    Bytes,
    Datagrams,
    Words,
}

impl Edge {
    pub(super) fn new(name: u64, attention: Arc<AtomicBool>) -> io::Result<Edge> {
        let state = State {
            bytes: Outgoing::new(WINDOW)?,
            datagrams: Outgoing::new(RECORDS)?,
            words: Outgoing::new(8)?,
            come: Incoming::new()?,
            inbox: VecDeque::with_capacity(RECORDS),
            taken: 0,
            wants_room: false,
            failure: None,
        };
        Ok(Edge {
            name,
            far: OnceLock::new(),
            endpoint: AtomicPtr::new(core::ptr::null_mut()),
            state: Mutex::new(state),
            attention,
            waiting: AtomicU64::new(0),
            records: AtomicU64::new(0),
            has_room: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            left: AtomicBool::new(false),
        })
    }

    /// The far end is known.
    pub(super) fn connect(&self, far: u64, endpoint: *mut Endpoint) {
        let _ = self.far.set(far);
        self.endpoint.store(endpoint, Release);
    }

    /// The way to the far end; null before it is known, and after it was closed.
    pub(super) fn endpoint(&self) -> *mut Endpoint {
        self.endpoint.load(Acquire)
    }

    /// Takes the way to the far end, to close it.
    pub(super) fn take_endpoint(&self) -> *mut Endpoint {
        self.endpoint.swap(core::ptr::null_mut(), Acquire)
    }

    /// Changes what there is, and shows it to those who look without the lock.
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let result = change(&mut state);
        self.waiting.store(state.come.waiting(), Release);
        self.records.store(state.inbox.len() as u64, Release);
        self.has_room.store(state.wants_room && state.room() >= WINDOW / 2, Release);
        self.failed.store(state.failure.is_some(), Release);
        result
    }

    // A thread that panicked has left the counts as they are between two of its steps.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether anything of the stream waits, or that the edge has failed.
    pub(super) fn has_bytes(&self) -> bool {
        self.waiting.load(Acquire) > 0 || self.failed.load(Acquire)
    }

    pub(super) fn has_records(&self) -> bool {
        self.records.load(Acquire) > 0
    }

    /// Whether there is room now for a write that has waited for it.
    pub(super) fn has_room(&self) -> bool {
        self.has_room.load(Relaxed)
    }

    /// Nobody reads or writes any more.
    pub(super) fn leave(&self) {
        self.left.store(true, Release);
    }

    pub(super) fn is_left(&self) -> bool {
        self.left.load(Acquire)
    }

    /// The head of a message to the far end.
    fn head(&self, kind: Kind, at: u64, taken: u64) -> Head {
        Head { name: self.far.get().copied().unwrap_or(0), kind, at, taken }
    }

    /// Puts as much of these bytes as one message takes. `None` if there is no room.
    pub(super) fn put_bytes(&self, bytes: &[&[u8]]) -> Option<Post> {
        self.with(|state| {
            let whole = bytes.iter().map(|part| part.len()).sum::<usize>();
            let len = state.bytes.in_one_piece(whole.min(state.room()).min(PIECE));
            if len == 0 {
                return None;
            }
            let mut left = len;
            let parts = bytes.iter().map_while(|part| {
                let part = &part[..part.len().min(left)];
                left -= part.len();
                (!part.is_empty() || left > 0).then_some(part)
            });
            let head = self.head(Kind::Bytes, state.bytes.put(), state.come.tell());
            Some(state.bytes.put_message(head, parts))
        })
    }

    /// Puts a datagram that consists of these parts. `None` if there is no room.
    pub(super) fn put_datagram(&self, parts: [&[u8]; 2]) -> Option<Post> {
        self.with(|state| {
            let len = parts.iter().map(|part| part.len()).sum();
            if state.failure.is_some() || !state.datagrams.turn_for(len) {
                return None;
            }
            let head = self.head(Kind::Record, 0, state.come.tell());
            Some(state.datagrams.put_message(head, parts.into_iter()))
        })
    }

    /// Puts a message that says how much was read, if the far end should know and the last one is
    /// sent.
    pub(super) fn put_word(&self) -> Option<Post> {
        self.with(|state| {
            let is_due = state.come.owes_word() && !state.words.is_under_way() && state.failure.is_none();
            is_due.then(|| {
                let head = self.head(Kind::Taken, 0, state.come.tell());
                state.words.put_message(head, core::iter::empty())
            })
        })
    }

    /// UCX has taken a message on as this request.
    pub(super) fn is_requested(&self, line: Line, number: u64, request: *mut c_void) {
        self.with(|state| state.line(line).is_requested(number, request));
    }

    /// A message is sent.
    pub(super) fn is_sent(&self, line: Line, number: u64) {
        self.with(|state| state.line(line).is_sent(number));
    }

    /// The message that was this request is sent.
    pub(super) fn is_over(&self, request: *mut c_void) {
        let owes_word = self.with(|state| {
            for line in [Line::Bytes, Line::Datagrams, Line::Words] {
                if let Some(number) = state.line(line).find(request) {
                    state.line(line).is_sent(number);
                    break;
                }
            }
            state.come.owes_word()
        });
        if owes_word {
            self.attention.store(true, Release);
        }
    }

    /// The far end has read so many bytes of the stream.
    pub(super) fn on_taken(&self, taken: u64) {
        self.with(|state| {
            if taken > state.bytes.put() {
                state.fail("the far end has read more than there was");
            }
            state.taken = state.taken.max(taken);
        });
    }

    /// The edge is of no use any more.
    pub(super) fn fail(&self, why: &str) {
        self.with(|state| state.fail(why));
    }

    /// A datagram has come. Without room it is lost.
    pub(super) fn on_datagram(&self, bytes: &[u8]) -> bool {
        self.with(|state| {
            let has_room = state.inbox.len() + 8 + bytes.len() <= RECORDS;
            if has_room {
                state.inbox.extend(&(bytes.len() as u64).to_ne_bytes());
                state.inbox.extend(bytes);
            }
            has_room
        })
    }
}

impl State {
    fn line(&mut self, line: Line) -> &mut Outgoing {
        match line {
            Line::Bytes => &mut self.bytes,
            Line::Datagrams => &mut self.datagrams,
            Line::Words => &mut self.words,
        }
    }

    /// How many bytes may be written now.
    fn room(&self) -> usize {
        if self.failure.is_some() { 0 } else { self.bytes.room(self.taken + WINDOW as u64) }
    }

    /// Whether UCX still needs memory of this edge to send from.
    pub(super) fn is_sending(&self) -> bool {
        self.bytes.is_under_way() || self.datagrams.is_under_way()
    }

    pub(super) fn fail(&mut self, why: &str) {
        self.failure.get_or_insert_with(|| why.to_owned());
    }

    /// The error with which reads and writes end.
    pub(super) fn failure(&self) -> Option<io::Error> {
        let failure = self.failure.as_ref()?;
        Some(io::Error::new(io::ErrorKind::ConnectionReset, failure.clone()))
    }
}
