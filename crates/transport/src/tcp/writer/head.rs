//! Headers as they travel, long or short, with a seal behind them.
//!
//! Vector data mostly follows vector data, and then its header is short and lies beside the frame.
//! Frames move from queue to queue, so what a long one takes lies elsewhere, in memory that is used
//! again and again.

use trib_wire::header::HEADER_LEN;
use trib_wire::mode::SEAL_LEN;
use trib_wire::short::SHORT_LEN;
use trib_wire::{Header, ShortHeader};

use crate::sealing::WriterKeys;

/// A header, and how many bytes it has with the seal.
#[derive(Debug)]
pub(super) enum Head {
    Short([u8; SHORT_LEN + SEAL_LEN], usize),
    Long(Box<Long>, usize),
}

pub(super) type Long = [u8; HEADER_LEN + SEAL_LEN];

/// Memory for long headers.
#[derive(Debug)]
pub(super) struct Heads {
    #[expect(clippy::vec_box, reason = "a header moves with its frame, and back, without being copied")]
    spare: Vec<Box<Long>>,
}

impl Heads {
    /// Memory for so many at a time. Further ones take more for a while.
    pub(super) fn new(kept: usize) -> Heads {
        Heads { spare: (0..kept).map(|_| Box::new([0; HEADER_LEN + SEAL_LEN])).collect() }
    }

    fn take(&mut self) -> Box<Long> {
        self.spare.pop().unwrap_or_else(|| Box::new([0; HEADER_LEN + SEAL_LEN]))
    }

    /// Takes a header back that is not needed any more.
    #[inline]
    pub(super) fn give(&mut self, head: Head) {
        if let Head::Long(bytes, _) = head
            && self.spare.len() < self.spare.capacity()
        {
            self.spare.push(bytes);
        }
    }
}

impl Head {
    /// The shortest form of a header that can follow the data frame `previous`, with its tag, and
    /// the frame's seal.
    pub(super) fn new(
        header: &Header,
        seal: Option<&[u8; SEAL_LEN]>,
        previous: Option<&Header>,
        keys: &mut WriterKeys,
        heads: &mut Heads,
    ) -> Head {
        match previous.and_then(|previous| ShortHeader::between(previous, header)) {
            Some(short) => {
                let mut bytes = [0; SHORT_LEN + SEAL_LEN];
                let (front, behind) = bytes.split_first_chunk_mut().expect("there is room for a short header");
                match keys {
                    WriterKeys::Checked(key) => short.seal(header, key, front),
                    WriterKeys::Sealed(keys) => short.emit(keys.next_tag(header, seal), front),
                }
                let len = SHORT_LEN + put_seal(seal, behind);
                Head::Short(bytes, len)
            }
            None => {
                let mut bytes = heads.take();
                let (front, behind) = bytes.split_first_chunk_mut().expect("there is room for a header");
                match keys {
                    WriterKeys::Checked(key) => key.seal(header, front),
                    WriterKeys::Sealed(keys) => header.emit(keys.next_tag(header, seal), front),
                }
                let len = HEADER_LEN + put_seal(seal, behind);
                Head::Long(bytes, len)
            }
        }
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Head::Short(bytes, len) => &bytes[..*len],
            Head::Long(bytes, len) => &bytes[..*len],
        }
    }
}

/// Puts the seal there, if there is one; returns how many bytes it has.
fn put_seal(seal: Option<&[u8; SEAL_LEN]>, bytes: &mut [u8]) -> usize {
    let Some(seal) = seal else { return 0 };
    bytes[..SEAL_LEN].copy_from_slice(seal);
    SEAL_LEN
}
