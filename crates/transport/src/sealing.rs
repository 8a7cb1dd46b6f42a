//! How the frames of an edge are protected, at the end that sends them and at the end that takes
//! them (`docs/protocol.md#3.4`).
//!
//! An edge over memory is as one of the mode `checked`: what passes there does not leave the host
//! and the user.

use trib_keys::{PayloadKey, Session};
use trib_seal::{Opener, Sealer};
use trib_wire::auth::{FrameKey, check_payload};
use trib_wire::header::HEADER_LEN;
use trib_wire::mode::{SEAL_LEN, Seal};
use trib_wire::short::SHORT_LEN;
use trib_wire::{Header, Mode, ParseError, ShortHeader};

/// What a stream's writer needs.
#[derive(Debug)]
pub enum WriterKeys {
    /// Tags of headers alone.
    Checked(FrameKey),
    /// Frames are numbered, and control frames sealed here. Vector data is sealed before it comes
    /// to the writer.
    Sealed(Box<SealingKeys>),
}

/// See [`WriterKeys::Sealed`].
#[derive(Debug)]
pub struct SealingKeys {
    tags: FrameKey,
    numbers: Numbers,
    bodies: Sealer,
}

/// What a stream's reader needs.
#[derive(Debug)]
pub enum ReaderKeys {
    /// Tags of headers alone.
    Checked(FrameKey),
    /// Frames are numbered, and payloads sealed.
    Sealed(Box<OpeningKeys>),
}

/// See [`ReaderKeys::Sealed`].
#[derive(Debug)]
pub struct OpeningKeys {
    tags: FrameKey,
    numbers: Numbers,
    bodies: Opener,
    data: Opener,
}

/// The numbers of the next frames on a stream. Those that wait for their turn, and those that
/// overtake them, have numbers of their own, because only among themselves do they keep their
/// order from when they are tagged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Numbers {
    in_turn: u64,
    ahead: u64,
}

impl Numbers {
    fn of(&mut self, header: &Header) -> &mut u64 {
        if header.keeps_turn() { &mut self.in_turn } else { &mut self.ahead }
    }
}

impl WriterKeys {
    /// The keys of the node's end of a connection.
    pub fn down(session: &Session) -> WriterKeys {
        WriterKeys::sealed(session.mode, session.down, &session.bodies_down)
    }

    /// The keys of the child's end of a connection.
    pub fn up(session: &Session) -> WriterKeys {
        WriterKeys::sealed(session.mode, session.up, &session.bodies_up)
    }

    fn sealed(mode: Mode, tags: FrameKey, bodies: &PayloadKey) -> WriterKeys {
        let bodies = Sealer::new(mode, bodies.clone());
        WriterKeys::Sealed(Box::new(SealingKeys { tags, numbers: Numbers::default(), bodies }))
    }
}

impl SealingKeys {
    /// Seals the body of a control frame.
    pub(crate) fn seal_body(&mut self, body: &mut [u8]) -> Seal {
        self.bodies.seal(body)
    }

    /// The tag of the next frame of its kind of order.
    pub(crate) fn next_tag(&mut self, header: &Header, seal: Option<&[u8; SEAL_LEN]>) -> u64 {
        let number = self.numbers.of(header);
        let tag = self.tags.tag_beside(header, Some(*number), seal);
        *number += 1;
        tag
    }

    /// So many of the last frames in turn will not be sent under their numbers.
    pub(crate) fn take_back(&mut self, frames: usize) {
        self.numbers.in_turn -= frames as u64;
    }

    pub(crate) fn tick(&mut self, now: u64) {
        self.bodies.tick(now);
    }
}

impl ReaderKeys {
    /// The keys of the child's end of a connection; `results` is that of the node's vector data.
    pub fn down(session: &Session, results: &PayloadKey) -> ReaderKeys {
        ReaderKeys::sealed(session.mode, session.down, &session.bodies_down, results)
    }

    /// The keys of the node's end of a connection.
    pub fn up(session: &Session) -> ReaderKeys {
        ReaderKeys::sealed(session.mode, session.up, &session.bodies_up, &session.data_up)
    }

    fn sealed(mode: Mode, tags: FrameKey, bodies: &PayloadKey, data: &PayloadKey) -> ReaderKeys {
        let opener = |key: &PayloadKey| Opener::new(mode, key.clone());
        let (bodies, data) = (opener(bodies), opener(data));
        ReaderKeys::Sealed(Box::new(OpeningKeys { tags, numbers: Numbers::default(), bodies, data }))
    }

    /// The header of a frame at the front of these bytes, and how many it took with its seal, which
    /// is put into `seal`. `None` while it is not all there. `last` is the header that a short one
    /// follows. The tag is right, and in a mode that seals payloads this is the frame that the far
    /// end has sent next.
    pub(crate) fn next_header(
        &mut self,
        bytes: &[u8],
        last: Option<&Header>,
        seal: &mut Option<Seal>,
    ) -> Result<Option<(Header, usize)>, ParseError> {
        if ShortHeader::begins(bytes) {
            let Some((front, rest)) = bytes.split_at_checked(SHORT_LEN) else { return Ok(None) };
            let (short, tag) = ShortHeader::parse(front)?;
            let header = short.expand(last.ok_or(ParseError::BadField("short header"))?)?;
            let taken = self.accept_short(&header, tag, rest, seal)?;
            return Ok(taken.map(|taken| (header, SHORT_LEN + taken)));
        }
        let Some((front, rest)) = bytes.split_at_checked(HEADER_LEN) else { return Ok(None) };
        let (header, tag) = Header::parse(front)?;
        let taken = match self {
            ReaderKeys::Checked(key) => {
                key.verify(front, tag)?;
                unsealed(&header).map(Some)
            }
            ReaderKeys::Sealed(keys) => keys.accept(&header, tag, rest, seal),
        };
        Ok(taken?.map(|taken| (header, HEADER_LEN + taken)))
    }

    /// Accepts a short header that stands for this one, if its tag is right. The seal is at the
    /// front of `rest`, and is put into `seal`; the answer is how many bytes it has.
    #[inline]
    pub(crate) fn accept_short(
        &mut self,
        header: &Header,
        tag: u64,
        rest: &[u8],
        seal: &mut Option<Seal>,
    ) -> Result<Option<usize>, ParseError> {
        match self {
            ReaderKeys::Checked(key) if key.tag_of(header) == tag => unsealed(header).map(Some),
            ReaderKeys::Checked(_) => Err(ParseError::BadTag),
            ReaderKeys::Sealed(keys) => keys.accept(header, tag, rest, seal),
        }
    }

    /// Whether a seal is behind the headers of frames with a payload.
    pub(crate) fn are_for_seals(&self) -> bool {
        matches!(self, ReaderKeys::Sealed(_))
    }

    /// Opens the payload of a frame.
    pub(crate) fn open(&mut self, header: &Header, seal: Option<&Seal>, payload: &mut [u8]) -> Result<(), ParseError> {
        match (self, seal) {
            (ReaderKeys::Checked(_), _) => check_payload(header, payload),
            (ReaderKeys::Sealed(_), None) => Err(ParseError::BadTag),
            (ReaderKeys::Sealed(keys), Some(seal)) => {
                let opener = if header.kind.carries_data() { &mut keys.data } else { &mut keys.bodies };
                opener.open(seal, payload)
            }
        }
    }
}

impl OpeningKeys {
    fn accept(
        &mut self,
        header: &Header,
        tag: u64,
        rest: &[u8],
        found: &mut Option<Seal>,
    ) -> Result<Option<usize>, ParseError> {
        if header.is_sealed() != (header.payload_len > 0) {
            return Err(ParseError::BadField("flags"));
        }
        let seal = if header.is_sealed() {
            let Some(seal) = rest.first_chunk() else { return Ok(None) };
            Some(seal)
        } else {
            None
        };
        let number = self.numbers.of(header);
        if self.tags.tag_beside(header, Some(*number), seal) != tag {
            return Err(ParseError::BadTag);
        }
        *number += 1;
        *found = seal.map(|seal| Seal::parse(seal)).transpose()?;
        Ok(Some(seal.map_or(0, |seal| seal.len())))
    }
}

/// A frame in a mode without seals.
#[inline]
fn unsealed(header: &Header) -> Result<usize, ParseError> {
    if header.is_sealed() { Err(ParseError::BadField("flags")) } else { Ok(0) }
}
