//! Frames in a writer's queues: as they were given, and with the header as it will travel.

use trib_wire::Header;
use trib_wire::auth::payload_crc;
use trib_wire::header::{FLAG_CRC, FLAG_SEALED, HEADER_LEN};
use trib_wire::mode::SEAL_LEN;

use super::head::{Head, Heads, Long};
use crate::landing::Source;
use crate::sealing::WriterKeys;

/// A frame whose header is still to be encoded.
#[derive(Debug)]
pub(super) struct Frame<P> {
    pub(super) header: Header,
    /// What seals its payload, if anything does.
    pub(super) seal: Option<[u8; SEAL_LEN]>,
    pub(super) content: Content<P>,
}

/// What follows a header.
#[derive(Debug)]
pub(super) enum Content<P> {
    None,
    Body(Box<[u8]>),
    Data(P),
}

/// A frame that can be sent.
#[derive(Debug)]
pub(super) struct Ready<P> {
    pub(super) frame: Frame<P>,
    head: Head,
}

impl<P: Source> Frame<P> {
    /// A frame with vector data, which is sealed already if it has a seal, or without any payload.
    pub(super) fn with_data(mut header: Header, payload: Option<P>, seal: Option<[u8; SEAL_LEN]>) -> Frame<P> {
        header.flags &= !(FLAG_CRC | FLAG_SEALED);
        if seal.is_some() {
            header.flags |= FLAG_SEALED;
        }
        header.payload_crc = 0;
        Frame { header, seal, content: payload.map_or(Content::None, Content::Data) }
    }

    /// A control frame, whose body is not protected yet.
    pub(super) fn with_body(mut header: Header, body: &[u8]) -> Frame<P> {
        header.payload_len = body.len() as u32;
        let content = if body.is_empty() { Content::None } else { Content::Body(body.into()) };
        Frame { header, seal: None, content }
    }

    /// Gives a control frame what covers its body in the mode of these keys, and its tag.
    pub(super) fn protect(mut self, keys: &mut WriterKeys, heads: &mut Heads) -> Ready<P> {
        self.header.flags &= !(FLAG_CRC | FLAG_SEALED);
        self.header.payload_crc = 0;
        if let Content::Body(body) = &mut self.content {
            match keys {
                WriterKeys::Checked(_) => {
                    self.header.flags |= FLAG_CRC;
                    self.header.payload_crc = payload_crc(body);
                }
                WriterKeys::Sealed(keys) => {
                    self.header.flags |= FLAG_SEALED;
                    self.seal = Some(keys.seal_body(body).to_bytes());
                }
            }
        }
        self.encode(None, keys, heads)
    }

    /// Gives the header the shortest form that can follow the data frame `previous`, and its tag.
    pub(super) fn encode(self, previous: Option<&Header>, keys: &mut WriterKeys, heads: &mut Heads) -> Ready<P> {
        let head = Head::new(&self.header, self.seal.as_ref(), previous, keys, heads);
        Ready { frame: self, head }
    }

    pub(super) fn carries_data(&self) -> bool {
        self.header.kind.carries_data()
    }

    pub(super) fn payload(&self) -> &[u8] {
        match &self.content {
            Content::None => &[],
            Content::Body(body) => body,
            Content::Data(payload) => payload.bytes(),
        }
    }

    /// The bytes that it has on its way if its header is not shortened.
    pub(super) fn longest(&self) -> usize {
        let seal = if self.seal.is_some() { SEAL_LEN } else { 0 };
        HEADER_LEN + seal + self.header.payload_len as usize
    }
}

impl<P: Source> Ready<P> {
    /// Encodes the header anew, behind another data frame.
    pub(super) fn encode(&mut self, previous: Option<&Header>, keys: &mut WriterKeys, heads: &mut Heads) {
        let Frame { header, seal, .. } = &self.frame;
        let head = Head::new(header, seal.as_ref(), previous, keys, heads);
        heads.give(core::mem::replace(&mut self.head, head));
    }

    /// It has been sent, and its header is not needed any more.
    #[inline]
    pub(super) fn sent(self, heads: &mut Heads) -> Frame<P> {
        heads.give(self.head);
        self.frame
    }

    pub(super) fn head(&self) -> &[u8] {
        self.head.bytes()
    }

    /// The bytes that it has on its way.
    pub(super) fn len(&self) -> usize {
        self.head.bytes().len() + self.frame.header.payload_len as usize
    }

    /// The memory that it takes while it waits, its vector data apart.
    pub(super) fn memory(&self) -> usize {
        let body = if let Content::Body(body) = &self.frame.content { body.len() } else { 0 };
        Ready::<P>::memory_with(body)
    }

    /// The same of a control frame with a body of so many bytes. Its header is long.
    pub(super) fn memory_with(body: usize) -> usize {
        size_of::<Ready<P>>() + size_of::<Long>() + body
    }
}
