//! What both ends of an edge over UCX say behind their proofs.
//!
//! ```text
//!   length of the address (2) | name (2..10) | address
//! ```
//! The address is UCX's own, and of any content.

use alloc::vec::Vec;

use crate::bytes::{Reader, Writer};
use crate::error::ParseError;

/// Where an end is reached, and how it calls the edge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    name: u64,
    address: Vec<u8>,
}

impl Offer {
    /// Bytes of an offer without its address.
    pub const LEN: usize = 10;
    /// The longest address.
    pub const ADDRESS_MAX: usize = 8192;

    /// An offer; `None` if the address is too long.
    pub fn new(name: u64, address: &[u8]) -> Option<Offer> {
        (address.len() <= Self::ADDRESS_MAX).then(|| Offer { name, address: address.into() })
    }

    /// How its end calls the edge.
    pub fn name(&self) -> u64 {
        self.name
    }

    /// Where its end is reached.
    pub fn address(&self) -> &[u8] {
        &self.address
    }

    /// The offer as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = alloc::vec![0; Self::LEN + self.address.len()];
        let mut w = Writer::new(&mut bytes);
        w.u16(self.address.len() as u16);
        w.u64(self.name);
        bytes[Self::LEN..].copy_from_slice(&self.address);
        bytes
    }

    /// The bytes of the whole offer that begins with these.
    pub fn len_of(head: &[u8; Self::LEN]) -> Result<usize, ParseError> {
        match usize::from(Reader::new(head).u16()?) {
            len if len <= Self::ADDRESS_MAX => Ok(Self::LEN + len),
            _ => Err(ParseError::BadField("address")),
        }
    }

    /// Reads an offer.
    pub fn parse(bytes: &[u8]) -> Result<Offer, ParseError> {
        let (head, address) = bytes.split_first_chunk().ok_or(ParseError::Truncated)?;
        if Self::len_of(head)? != bytes.len() {
            return Err(ParseError::Truncated);
        }
        let mut r = Reader::new(&head[2..]);
        Ok(Offer { name: r.u64()?, address: address.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_survives_the_wire_and_has_a_bounded_length() {
        for len in [0, 1, 300, Offer::ADDRESS_MAX] {
            let offer = Offer::new(0x0102_0304_0506_0708, &alloc::vec![9; len]).unwrap();
            let bytes = offer.to_bytes();
            assert_eq!(Offer::len_of(bytes.first_chunk().unwrap()), Ok(bytes.len()));
            assert_eq!(Offer::parse(&bytes), Ok(offer));
            assert_eq!(Offer::parse(&bytes[..bytes.len() - 1]), Err(ParseError::Truncated));
        }
        assert_eq!(Offer::new(1, &alloc::vec![0; Offer::ADDRESS_MAX + 1]), None);
        let mut bytes = Offer::new(1, &[2, 3]).unwrap().to_bytes();
        assert_eq!(bytes, [2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 3]);
        bytes[..2].copy_from_slice(&u16::MAX.to_le_bytes());
        assert_eq!(Offer::len_of(bytes.first_chunk().unwrap()), Err(ParseError::BadField("address")));
        assert_eq!(Offer::parse(&[]), Err(ParseError::Truncated));
    }
}
