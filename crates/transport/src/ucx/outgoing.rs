//! What goes to the far end: its memory, from which UCX may read until a message is sent.
//!
//! ```text
//!   ring   ..taken][ sent | under way ][ free ..      heads [h0 h1 h2 ..]
//!                                  ^put               one for each message under way
//! ```
//! UCX reads head and payload when it likes until it says that the message is sent. So both lie
//! here and not in the caller's memory, and stay as they are until then. A payload never crosses
//! the end of the ring.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::io;

use super::message::Head;
use crate::mapping::Mapping;

/// The ring, and the messages under way.
pub(super) struct Outgoing {
    memory: Mapping,
    len: usize,
    /// Bytes put since the beginning.
    put: u64,
    /// Of these, the first that UCX does not need any more.
    sent: u64,
    /// The messages of which UCX has not said that they are sent, and those behind one of these.
    under_way: VecDeque<UnderWay>,
    /// The number of the first of them, counted from the beginning.
    first: u64,
}

struct UnderWay {
    /// The position behind its payload.
    end: u64,
    /// UCX's request, as an address; 0 when it is sent.
    request: usize,
}

/// A message that is to be given to UCX.
pub(super) struct Post {
    pub(super) number: u64,
    pub(super) head: *const c_void,
    pub(super) payload: *const c_void,
    pub(super) len: usize,
}

impl Outgoing {
    /// Memory for `len` bytes of payloads.
    pub(super) fn new(len: usize) -> io::Result<Outgoing> {
        let memory = Mapping::new(len + MESSAGES * Head::LEN).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Outgoing { memory, len, put: 0, sent: 0, under_way: VecDeque::with_capacity(MESSAGES), first: 0 })
    }

    /// Bytes put since the beginning.
    pub(super) fn put(&self) -> u64 {
        self.put
    }

    /// Whether UCX still needs something of it.
    pub(super) fn is_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// How many bytes may be put, where the far end has room up to `limit`.
    pub(super) fn room(&self, limit: u64) -> usize {
        if self.under_way.len() == MESSAGES {
            return 0;
        }
        limit.min(self.sent + self.len as u64).saturating_sub(self.put) as usize
    }

    /// How many of these bytes lie in one piece.
    pub(super) fn in_one_piece(&self, bytes: usize) -> usize {
        bytes.min(self.len - self.at())
    }

    fn at(&self) -> usize {
        (self.put % self.len as u64) as usize
    }

    /// Goes on at the beginning of the ring if a payload of so many bytes would cross its end.
    /// Returns whether there is room for it.
    pub(super) fn turn_for(&mut self, bytes: usize) -> bool {
        let gap = if self.in_one_piece(bytes) < bytes { self.len - self.at() } else { 0 };
        // While nothing is under way, what is passed over is free at once.
        let passed = if self.under_way.is_empty() { gap } else { 0 };
        let fits = self.room(u64::MAX) + passed >= gap + bytes;
        if fits {
            self.sent += passed as u64;
        }
        self.put += if fits { gap as u64 } else { 0 };
        fits
    }

    /// Puts a message whose payload consists of these parts. There is room for it in one piece.
    pub(super) fn put_message<'a>(&mut self, head: Head, parts: impl Iterator<Item = &'a [u8]>) -> Post {
        let number = self.first + self.under_way.len() as u64;
        let slot = self.memory.at(self.len + (number % MESSAGES as u64) as usize * Head::LEN);
        let payload = self.memory.at(self.at());
        let mut len = 0;
        for part in parts {
            assert!(self.in_one_piece(len + part.len()) == len + part.len(), "a message lies in one piece");
            // SAFETY: the target lies inside the ring, and UCX reads there no more, because there
            // is room.
            unsafe { core::ptr::copy_nonoverlapping(part.as_ptr(), payload.add(len), part.len()) };
            len += part.len();
        }
        // SAFETY: the slot lies behind the ring, and no message under way has it.
        unsafe { core::ptr::copy_nonoverlapping(head.to_bytes().as_ptr(), slot, Head::LEN) };
        self.put += len as u64;
        self.under_way.push_back(UnderWay { end: self.put, request: usize::MAX });
        Post { number, head: slot.cast_const().cast(), payload: payload.cast_const().cast(), len }
    }

    /// UCX has taken a message on as this request.
    pub(super) fn is_requested(&mut self, number: u64, request: *mut c_void) {
        if let Some(message) = self.under_way.get_mut((number - self.first) as usize) {
            message.request = request as usize;
        }
    }

    /// A message is sent, or never will be.
    pub(super) fn is_sent(&mut self, number: u64) {
        if let Some(message) = self.under_way.get_mut((number - self.first) as usize) {
            message.request = 0;
        }
        while let Some(end) = self.under_way.front().filter(|message| message.request == 0).map(|message| message.end) {
            self.under_way.pop_front();
            self.sent = end;
            self.first += 1;
        }
    }

    /// The number of the message that is this request of UCX.
    pub(super) fn find(&self, request: *mut c_void) -> Option<u64> {
        let at = self.under_way.iter().position(|message| message.request == request as usize)?;
        Some(self.first + at as u64)
    }
}

/// The number of messages under way, at most.
const MESSAGES: usize = 64;
