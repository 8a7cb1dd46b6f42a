//! A message on its way: its length, then its bytes.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::slice;

use crate::failure::Failure;

/// The bytes of a length.
const HEADER: usize = 8;

/// A message, at the sender or at the receiver.
pub struct Transfer {
    /// The number of its request.
    pub request: usize,
    header: [u8; HEADER],
    header_moved: usize,
    buffer: *mut u8,
    /// The bytes of the message at the sender; at the receiver those of its buffer, until the
    /// header is there.
    len: usize,
    moved: usize,
}

// SAFETY: the buffer is the caller's memory, which any thread may touch that tests the request.
unsafe impl Send for Transfer {}

impl Transfer {
    /// A message of `len` bytes at `buffer`, or a buffer for one of at most so many.
    ///
    /// # Safety
    /// The buffer is the transfer's until [`Transfer::send`] or [`Transfer::receive`] has said that
    /// it is over, or the transfer is dropped.
    pub unsafe fn new(request: usize, buffer: *mut u8, len: usize) -> Transfer {
        Transfer { request, header: (len as u64).to_le_bytes(), header_moved: 0, buffer, len, moved: 0 }
    }

    /// Sends what the connection takes. Returns the bytes of the message when all are sent.
    pub fn send(&mut self, socket: &mut impl Write) -> Result<Option<usize>, Failure> {
        while self.header_moved < HEADER || self.moved < self.len {
            let head = &self.header[self.header_moved..];
            let bytes = match self.len {
                0 => &[],
                // SAFETY: the contract of `new`.
                len => &(unsafe { slice::from_raw_parts(self.buffer, len) })[self.moved..],
            };
            let Some(count) = moved(socket.write_vectored(&[IoSlice::new(head), IoSlice::new(bytes)]))? else {
                return Ok(None);
            };
            let of_header = count.min(head.len());
            self.header_moved += of_header;
            self.moved += count - of_header;
        }
        Ok(Some(self.len))
    }

    /// Receives what the connection has. Returns the bytes of the message when all are here.
    pub fn receive(&mut self, socket: &mut impl Read) -> Result<Option<usize>, Failure> {
        while self.header_moved < HEADER {
            let Some(count) = moved(socket.read(&mut self.header[self.header_moved..]))? else { return Ok(None) };
            self.header_moved += count;
            if self.header_moved == HEADER {
                self.take_length()?;
            }
        }
        while self.moved < self.len {
            // SAFETY: the contract of `new`; the length is at most the buffer's.
            let bytes = &mut (unsafe { slice::from_raw_parts_mut(self.buffer, self.len) })[self.moved..];
            let Some(count) = moved(socket.read(bytes))? else { return Ok(None) };
            self.moved += count;
        }
        Ok(Some(self.len))
    }

    /// Believes the length of the sender if the buffer has room for it.
    fn take_length(&mut self) -> Result<(), Failure> {
        let announced = u64::from_le_bytes(self.header);
        match usize::try_from(announced).ok().filter(|len| *len <= self.len) {
            Some(len) => self.len = len,
            None => {
                let room = self.len;
                let text = format!("the other rank sends {announced} bytes into a buffer of {room}: {CAUSES}");
                return Err(Failure::remote(text));
            }
        }
        Ok(())
    }
}

/// How many bytes were moved, or none because nothing can be now.
pub fn moved(outcome: io::Result<usize>) -> Result<Option<usize>, Failure> {
    match outcome {
        Ok(0) => Err(Failure::remote("the other rank has closed the connection: it has ended or failed")),
        Ok(count) => Ok(Some(count)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        // The next test looks again.
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
        Err(error) => Err(Failure::remote(format!("the connection to the other rank failed: {error}"))),
    }
}

const CAUSES: &str = "the ranks disagree about a message, or something else than a rank has connected";

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A connection that takes and gives a few bytes at a time.
    #[derive(Default)]
    struct Narrow {
        bytes: VecDeque<u8>,
        is_ready: bool,
    }

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.is_ready = !self.is_ready;
            if !self.is_ready {
                return Err(ErrorKind::WouldBlock.into());
            }
            self.bytes.extend(&bytes[..bytes.len().min(3)]);
            Ok(bytes.len().min(3))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Read for Narrow {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            self.is_ready = !self.is_ready;
            if !self.is_ready {
                return Err(ErrorKind::WouldBlock.into());
            }
            let count = bytes.len().min(5).min(self.bytes.len());
            for (to, from) in bytes.iter_mut().zip(self.bytes.drain(..count)) {
                *to = from;
            }
            Ok(count)
        }
    }

    fn sent(message: &mut [u8]) -> Narrow {
        let mut narrow = Narrow::default();
        // SAFETY: the message outlives the transfer.
        let mut transfer = unsafe { Transfer::new(0, message.as_mut_ptr(), message.len()) };
        while transfer.send(&mut narrow).unwrap().is_none() {}
        narrow
    }

    #[test]
    fn messages_pass_in_pieces_and_may_be_shorter_than_the_buffer() {
        for len in [0, 1, 7, 8, 100] {
            let mut message: Vec<u8> = (0..len).map(|byte| byte as u8).collect();
            let mut narrow = sent(&mut message);
            let mut buffer = vec![0xaa; 100];
            // SAFETY: the buffer outlives the transfer.
            let mut transfer = unsafe { Transfer::new(0, buffer.as_mut_ptr(), buffer.len()) };
            let got = loop {
                if let Some(got) = transfer.receive(&mut narrow).unwrap() {
                    break got;
                }
            };
            assert_eq!((got, &buffer[..len]), (len, &message[..]));
            assert!(buffer[len..].iter().all(|byte| *byte == 0xaa));
        }
    }

    #[test]
    fn a_length_beyond_the_buffer_is_not_believed() {
        for announced in [9u64, u64::MAX, 1 << 40] {
            let mut narrow = Narrow { bytes: announced.to_le_bytes().into(), is_ready: false };
            let mut buffer = [0u8; 8];
            // SAFETY: the buffer outlives the transfer.
            let mut transfer = unsafe { Transfer::new(0, buffer.as_mut_ptr(), buffer.len()) };
            let failure = loop {
                match transfer.receive(&mut narrow) {
                    Ok(done) => assert_eq!(done, None),
                    Err(failure) => break failure,
                }
            };
            assert!(failure.text.contains(&format!("sends {announced} bytes into a buffer of 8")), "{}", failure.text);
        }
    }

    #[test]
    fn an_end_in_the_middle_is_the_other_ranks() {
        let mut narrow = sent(&mut [1, 2, 3]);
        narrow.bytes.pop_back();
        let mut buffer = [0u8; 8];
        // SAFETY: the buffer outlives the transfer.
        let mut transfer = unsafe { Transfer::new(0, buffer.as_mut_ptr(), buffer.len()) };
        let failure = loop {
            if let Err(failure) = transfer.receive(&mut narrow) {
                break failure;
            }
        };
        assert_eq!(failure.code, crate::failure::Code::Remote);
    }
}
