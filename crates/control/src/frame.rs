//! Messages in a stream of bytes: length (u32, little-endian), then JSON.

use trib_messages::Message;

use crate::Error;

/// The largest number of bytes of JSON in one message; a longer message is refused before memory is
/// taken for it.
pub const MESSAGE_MAX: usize = 16 << 20;

const LENGTH_BYTES: usize = 4;

/// One message with its length before it.
pub(crate) fn encode(message: &impl Message) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; LENGTH_BYTES];
    message.write(&mut bytes);
    let length = bytes.len() - LENGTH_BYTES;
    if length > MESSAGE_MAX {
        return Err(Error::TooLong { bytes: length });
    }
    bytes[..LENGTH_BYTES].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(bytes)
}

/// Takes the first whole frame's JSON off the front of `bytes`; `None` while it is incomplete.
pub(crate) fn take(bytes: &mut Vec<u8>) -> Result<Option<Vec<u8>>, String> {
    let Some(length) = bytes.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if length > MESSAGE_MAX {
        return Err(format!("it claims {length} bytes, at most {MESSAGE_MAX} are allowed"));
    }
    if bytes.len() < LENGTH_BYTES + length {
        return Ok(None);
    }
    let rest = bytes.split_off(LENGTH_BYTES + length);
    let mut frame = std::mem::replace(bytes, rest);
    frame.drain(..LENGTH_BYTES);
    Ok(Some(frame))
}

#[cfg(test)]
mod tests {
    use trib_messages::hello::{Hello, Role};

    use super::*;

    fn message(software: String) -> Hello {
        Hello { version: 1, software, role: Role::User }
    }

    #[test]
    fn frames_come_out_whole_and_in_order_whatever_the_cuts() {
        let sent = ["".into(), "a".into(), "b".repeat(70_000)].map(message);
        let stream: Vec<u8> = sent.iter().flat_map(|m| encode(m).unwrap()).collect();
        for cut in [1, 3, 4, 5, 1000, stream.len()] {
            let (mut inbox, mut got) = (Vec::new(), Vec::new());
            for piece in stream.chunks(cut) {
                inbox.extend_from_slice(piece);
                while let Some(json) = take(&mut inbox).unwrap() {
                    got.push(Hello::read(&json).unwrap());
                }
            }
            assert_eq!(got, sent);
            assert!(inbox.is_empty());
        }
    }

    #[test]
    fn a_length_beyond_the_limit_is_refused_at_once() {
        let mut inbox = (MESSAGE_MAX as u32 + 1).to_le_bytes().to_vec();
        assert!(take(&mut inbox).unwrap_err().contains("at most"));
        let mut inbox = (MESSAGE_MAX as u32).to_le_bytes().to_vec();
        assert!(take(&mut inbox).unwrap().is_none());
        assert!(matches!(encode(&message("x".repeat(MESSAGE_MAX))), Err(Error::TooLong { .. })));
    }
}
