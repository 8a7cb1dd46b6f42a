//! Reads the next pieces of a vector straight to where they will belong, before their headers have
//! come.

use std::io::{self, IoSliceMut, Read};

use trib_wire::mode::SEAL_LEN;
use trib_wire::short::SHORT_LEN;
use trib_wire::{Header, ShortHeader};

use super::{AHEAD, Destination, Fill, FrameSink, State, StreamError, StreamReader};
use crate::landing::Landing;

/// Memory for frames that have not come yet.
#[derive(Debug)]
pub(super) struct Foreseen<B> {
    frames: Vec<(Header, B)>,
    /// Their short headers, with their seals in a mode that has them.
    heads: Box<[[u8; SHORT_LEN + SEAL_LEN]]>,
}

impl<B: Landing> Foreseen<B> {
    pub(super) fn new() -> Foreseen<B> {
        Foreseen { frames: Vec::with_capacity(FORESEEN_MAX), heads: [[0; SHORT_LEN + SEAL_LEN]; FORESEEN_MAX].into() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Reads `first` and then all foreseen frames with one call. Returns how many bytes came, and
    /// for how many there was room. A header takes `head_len` bytes.
    fn read(&mut self, first: &mut [u8], head_len: usize, socket: &mut impl Read) -> io::Result<(usize, usize)> {
        let mut slices: [IoSliceMut<'_>; 1 + 2 * FORESEEN_MAX] = std::array::from_fn(|_| IoSliceMut::new(&mut []));
        let mut wanted = first.len();
        slices[0] = IoSliceMut::new(first);
        let mut count = 1;
        for ((header, buffer), head) in self.frames.iter_mut().zip(&mut self.heads) {
            let payload = &mut buffer.bytes_mut()[..header.payload_len as usize];
            wanted += head_len + payload.len();
            slices[count] = IoSliceMut::new(&mut head[..head_len]);
            slices[count + 1] = IoSliceMut::new(payload);
            count += 2;
        }
        Ok((socket.read_vectored(&mut slices[..count])?, wanted))
    }
}

impl<B: Landing> StreamReader<B> {
    /// The bytes of a short header, with its seal.
    fn short_len(&self) -> usize {
        if self.keys.are_for_seals() { SHORT_LEN + SEAL_LEN } else { SHORT_LEN }
    }

    /// Asks the sink for memory for what probably comes next: pieces of the vector that is being
    /// read.
    pub(super) fn foresee<S: FrameSink<Buffer = B>>(&mut self, sink: &mut S) {
        let Some(mut last) = self.last.filter(|_| self.streaming) else { return };
        match &self.state {
            State::Header | State::Data { buffer: Some(_), .. } => {}
            _ => return,
        }
        let len = self.short_len() + last.payload_len as usize;
        let next = ShortHeader { next_operation: false, mark_step: 0 };
        while self.foreseen.frames.len() < FORESEEN_MAX && (self.foreseen.frames.len() + 1) * len <= AHEAD {
            let Ok(header) = next.expand(&last) else { return };
            let Some(buffer) = sink.foresee(&header) else { return };
            self.foreseen.frames.push((header, buffer));
            last = header;
        }
    }

    /// Makes one read: the rest of a payload, then what was foreseen.
    pub(super) fn fill_foreseen<S: FrameSink<Buffer = B>>(
        &mut self,
        socket: &mut impl Read,
        sink: &mut S,
    ) -> Result<Fill, StreamError> {
        let head_len = self.short_len();
        let rest = match &mut self.state {
            State::Data { header, buffer: Some(buffer), filled } => {
                &mut buffer.bytes_mut()[*filled..header.payload_len as usize]
            }
            _ => &mut [],
        };
        let rest_len = rest.len();
        let read = self.foreseen.read(rest, head_len, socket);
        let (got, wanted) = match read {
            Ok(counts) => counts,
            Err(error) => {
                self.foreseen.frames.clear();
                return Err(error.into());
            }
        };
        self.bytes += got as u64;
        if let State::Data { header, filled, .. } = &mut self.state {
            *filled += got.min(rest_len);
            if *filled == header.payload_len as usize {
                self.finish_data(sink)?;
            }
        }
        self.use_foreseen(got.saturating_sub(rest_len), sink)?;
        Ok(Fill::of(got, wanted))
    }

    /// Hands over what came as foreseen; `got` bytes are in the memory for foreseen frames.
    fn use_foreseen<S: FrameSink<Buffer = B>>(&mut self, mut got: usize, sink: &mut S) -> Result<(), StreamError> {
        let mut frames = std::mem::take(&mut self.foreseen.frames);
        let head_len = self.short_len();
        let heads = std::mem::take(&mut self.foreseen.heads);
        let mut rest = frames.drain(..).zip(&heads);
        while got > 0 {
            let Some(((expected, mut buffer), head)) = rest.next() else { break };
            let head = &head[..head_len];
            let found = if got < head_len { None } else { self.as_foreseen(&expected, head)? };
            let Some(header) = found else {
                // Something else came, or too little to tell.
                let mut spill = |bytes: &[u8]| {
                    let here = bytes.len().min(got);
                    self.ahead[self.end..self.end + here].copy_from_slice(&bytes[..here]);
                    self.end += here;
                    got -= here;
                };
                spill(head);
                spill(&buffer.bytes_mut()[..expected.payload_len as usize]);
                for ((expected, mut buffer), head) in rest.by_ref() {
                    spill(&head[..head_len]);
                    spill(&buffer.bytes_mut()[..expected.payload_len as usize]);
                }
                break;
            };
            got -= head_len;
            let filled = got.min(header.payload_len as usize);
            got -= filled;
            self.last = Some(header);
            let buffer = match sink.confirm(&header, buffer) {
                Destination::Into(buffer) => Some(buffer),
                Destination::Discard => None,
                Destination::Refuse(why) => return Err(StreamError::Refused(why)),
            };
            self.state = State::Data { header, buffer, filled };
            if filled == header.payload_len as usize {
                self.finish_data(sink)?;
            }
        }
        drop(rest);
        (self.foreseen.frames, self.foreseen.heads) = (frames, heads);
        Ok(())
    }

    /// The header that these bytes encode, if it is the expected one except for its mark. Nothing
    /// of a frame that is another one is used up.
    fn as_foreseen(&mut self, expected: &Header, head: &[u8]) -> Result<Option<Header>, StreamError> {
        let (Some(last), true) = (&self.last, ShortHeader::begins(head)) else { return Ok(None) };
        let (short, tag) = ShortHeader::parse(head)?;
        let header = short.expand(last)?;
        if (Header { mark: expected.mark, ..header }) != *expected {
            return Ok(None);
        }
        let taken = self.keys.accept_short(&header, tag, &head[SHORT_LEN..], &mut self.seal)?;
        Ok(taken.map(|_| header))
    }
}

/// How many frames one call reads beyond the one under way.
pub const FORESEEN_MAX: usize = 7;
