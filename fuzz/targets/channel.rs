//! Messages in a stream of bytes, as the control channel takes them off: the first byte says in
//! which pieces the bytes come.
//!
//! Asserted: whatever the pieces, the same messages come out, and the same error; a message that is
//! taken off is written back to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trib_messages::Message;

// The module is private to `trib_control`.
#[path = "../../crates/control/src/frame.rs"]
mod frame;

/// What the module needs of its crate.
#[derive(Debug)]
pub enum Error {
    /// A message is longer than any may be.
    TooLong {
        /// Its length.
        bytes: usize,
    },
}

/// JSON as it is, whatever it says.
struct Raw<'a>(&'a [u8]);

impl Message for Raw<'_> {
    fn write(&self, json: &mut Vec<u8>) {
        json.extend_from_slice(self.0);
    }

    fn read(_: &[u8]) -> Result<Self, String> {
        Err("the frame's bytes are compared, not their meaning".into())
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((piece, bytes)) = bytes.split_first() else { return };
    let (whole, end) = taken(bytes.chunks(bytes.len().max(1)));
    assert_eq!(taken(bytes.chunks(usize::from(*piece).max(1))), (whole.clone(), end));
    let again: Vec<u8> = whole.iter().flat_map(|json| frame::encode(&Raw(json)).expect("it came in")).collect();
    assert!(bytes.starts_with(&again));
});

/// The messages that come out of these pieces, and whether the stream then goes on.
fn taken<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, bool) {
    let (mut inbox, mut messages) = (Vec::new(), Vec::new());
    for piece in pieces {
        inbox.extend_from_slice(piece);
        loop {
            match frame::take(&mut inbox) {
                Ok(Some(json)) => messages.push(json),
                Ok(None) => break,
                Err(_) => return (messages, false),
            }
        }
    }
    (messages, true)
}
