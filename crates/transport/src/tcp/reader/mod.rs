//! Reads frames from a byte stream, and large payloads straight to where they belong.
//!
//! ```text
//!            +-- header complete: parse, verify the tag, ask the sink --+
//!            v                                                          |
//!  Header --------> Data(buffer, filled) or Body(filled) --------> frame handed over
//! ```
//! Small frames are cut out of a read-ahead buffer, many per system call. The rest of a large
//! payload is read with one vectored call into its own memory. What follows it is most often the
//! next pieces of the same vector, with short headers: the same call reads those to where they will
//! belong, as the sink foresees. If something else came, it is copied from there into the
//! read-ahead buffer, and nothing is lost.

mod foreseen;

pub use foreseen::FORESEEN_MAX;

use std::io::{self, IoSliceMut, Read};

use trib_wire::auth::FrameKey;
use trib_wire::header::{FLAG_CRC, FLAG_SEALED, HEADER_LEN};
use trib_wire::mode::{SEAL_LEN, Seal};
use trib_wire::short::SHORT_LEN;
use trib_wire::{Header, ParseError};

use crate::landing::Landing;
use crate::sealing::ReaderKeys;
use foreseen::Foreseen;

/// Where the payload of a frame that carries vector data goes.
#[derive(Debug)]
pub enum Destination<B> {
    /// Into this memory.
    Into(B),
    /// Nowhere; the frame is still handed over.
    Discard,
    /// The frame is a breach of the protocol; the connection ends.
    Refuse(&'static str),
}

/// The payload of a complete frame.
#[derive(Debug)]
pub enum Arrived<'a, B> {
    /// The frame has none.
    None,
    /// The bytes of a typed body, checked against their checksum.
    Body(&'a [u8]),
    /// Vector data, in the memory that `place` named.
    Data(B),
    /// Vector data that `place` did not want.
    Discarded,
}

/// The taker of a connection's frames.
pub trait FrameSink {
    /// Memory for vector data.
    type Buffer: Landing;

    /// The header of a frame with vector data has come, and its tag is right: where does the
    /// payload go?
    fn place(&mut self, header: &Header) -> Destination<Self::Buffer>;

    /// Memory for the payload of a frame that has not come yet, but probably is the next or one of
    /// those soon after. What is read into it may turn out to be something else.
    fn foresee(&mut self, _header: &Header) -> Option<Self::Buffer> {
        None
    }

    /// The foreseen frame has come: its header is as foreseen except for the mark, and part of its
    /// payload is in `buffer`. This is like `place`, except that the only memory that may be named
    /// is `buffer`.
    fn confirm(&mut self, _header: &Header, buffer: Self::Buffer) -> Destination<Self::Buffer> {
        Destination::Into(buffer)
    }

    /// Whether the sink takes another frame now. What has been read of it waits in the reader.
    fn goes_on(&self) -> bool {
        true
    }

    /// A frame is complete. An error ends the connection.
    fn frame(&mut self, header: &Header, payload: Arrived<'_, Self::Buffer>) -> Result<(), StreamError>;
}

/// Why a connection cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The system reported an error.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    /// The far end's bytes are not the frames that were agreed on.
    #[error("the far end sent a bad frame: {0}")]
    Frame(#[from] ParseError),
    /// The far end sent what it may not send.
    #[error("the far end broke the protocol: {0}")]
    Refused(&'static str),
}

/// Why `read` came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadEnd {
    /// There is nothing more to read now.
    Drained,
    /// The budget is used up, or the sink takes no more now; there may be more to read.
    Budget,
    /// The far end has closed the connection, between two frames.
    Closed,
}

/// The receiving half of a connection.
#[derive(Debug)]
pub struct StreamReader<B> {
    keys: ReaderKeys,
    ahead: Box<[u8]>,
    start: usize,
    end: usize,
    state: State<B>,
    /// The header of the last frame that carried vector data, which a short header follows.
    last: Option<Header>,
    /// The seal of the frame that is being read, in a mode that has seals.
    seal: Option<Seal>,
    foreseen: Foreseen<B>,
    body: Vec<u8>,
    streaming: bool,
    hung_up: bool,
    bytes: u64,
    frames: u64,
}

#[derive(Debug)]
enum State<B> {
    Header,
    Data { header: Header, buffer: Option<B>, filled: usize },
    Body(Header),
}

impl<B: Landing> StreamReader<B> {
    /// A reader of frames that were tagged with `key`.
    pub fn new(key: FrameKey) -> StreamReader<B> {
        StreamReader::with(ReaderKeys::Checked(key))
    }

    /// A reader of a connection with these keys.
    pub fn with(keys: ReaderKeys) -> StreamReader<B> {
        StreamReader {
            keys,
            ahead: vec![0; AHEAD].into_boxed_slice(),
            start: 0,
            end: 0,
            state: State::Header,
            last: None,
            seal: None,
            foreseen: Foreseen::new(),
            body: Vec::new(),
            streaming: false,
            hung_up: false,
            bytes: 0,
            frames: 0,
        }
    }

    /// Reads and hands over frames until the socket is empty, has ended, or about `budget` bytes
    /// were read. A short read counts as empty, which suits edge-triggered polling: the next byte
    /// is a new edge.
    pub fn read<S: FrameSink<Buffer = B>>(
        &mut self,
        socket: &mut impl Read,
        sink: &mut S,
        budget: usize,
    ) -> Result<ReadEnd, StreamError> {
        let limit = self.bytes + budget as u64;
        loop {
            while sink.goes_on() && self.step(sink)? {}
            if self.bytes >= limit || !sink.goes_on() {
                return Ok(ReadEnd::Budget);
            }
            match self.fill(socket, sink) {
                Ok(Fill::All) => {}
                Ok(Fill::Short) => {
                    while sink.goes_on() && self.step(sink)? {}
                    if !sink.goes_on() {
                        return Ok(ReadEnd::Budget);
                    }
                    if !self.hung_up {
                        return Ok(ReadEnd::Drained);
                    }
                }
                Ok(Fill::End) if self.is_between_frames() => return Ok(ReadEnd::Closed),
                Ok(Fill::End) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                Err(StreamError::Io(e)) if e.kind() == io::ErrorKind::WouldBlock => return Ok(ReadEnd::Drained),
                Err(StreamError::Io(e)) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Poll said that the far end has closed: from now on a short read is followed by another, up
    /// to the end.
    pub fn expect_end(&mut self) {
        self.hung_up = true;
    }

    /// The frame whose vector data is being read, and its memory.
    pub fn pending(&mut self) -> Option<(&Header, &mut B)> {
        match &mut self.state {
            State::Data { header, buffer: Some(buffer), .. } => Some((header, buffer)),
            _ => None,
        }
    }

    /// Gives up the memory of the frame being read; the rest of its payload goes nowhere, and the
    /// frame is handed over as `Discarded`.
    pub fn discard_pending(&mut self) -> Option<B> {
        match &mut self.state {
            State::Data { buffer, .. } => buffer.take(),
            _ => None,
        }
    }

    /// Bytes read from the socket for frames that are not complete.
    pub fn held(&self) -> usize {
        let begun = match &self.state {
            State::Header => 0,
            State::Data { filled, .. } => *filled,
            State::Body(_) => self.body.len(),
        };
        begun + self.end - self.start
    }

    /// Bytes read from the socket.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Frames handed over.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    fn is_between_frames(&self) -> bool {
        matches!(self.state, State::Header) && self.start == self.end
    }

    /// Uses what is in the read-ahead buffer; returns false when more bytes are needed.
    fn step<S: FrameSink<Buffer = B>>(&mut self, sink: &mut S) -> Result<bool, StreamError> {
        match &mut self.state {
            State::Header => self.step_header(sink),
            State::Data { header, buffer, filled } => {
                let len = header.payload_len as usize;
                let here = (self.end - self.start).min(len - *filled);
                if let Some(buffer) = buffer {
                    buffer.bytes_mut()[*filled..*filled + here]
                        .copy_from_slice(&self.ahead[self.start..self.start + here]);
                }
                self.start += here;
                *filled += here;
                if *filled < len {
                    return Ok(false);
                }
                self.finish_data(sink)?;
                Ok(true)
            }
            State::Body(header) => {
                let header = *header;
                let missing = header.payload_len as usize - self.body.len();
                let here = (self.end - self.start).min(missing);
                self.body.extend_from_slice(&self.ahead[self.start..self.start + here]);
                self.start += here;
                if here < missing {
                    return Ok(false);
                }
                self.state = State::Header;
                self.frames += 1;
                self.keys.open(&header, self.seal.as_ref(), &mut self.body)?;
                sink.frame(&header, Arrived::Body(&self.body))?;
                self.body = Vec::new();
                Ok(true)
            }
        }
    }

    fn step_header<S: FrameSink<Buffer = B>>(&mut self, sink: &mut S) -> Result<bool, StreamError> {
        let ahead = &self.ahead[self.start..self.end];
        let Some((header, head_len)) = self.keys.next_header(ahead, self.last.as_ref(), &mut self.seal)? else {
            return Ok(false);
        };
        self.start += head_len;
        if header.kind.carries_data() {
            self.last = Some(header);
        }
        let len = header.payload_len as usize;
        self.streaming = len >= LARGE;
        if len == 0 {
            self.frames += 1;
            sink.frame(&header, Arrived::None)?;
        } else if header.kind.carries_data() {
            let buffer = match sink.place(&header) {
                Destination::Into(buffer) => Some(buffer),
                Destination::Discard => None,
                Destination::Refuse(why) => return Err(StreamError::Refused(why)),
            };
            self.state = State::Data { header, buffer, filled: 0 };
        } else if header.flags & (FLAG_CRC | FLAG_SEALED) == 0 {
            return Err(ParseError::BadField("flags").into());
        } else if let Some(body) = self.ahead[self.start..self.end].get_mut(..len) {
            self.keys.open(&header, self.seal.as_ref(), body)?;
            self.start += len;
            self.frames += 1;
            sink.frame(&header, Arrived::Body(body))?;
        } else {
            self.body.reserve_exact(len);
            self.state = State::Body(header);
        }
        Ok(true)
    }

    fn finish_data<S: FrameSink<Buffer = B>>(&mut self, sink: &mut S) -> Result<(), StreamError> {
        let State::Data { header, buffer, .. } = core::mem::replace(&mut self.state, State::Header) else {
            unreachable!("called in state Data");
        };
        self.frames += 1;
        match buffer {
            Some(mut buffer) => {
                if header.flags & (FLAG_CRC | FLAG_SEALED) != 0 {
                    let len = header.payload_len as usize;
                    self.keys.open(&header, self.seal.as_ref(), &mut buffer.bytes_mut()[..len])?;
                }
                sink.frame(&header, Arrived::Data(buffer))
            }
            None => sink.frame(&header, Arrived::Discarded),
        }
    }

    /// Makes one read from the socket.
    fn fill<S: FrameSink<Buffer = B>>(&mut self, socket: &mut impl Read, sink: &mut S) -> Result<Fill, StreamError> {
        self.ahead.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == 0 {
            self.foresee(sink);
            if !self.foreseen.is_empty() {
                return self.fill_foreseen(socket, sink);
            }
        }
        // Another large payload follows a large payload, and what is read ahead of it has to be
        // copied later.
        let limit = if self.streaming { AHEAD_STREAMING } else { AHEAD };
        let (wanted, got) = match &mut self.state {
            State::Data { header, buffer: Some(buffer), filled } => {
                let rest = &mut buffer.bytes_mut()[*filled..header.payload_len as usize];
                let rest_len = rest.len();
                let ahead = &mut self.ahead[..limit];
                let mut slices = [IoSliceMut::new(rest), IoSliceMut::new(ahead)];
                let got = socket.read_vectored(&mut slices)?;
                *filled += got.min(rest_len);
                self.end = got.saturating_sub(rest_len);
                (rest_len + limit, got)
            }
            _ => {
                let space = &mut self.ahead[self.end..limit.max(self.end + HEADER_LEN + SEAL_LEN)];
                let got = socket.read(space)?;
                self.end += got;
                (space.len(), got)
            }
        };
        self.bytes += got as u64;
        Ok(Fill::of(got, wanted))
    }
}

enum Fill {
    All,
    Short,
    End,
}

impl Fill {
    fn of(got: usize, wanted: usize) -> Fill {
        match got {
            0 => Fill::End,
            _ if got < wanted => Fill::Short,
            _ => Fill::All,
        }
    }
}

/// Bytes of the read-ahead buffer. It holds two long segments, because what is foreseen must fit
/// in.
const AHEAD: usize = 2 * (64 * 1024 + SHORT_LEN + SEAL_LEN);
/// Bytes that are read ahead of a large payload: a few headers.
const AHEAD_STREAMING: usize = 2 * 1024;
/// A payload of this many bytes is large.
const LARGE: usize = 4 * 1024;
