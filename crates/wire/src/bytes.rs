//! Little-endian reading and writing with bounds: the only module that turns bytes into integers.

use crate::error::ParseError;

/// Reads integers off the front of a slice; every method fails instead of panicking.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
}

macro_rules! read {
    ($name:ident, $ty:ty) => {
        pub(crate) fn $name(&mut self) -> Result<$ty, ParseError> {
            let (head, tail) = self.bytes.split_first_chunk().ok_or(ParseError::Truncated)?;
            self.bytes = tail;
            Ok(<$ty>::from_le_bytes(*head))
        }
    };
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes }
    }

    pub(crate) fn left(&self) -> usize {
        self.bytes.len()
    }

    read!(u8, u8);
    read!(u16, u16);
    read!(u32, u32);
    read!(u64, u64);

    /// Checks that the message ends here.
    pub(crate) fn end(&self) -> Result<(), ParseError> {
        if self.bytes.is_empty() { Ok(()) } else { Err(ParseError::TrailingBytes) }
    }
}

/// Writes integers into a slice that the caller sized with the message's own length function.
pub(crate) struct Writer<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

macro_rules! write {
    ($name:ident, $ty:ty) => {
        pub(crate) fn $name(&mut self, value: $ty) {
            let bytes = value.to_le_bytes();
            self.bytes[self.at..self.at + bytes.len()].copy_from_slice(&bytes);
            self.at += bytes.len();
        }
    };
}

impl<'a> Writer<'a> {
    pub(crate) fn new(bytes: &'a mut [u8]) -> Self {
        Writer { bytes, at: 0 }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    write!(u8, u8);
    write!(u16, u16);
    write!(u32, u32);
    write!(u64, u64);
}
